-- Forget who waited for jobs (a JSON array of numbers).
DELETE FROM betimes_dependency WHERE parent = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint));
