-- Find the number of the version that a submission made, by its id and token.
SELECT seq FROM betimes_job WHERE id = $1 AND token = $2
UNION ALL
SELECT seq FROM betimes_finished WHERE id = $1 AND token = $2
LIMIT 1;
