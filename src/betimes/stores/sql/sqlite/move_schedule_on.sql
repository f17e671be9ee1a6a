-- Move a schedule on by one instant, if it still stands as it was seen.
UPDATE betimes_schedule
SET next_fire_at = ?, version = version + 1, last_fire_at = ?, fired = fired + ?, skipped = skipped + ?
WHERE id = ? AND version = ? AND next_fire_at IS ? AND paused = 0;
