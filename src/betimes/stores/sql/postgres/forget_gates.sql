-- Forget rates whose bucket has become full since, and for which nobody waits.
DELETE FROM betimes_gate
WHERE key = ANY (ARRAY(
    SELECT key FROM betimes_gate WHERE full_at <= $1::bigint AND tripped_at = 0 AND opens_at IS NULL LIMIT $2
));
