-- Take away the rows of ended jobs (a JSON array of numbers).
DELETE FROM betimes_finished WHERE seq = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint));
