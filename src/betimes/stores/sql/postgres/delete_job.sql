-- Take away the live rows of jobs that have ended (a JSON array of numbers).
DELETE FROM betimes_job WHERE seq = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint));
