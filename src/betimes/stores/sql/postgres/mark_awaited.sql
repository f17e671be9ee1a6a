-- Mark live jobs (a JSON array of numbers) as ones that others wait for; only such jobs pay for looking.
UPDATE betimes_job SET awaited = 1 WHERE seq = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint));
