-- Remember what a worker knows.
INSERT OR REPLACE INTO betimes_worker_known (worker, lanes, tasks) VALUES (?, ?, ?);
