-- Count the entries read so far in the index of jobs that are ready; what was passed over counts, too.
SELECT pg_stat_get_xact_tuples_returned('betimes_job_ready'::regclass);
