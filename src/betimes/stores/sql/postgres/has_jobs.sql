-- Tell whether there is any job, live or ended.
SELECT EXISTS (SELECT FROM betimes_job) OR EXISTS (SELECT FROM betimes_finished);
