-- Tell whether a worker's lease is in force, and whether there may be anything for whoever keeps the order.
-- That is: lines that may be claimed from, or what others have left. Nobody declares the worker dead before this
-- transaction is over; its lease may be prolonged meanwhile, however long that takes.
SELECT
    (
        SELECT 1 FROM betimes_worker
        WHERE id = $1 AND is_dead = 0 AND lease_until > $2::bigint AND lease_boot_id = $3
        FOR KEY SHARE
    ) IS NOT NULL,
    EXISTS (SELECT FROM betimes_line WHERE waits_at IS NULL) OR EXISTS (SELECT FROM betimes_stirred)
        OR EXISTS (SELECT FROM betimes_job WHERE status = 'ready' AND tenant IS NOT NULL AND sort_key = 9223372036854775807);
