-- Tell whether there is any job, live or ended.
SELECT EXISTS (SELECT 1 FROM betimes_job) OR EXISTS (SELECT 1 FROM betimes_finished);
