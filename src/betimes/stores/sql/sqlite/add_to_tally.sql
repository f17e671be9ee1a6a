-- Count jobs of a queue into (or, negative, out of) a status.
INSERT INTO betimes_tally (queue, status, jobs) VALUES (?, ?, ?)
ON CONFLICT (queue, status) DO UPDATE SET jobs = jobs + excluded.jobs;
