-- Read the first jobs with a tenant that are ready and have no place in the order yet, in the order of submission.
SELECT * FROM betimes_live
WHERE status = 'ready' AND tenant IS NOT NULL AND sort_key = 9223372036854775807
ORDER BY seq
LIMIT $1
FOR UPDATE SKIP LOCKED;
