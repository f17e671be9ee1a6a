-- Read the number of the newest line of jobs' logs (a JSON array of their numbers).
SELECT job.seq, (SELECT max(number) FROM betimes_log WHERE seq = job.seq)
FROM (SELECT json_array_elements_text($1::json)::bigint AS seq) AS job;
