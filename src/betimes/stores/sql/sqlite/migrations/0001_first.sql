-- The first schema: everything that a store keeps.
--
-- Instants are whole microseconds since 1970. Live jobs and ended jobs lie apart ("hot and cold"), so that the
-- table which claims read holds live rows only. Columns that few jobs need share `options` (what was asked for)
-- and `rare` (what happened), as JSON. All indexes on live jobs but one are partial: a row is only in those that
-- its state calls for.

CREATE TABLE betimes_meta (
    name TEXT NOT NULL PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE betimes_job (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    task TEXT NOT NULL,
    queue TEXT NOT NULL,
    lane TEXT NOT NULL,
    priority INTEGER NOT NULL,
    options TEXT,
    payload TEXT NOT NULL,
    submitted_at INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    sort_key INTEGER NOT NULL,
    status TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    worker TEXT,
    started_at INTEGER,
    expires_at INTEGER,
    parked TEXT,
    cancel_requested INTEGER NOT NULL,
    rare TEXT,
    token TEXT,
    awaited INTEGER NOT NULL
) STRICT;

CREATE INDEX betimes_job_id ON betimes_job (id);
CREATE INDEX betimes_job_token ON betimes_job (id, token) WHERE token IS NOT NULL;
CREATE INDEX betimes_job_ready ON betimes_job (queue, lane, sort_key) WHERE status = 'ready' AND parked IS NULL;
CREATE INDEX betimes_job_delayed ON betimes_job (run_at) WHERE status = 'delayed';
CREATE INDEX betimes_job_running ON betimes_job (worker) WHERE worker IS NOT NULL;
CREATE INDEX betimes_job_expires ON betimes_job (expires_at) WHERE expires_at IS NOT NULL AND started_at IS NULL;
CREATE INDEX betimes_job_parked ON betimes_job (parked) WHERE parked IS NOT NULL;

CREATE TABLE betimes_finished (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    task TEXT NOT NULL,
    queue TEXT NOT NULL,
    lane TEXT NOT NULL,
    priority INTEGER NOT NULL,
    options TEXT,
    payload TEXT NOT NULL,
    submitted_at INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    sort_key INTEGER NOT NULL,
    status TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER NOT NULL,
    expires_at INTEGER,
    cancel_requested INTEGER NOT NULL,
    rare TEXT,
    result TEXT,
    token TEXT,
    forget_at INTEGER
) STRICT;

CREATE INDEX betimes_finished_id ON betimes_finished (id);
CREATE INDEX betimes_finished_token ON betimes_finished (id, token) WHERE token IS NOT NULL;
CREATE INDEX betimes_finished_at ON betimes_finished (finished_at) WHERE forget_at IS NULL;
CREATE INDEX betimes_finished_forget ON betimes_finished (forget_at) WHERE forget_at IS NOT NULL;

-- How many live jobs each queue has in each status, so that nobody has to count rows.
CREATE TABLE betimes_tally (
    queue TEXT NOT NULL,
    status TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    PRIMARY KEY (queue, status)
) STRICT, WITHOUT ROWID;

CREATE TABLE betimes_key (
    key TEXT NOT NULL PRIMARY KEY,
    seq INTEGER NOT NULL,
    digest BLOB NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX betimes_key_seq ON betimes_key (seq);
CREATE INDEX betimes_key_until ON betimes_key (until);

-- Which BLOCKED job waits for which live job; the edge goes when either end moves on.
CREATE TABLE betimes_dependency (
    parent INTEGER NOT NULL,
    child INTEGER NOT NULL,
    need TEXT NOT NULL,
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;

CREATE INDEX betimes_dependency_child ON betimes_dependency (child);

CREATE TABLE betimes_worker (
    id TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    pid_namespace TEXT NOT NULL,
    process_started INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    queues TEXT,
    concurrency INTEGER NOT NULL,
    lease_us INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    lease_boot_id TEXT NOT NULL,
    is_dead INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE betimes_paused_queue (
    queue TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE betimes_schedule (
    id TEXT NOT NULL PRIMARY KEY,
    task TEXT NOT NULL,
    queue TEXT NOT NULL,
    lane TEXT NOT NULL,
    priority INTEGER NOT NULL,
    options TEXT,
    payload TEXT NOT NULL,
    definition TEXT NOT NULL,
    next_fire_at INTEGER,
    version INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    last_fire_at INTEGER,
    fired INTEGER NOT NULL,
    skipped INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX betimes_schedule_due ON betimes_schedule (next_fire_at) WHERE paused = 0 AND next_fire_at IS NOT NULL;

-- seq: the job that the fire became; NULL: it was skipped.
CREATE TABLE betimes_fire (
    schedule TEXT NOT NULL,
    fire_at INTEGER NOT NULL,
    seq INTEGER,
    PRIMARY KEY (schedule, fire_at)
) STRICT, WITHOUT ROWID;

CREATE INDEX betimes_fire_at ON betimes_fire (fire_at);

-- The two views give live and ended jobs the same columns. `record` is the whole job as a JSON array, in the order in
-- which the code reads it: a hundred jobs are then read in one step, as one text. `state` is what may change of it.
-- What a job still waits for is counted, not kept, so that a job which waits for thousands is not rewritten for each.
CREATE VIEW betimes_live AS
SELECT seq, id, task, queue, lane, options, run_at, sort_key, status, worker, started_at, expires_at, parked,
    json_array(
        seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
        worker, started_at, NULL, expires_at,
        CASE status WHEN 'blocked' THEN (SELECT count(*) FROM betimes_dependency WHERE child = seq) ELSE 0 END,
        parked, cancel_requested, rare, NULL, awaited
    ) AS record,
    json_array(
        seq, status, run_at, attempt, fence, worker, started_at, expires_at,
        CASE status WHEN 'blocked' THEN (SELECT count(*) FROM betimes_dependency WHERE child = seq) ELSE 0 END,
        parked, cancel_requested, rare, awaited
    ) AS state
FROM betimes_job;

CREATE VIEW betimes_ended AS
SELECT seq, id, task, queue, lane, options, status,
    json_array(
        seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
        NULL, started_at, finished_at, expires_at, 0, NULL, cancel_requested, rare, result, 0
    ) AS record
FROM betimes_finished;

INSERT INTO betimes_meta (name, value) VALUES ('schema_version', 1), ('last_seq', 0), ('pruned', 0);
