-- Tell whether a worker holds anything.
SELECT EXISTS (SELECT FROM betimes_job WHERE worker IS NOT NULL AND worker = $1);
