-- Forget what was decided long ago: `next_fire_at` only grows, so those instants cannot come again.
DELETE FROM betimes_fire
WHERE (schedule, at, by_hand) IN (SELECT schedule, at, by_hand FROM betimes_fire WHERE decided_at <= ? LIMIT ?);
