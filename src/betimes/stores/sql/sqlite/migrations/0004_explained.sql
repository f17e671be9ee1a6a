-- What explains why work waits: since when and by whom a queue is paused, and which tasks each worker knows.
--
-- What the earlier schemas held is carried over: of their pauses and workers, none of this is known.

ALTER TABLE betimes_paused_queue ADD COLUMN paused_at INTEGER;
ALTER TABLE betimes_paused_queue ADD COLUMN paused_by TEXT;

-- Apart from the workers' rows, which are written with every beat. lanes, tasks: JSON arrays; NULL: it does not say.
CREATE TABLE betimes_worker_known (
    worker TEXT NOT NULL PRIMARY KEY,
    lanes TEXT,
    tasks TEXT
) STRICT, WITHOUT ROWID;

-- A text in `jobs` that is no JSON must not keep the other schedules from being read: it is shown as it is.
DROP VIEW betimes_plan;
CREATE VIEW betimes_plan AS
SELECT id, next_fire_at, version, paused, last_fire_at, held_at, awaits,
    json_array(
        id, task, queue, lane, priority, options, payload, definition, next_fire_at, version, paused, error,
        last_fire_at, fired, skipped,
        CASE WHEN jobs IS NULL THEN json('[]') WHEN json_valid(jobs) THEN json(jobs) ELSE jobs END,
        held_at, awaits, delay_us, ends_at
    ) AS record
FROM betimes_schedule;

UPDATE betimes_meta SET value = 4 WHERE name = 'schema_version';
