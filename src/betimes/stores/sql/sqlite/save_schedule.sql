-- Insert or replace a schedule.
INSERT OR REPLACE INTO betimes_schedule (
    id, task, queue, lane, priority, options, payload, definition, next_fire_at, version, paused, last_fire_at, fired,
    skipped
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
