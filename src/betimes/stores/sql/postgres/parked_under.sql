-- Read jobs parked under a name, in the order of submission.
SELECT * FROM betimes_live WHERE parked IS NOT NULL AND parked = $1 ORDER BY seq LIMIT $2
FOR UPDATE SKIP LOCKED;
