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

UPDATE betimes_meta SET value = 4 WHERE name = 'schema_version';
