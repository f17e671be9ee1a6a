-- Remember which tasks a worker knows, if it is registered.
UPDATE betimes_worker_known SET tasks = $2 WHERE worker = $1;
