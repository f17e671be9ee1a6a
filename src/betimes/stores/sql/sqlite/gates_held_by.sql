-- List the gates of the jobs that a worker holds.
SELECT DISTINCT gates FROM betimes_job WHERE worker IS NOT NULL AND worker = ? AND gates IS NOT NULL;
