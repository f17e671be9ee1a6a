-- Take away lines in which nobody is left (a JSON array of numbers).
DELETE FROM betimes_line WHERE id = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint));
