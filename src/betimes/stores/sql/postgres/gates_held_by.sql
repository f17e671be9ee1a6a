-- List the gates of the jobs that a worker holds.
SELECT DISTINCT gates FROM betimes_job WHERE worker IS NOT NULL AND worker = $1 AND gates IS NOT NULL;
