-- Forget what a job waited for.
DELETE FROM betimes_dependency WHERE child = ?;
