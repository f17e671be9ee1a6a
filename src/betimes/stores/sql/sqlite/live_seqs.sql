-- Tell which of these numbers (a JSON array) are of live jobs.
SELECT seq FROM betimes_job WHERE seq IN (SELECT value FROM json_each(?));
