-- Read live jobs by their numbers (a JSON array), and lock them; not those that others have locked.
SELECT * FROM betimes_live WHERE seq = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint))
FOR UPDATE SKIP LOCKED;
