-- Read, of schedules by their ids (a JSON array), what a step is compared with.
SELECT json_array(id, version, next_fire_at, paused) AS record
FROM betimes_schedule
WHERE id IN (SELECT value FROM json_each(?));
