-- Read the live versions of an id, oldest first.
SELECT record FROM betimes_live WHERE id = ? ORDER BY seq;
