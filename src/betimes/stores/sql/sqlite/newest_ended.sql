-- Read the newest ended version of an id.
SELECT record FROM betimes_ended WHERE id = ? ORDER BY seq DESC LIMIT 1;
