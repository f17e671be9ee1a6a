-- Read the number of the newest line of jobs' logs (a JSON array of their numbers).
SELECT job.value, (SELECT max(number) FROM betimes_log WHERE seq = job.value) FROM json_each(?) AS job;
