-- Insert or replace a schedule.
INSERT INTO betimes_schedule (
    id, task, queue, lane, priority, options, payload, definition, next_fire_at, version, paused, error, last_fire_at,
    fired, skipped, jobs, held_at, awaits, delay_us, ends_at
)
VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, translate($16, '[]', '{}')::bigint[], $17, $18, $19,
    $20
)
ON CONFLICT (id) DO UPDATE
SET task = excluded.task,
    queue = excluded.queue,
    lane = excluded.lane,
    priority = excluded.priority,
    options = excluded.options,
    payload = excluded.payload,
    definition = excluded.definition,
    next_fire_at = excluded.next_fire_at,
    version = excluded.version,
    paused = excluded.paused,
    error = excluded.error,
    last_fire_at = excluded.last_fire_at,
    fired = excluded.fired,
    skipped = excluded.skipped,
    jobs = excluded.jobs,
    held_at = excluded.held_at,
    awaits = excluded.awaits,
    delay_us = excluded.delay_us,
    ends_at = excluded.ends_at;
