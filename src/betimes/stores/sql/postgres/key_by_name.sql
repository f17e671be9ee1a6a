-- Read what an idempotency key stands for, if it is still remembered.
SELECT seq, digest FROM betimes_key WHERE key = $1 AND until > $2::bigint;
