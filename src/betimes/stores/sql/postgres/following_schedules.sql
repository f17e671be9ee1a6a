-- Read those of these schedules (a JSON array of ids) to which the end of a job of theirs may matter.
SELECT * FROM betimes_plan
WHERE id = ANY (ARRAY(SELECT json_array_elements_text($1::json))) AND (held_at IS NOT NULL OR awaits IS NOT NULL)
FOR UPDATE;
