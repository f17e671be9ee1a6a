-- Forget rates whose bucket has become full since, and for which nobody waits.
DELETE FROM betimes_gate
WHERE key IN (SELECT key FROM betimes_gate WHERE full_at <= ? AND tripped_at = 0 AND opens_at IS NULL LIMIT ?);
