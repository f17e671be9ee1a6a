-- Read, of schedules by their ids (a JSON array), what a step is compared with.
SELECT id, version, next_fire_at, paused FROM betimes_schedule
WHERE id = ANY (ARRAY(SELECT json_array_elements_text($1::json)))
FOR UPDATE;
