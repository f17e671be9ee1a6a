-- Tell which of these ids (a JSON array) have been seen before.
SELECT id FROM betimes_job WHERE id = ANY (ARRAY(SELECT json_array_elements_text($1::json)))
UNION
SELECT id FROM betimes_finished WHERE id = ANY (ARRAY(SELECT json_array_elements_text($1::json)));
