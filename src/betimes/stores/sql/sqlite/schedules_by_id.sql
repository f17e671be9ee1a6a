-- Read schedules by their ids (a JSON array).
SELECT record FROM betimes_plan WHERE id IN (SELECT value FROM json_each(?));
