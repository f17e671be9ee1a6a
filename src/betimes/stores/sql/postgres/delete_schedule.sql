-- Remove a schedule.
DELETE FROM betimes_schedule WHERE id = $1;
