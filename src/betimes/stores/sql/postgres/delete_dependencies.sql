-- Forget what jobs waited for (a JSON array of numbers).
DELETE FROM betimes_dependency WHERE child = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint));
