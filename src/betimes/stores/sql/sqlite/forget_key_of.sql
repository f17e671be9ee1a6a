-- Forget the idempotency keys of a job.
DELETE FROM betimes_key WHERE seq = ?;
