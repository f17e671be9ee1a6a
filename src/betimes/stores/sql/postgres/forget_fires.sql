-- Forget what was decided long ago: `next_fire_at` only grows, so those instants cannot come again.
DELETE FROM betimes_fire
WHERE ctid = ANY (ARRAY(SELECT ctid FROM betimes_fire WHERE decided_at <= $1::bigint ORDER BY decided_at LIMIT $2));
