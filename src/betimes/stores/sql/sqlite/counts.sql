-- Read how many live jobs each queue has in each status.
SELECT queue, status, jobs FROM betimes_tally WHERE jobs <> 0;
