-- Tell for which of these jobs (a JSON array of numbers) somebody still waits.
SELECT DISTINCT parent FROM betimes_dependency
WHERE parent = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint));
