-- List what each worker knows.
SELECT worker, lanes, tasks FROM betimes_worker_known;
