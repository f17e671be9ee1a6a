-- Read the newest live version of an id.
-- By `seq` alone the server might go through all jobs from the newest on until it comes to one with this id.
SELECT * FROM betimes_live WHERE id = $1 ORDER BY seq + 0 DESC LIMIT 1;
