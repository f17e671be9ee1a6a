-- Insert or replace a schedule.
INSERT OR REPLACE INTO betimes_schedule (
    id, task, queue, lane, priority, options, payload, definition, next_fire_at, version, paused, error, last_fire_at,
    fired, skipped, jobs, held_at, awaits, delay_us, ends_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
