-- Forget the idempotency keys of jobs (a JSON array of numbers).
DELETE FROM betimes_key WHERE seq IN (SELECT value FROM json_each(?));
