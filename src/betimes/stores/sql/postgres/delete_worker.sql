-- Forget a worker.
DELETE FROM betimes_worker WHERE id = $1;
