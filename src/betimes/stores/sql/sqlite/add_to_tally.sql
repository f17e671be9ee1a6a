-- Count jobs of queues into (or, negative, out of) statuses.
INSERT INTO betimes_tally (queue, status, jobs) VALUES (?, ?, ?)
ON CONFLICT (queue, status) DO UPDATE SET jobs = jobs + excluded.jobs;
