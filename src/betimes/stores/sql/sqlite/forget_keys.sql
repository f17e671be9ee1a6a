-- Forget idempotency keys whose time is over.
DELETE FROM betimes_key WHERE key IN (SELECT key FROM betimes_key WHERE until <= ? LIMIT ?);
