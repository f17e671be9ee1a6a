-- List the schedules by id.
SELECT id, task, queue, lane, priority, options, payload, definition, next_fire_at, version, paused, last_fire_at,
    fired, skipped
FROM betimes_schedule
ORDER BY id
LIMIT ?;
