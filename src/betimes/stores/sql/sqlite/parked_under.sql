-- Read jobs parked under a name, in the order of submission.
SELECT record FROM betimes_live WHERE parked IS NOT NULL AND parked = ? ORDER BY seq LIMIT ?;
