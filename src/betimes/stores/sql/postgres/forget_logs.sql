-- Forget the logs of jobs (a JSON array of numbers).
DELETE FROM betimes_log WHERE seq = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint));
