-- Read rates and breakers that are not at rest, by their keys (a JSON array).
SELECT key, full_at, tripped_at, opens_at FROM betimes_gate WHERE key IN (SELECT value FROM json_each(?));
