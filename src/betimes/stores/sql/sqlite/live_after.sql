-- Read live jobs in the order of submission, behind one.
SELECT record FROM betimes_live WHERE seq > ? ORDER BY seq LIMIT ?;
