-- Tell which of these jobs (a JSON array of numbers) still wait for another.
SELECT DISTINCT child FROM betimes_dependency
WHERE child = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint));
