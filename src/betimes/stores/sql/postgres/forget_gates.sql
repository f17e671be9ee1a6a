-- Forget rates whose bucket has become full since, and for which nobody waits; none that is being charged just now.
DELETE FROM betimes_gate
WHERE key = ANY (ARRAY(
    SELECT key FROM betimes_gate WHERE full_at <= $1::bigint AND tripped_at = 0 AND opens_at IS NULL LIMIT $2
    FOR UPDATE SKIP LOCKED
));
