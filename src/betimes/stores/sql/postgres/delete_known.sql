-- Forget what a worker knew.
DELETE FROM betimes_worker_known WHERE worker = $1;
