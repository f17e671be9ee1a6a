-- Read ended jobs by their numbers (a JSON array), whoever has locked them: nothing is made of what they say.
SELECT * FROM betimes_ended WHERE seq = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint));
