-- Read schedules by their ids (a JSON array).
SELECT * FROM betimes_plan WHERE id = ANY (ARRAY(SELECT json_array_elements_text($1::json)));
