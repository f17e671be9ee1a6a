-- Forget fires of long ago: `next_fire_at` only grows, so they cannot come again.
DELETE FROM betimes_fire
WHERE (schedule, fire_at) IN (SELECT schedule, fire_at FROM betimes_fire WHERE fire_at <= ? LIMIT ?);
