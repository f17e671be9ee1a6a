-- Forget the fires of a schedule.
DELETE FROM betimes_fire WHERE schedule = $1;
