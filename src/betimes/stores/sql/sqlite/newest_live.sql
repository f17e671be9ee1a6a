-- Read the newest live version of an id.
SELECT record FROM betimes_live WHERE id = ? ORDER BY seq DESC LIMIT 1;
