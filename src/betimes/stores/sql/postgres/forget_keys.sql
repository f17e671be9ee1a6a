-- Forget idempotency keys whose time is over.
DELETE FROM betimes_key
WHERE key = ANY (ARRAY(SELECT key FROM betimes_key WHERE until <= $1::bigint ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED));
