-- Write what a step or the end of a job changes of schedules.
WITH moved (id, next_fire_at, version, last_fire_at, fired, skipped, jobs, held_at, awaits) AS (
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
)
UPDATE betimes_schedule
SET next_fire_at = moved.next_fire_at,
    version = moved.version,
    last_fire_at = moved.last_fire_at,
    fired = moved.fired,
    skipped = moved.skipped,
    jobs = moved.jobs,
    held_at = moved.held_at,
    awaits = moved.awaits
FROM moved
WHERE betimes_schedule.id = moved.id;
