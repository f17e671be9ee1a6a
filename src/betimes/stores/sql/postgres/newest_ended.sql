-- Read the newest ended version of an id.
SELECT * FROM betimes_ended WHERE id = $1 ORDER BY seq DESC LIMIT 1;
