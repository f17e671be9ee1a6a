-- Read the live versions of an id, oldest first.
SELECT * FROM betimes_live WHERE id = $1 ORDER BY seq;
