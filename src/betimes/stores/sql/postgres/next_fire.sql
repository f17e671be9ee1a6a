-- Read the earliest next fire of the schedules that are not paused.
SELECT min(next_fire_at) FROM betimes_schedule WHERE paused = 0 AND next_fire_at IS NOT NULL;
