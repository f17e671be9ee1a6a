-- Read the version of a schedule.
SELECT version FROM betimes_schedule WHERE id = ?;
