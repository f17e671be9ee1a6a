-- Read jobs of known tasks (a JSON array) that a worker holds.
SELECT * FROM betimes_live
WHERE worker IS NOT NULL AND worker = $1 AND task = ANY (ARRAY(SELECT json_array_elements_text($2::json)))
ORDER BY seq
LIMIT $3
FOR UPDATE SKIP LOCKED;
