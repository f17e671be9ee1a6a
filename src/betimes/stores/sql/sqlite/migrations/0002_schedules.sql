-- Schedules that know their live jobs, and fires that say what became of each instant.
--
-- What the first schema held is carried over. It kept neither why an instant was skipped nor when that was decided:
-- such a skip is taken for a missed instant, decided at its own time.

ALTER TABLE betimes_schedule ADD COLUMN error TEXT;
ALTER TABLE betimes_schedule ADD COLUMN jobs TEXT;
ALTER TABLE betimes_schedule ADD COLUMN held_at INTEGER;
ALTER TABLE betimes_schedule ADD COLUMN awaits INTEGER;
ALTER TABLE betimes_schedule ADD COLUMN delay_us INTEGER;
ALTER TABLE betimes_schedule ADD COLUMN ends_at INTEGER;

-- Those that are due, in the order in which they are listed.
DROP INDEX betimes_schedule_due;
CREATE INDEX betimes_schedule_due ON betimes_schedule (next_fire_at, id) WHERE paused = 0 AND next_fire_at IS NOT NULL;

-- The whole schedule as a JSON array, in the order in which the code reads it (as the views of jobs).
CREATE VIEW betimes_plan AS
SELECT id, next_fire_at, version, paused, last_fire_at, held_at, awaits,
    json_array(
        id, task, queue, lane, priority, options, payload, definition, next_fire_at, version, paused, error,
        last_fire_at, fired, skipped, json(coalesce(jobs, '[]')), held_at, awaits, delay_us, ends_at
    ) AS record
FROM betimes_schedule;

CREATE TEMP TABLE betimes_first_fire AS
SELECT schedule, fire_at, seq IS NOT NULL AS is_job, (
    SELECT id FROM betimes_job WHERE seq = betimes_fire.seq
    UNION ALL
    SELECT id FROM betimes_finished WHERE seq = betimes_fire.seq
) AS job_id
FROM betimes_fire;

DROP TABLE betimes_fire;

-- at, first_at, count: the last and the first of the instants in a row that shared this fate, and how many.
-- by_hand: 0 for the schedule's own instants, each of which is decided once; else the number of the job that somebody
-- asked for, so that no run by hand ever takes the place of an instant.
CREATE TABLE betimes_fire (
    schedule TEXT NOT NULL,
    at INTEGER NOT NULL,
    by_hand INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    count INTEGER NOT NULL,
    is_exact INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    decided_at INTEGER NOT NULL,
    job_id TEXT,
    moved_from TEXT,
    PRIMARY KEY (schedule, at, by_hand)
) STRICT, WITHOUT ROWID;

INSERT INTO betimes_fire (schedule, at, by_hand, first_at, count, is_exact, outcome, decided_at, job_id)
SELECT schedule, fire_at, 0, fire_at, 1, 1, CASE WHEN is_job THEN 'fired' ELSE 'missed' END, fire_at, job_id
FROM temp.betimes_first_fire;

DROP TABLE temp.betimes_first_fire;

CREATE INDEX betimes_fire_decided ON betimes_fire (decided_at);

UPDATE betimes_meta SET value = 2 WHERE name = 'schema_version';
