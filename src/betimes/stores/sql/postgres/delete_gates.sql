-- Forget gates that are at rest (a JSON array of keys).
DELETE FROM betimes_gate WHERE key = ANY (ARRAY(SELECT json_array_elements_text($1::json)));
