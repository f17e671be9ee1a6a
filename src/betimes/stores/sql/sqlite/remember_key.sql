-- Have an idempotency key stand for a job; one whose time was over gives way.
INSERT INTO betimes_key (key, seq, digest, until) VALUES (?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET seq = excluded.seq, digest = excluded.digest, until = excluded.until;
