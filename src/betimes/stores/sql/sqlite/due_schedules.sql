-- List the schedules that are due, earliest first.
SELECT id, task, queue, lane, priority, options, payload, definition, next_fire_at, version, paused, last_fire_at,
    fired, skipped
FROM betimes_schedule
WHERE paused = 0 AND next_fire_at IS NOT NULL AND next_fire_at <= ?
ORDER BY next_fire_at, id
LIMIT ?;
