-- Read the fences of jobs, live or ended, by their numbers (a JSON array).
SELECT seq, fence FROM betimes_job WHERE seq IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT seq, fence FROM betimes_finished WHERE seq IN (SELECT value FROM json_each(?1));
