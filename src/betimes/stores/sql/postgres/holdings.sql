-- Read numbers, fences and cancel requests of the jobs that a worker holds.
SELECT seq, fence, cancel_requested FROM betimes_job WHERE worker IS NOT NULL AND worker = $1 ORDER BY seq;
