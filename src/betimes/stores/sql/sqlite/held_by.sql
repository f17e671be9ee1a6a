-- Read the jobs that a worker holds.
SELECT record FROM betimes_live WHERE worker IS NOT NULL AND worker = ? ORDER BY seq;
