-- Read the fences of jobs, live or ended, by their numbers (a JSON array).
SELECT seq, fence FROM betimes_job WHERE seq = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint))
UNION ALL
SELECT seq, fence FROM betimes_finished WHERE seq = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint));
