-- Remember what a worker knows.
INSERT INTO betimes_worker_known (worker, lanes, tasks) VALUES ($1, $2, $3)
ON CONFLICT (worker) DO UPDATE SET lanes = excluded.lanes, tasks = excluded.tasks;
