-- Tell which of these numbers (a JSON array) lie among the ended, but still among the live.
SELECT seq FROM betimes_finished
WHERE seq IN (SELECT value FROM json_each(?))
    AND EXISTS (SELECT 1 FROM betimes_job AS job WHERE job.seq = betimes_finished.seq);
