-- Forget who waited for a job.
DELETE FROM betimes_dependency WHERE parent = ?;
