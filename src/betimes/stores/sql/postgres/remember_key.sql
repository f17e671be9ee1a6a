-- Have an idempotency key stand for a job; one whose time was over gives way.
INSERT INTO betimes_key (key, seq, digest, until) VALUES ($1, $2, $3, $4)
ON CONFLICT (key) DO UPDATE SET seq = excluded.seq, digest = excluded.digest, until = excluded.until;
