-- Forget, of ended jobs (a JSON array of numbers), that somebody was still to be told.
DELETE FROM betimes_unsettled WHERE parent = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint));
