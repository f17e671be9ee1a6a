-- Write what may change of a live job.
UPDATE betimes_job
SET status = ?, run_at = ?, attempt = ?, fence = ?, worker = ?, started_at = ?, expires_at = ?, unmet = ?, parked = ?,
    cancel_requested = ?, rare = ?
WHERE seq = ?;
