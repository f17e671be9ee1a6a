-- Find the running jobs of a worker whose cancel was asked for.
SELECT seq, fence FROM betimes_job WHERE worker IS NOT NULL AND worker = ? AND cancel_requested <> 0;
