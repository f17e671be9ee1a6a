-- Keep the permits of attempts whose code is left running; those of workers that are dead hold none.
-- Whoever is declaring the worker dead just now is waited for: that is when its permits are taken back.
INSERT INTO betimes_permit (seq, fence, worker, gates, started_at)
SELECT kept.*
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[])
    AS kept (seq, fence, worker, gates, started_at)
WHERE EXISTS (SELECT FROM betimes_worker WHERE id = kept.worker AND is_dead = 0 FOR SHARE)
ON CONFLICT (seq, fence) DO UPDATE
SET worker = excluded.worker, gates = excluded.gates, started_at = excluded.started_at;
