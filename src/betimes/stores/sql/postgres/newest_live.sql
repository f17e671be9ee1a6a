-- Read the newest live version of an id.
SELECT * FROM betimes_live WHERE id = $1 ORDER BY seq DESC LIMIT 1;
