-- Take away the live row of a job that has ended.
DELETE FROM betimes_job WHERE seq = ?;
