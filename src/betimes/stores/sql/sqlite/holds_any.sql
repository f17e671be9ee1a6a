-- Tell whether a worker holds anything.
SELECT EXISTS (SELECT 1 FROM betimes_job WHERE worker IS NOT NULL AND worker = ?);
