-- Forget gates that are at rest (a JSON array of keys).
DELETE FROM betimes_gate WHERE key IN (SELECT value FROM json_each(?));
