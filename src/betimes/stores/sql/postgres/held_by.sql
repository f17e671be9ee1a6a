-- Read the jobs that a worker holds.
SELECT * FROM betimes_live WHERE worker IS NOT NULL AND worker = $1 ORDER BY seq;
