-- Gates (limits, rates, circuit breakers), tenants under fair share, and the jobs' logs.
--
-- What the earlier schemas held is carried over: none of those jobs has gates or a tenant.
--
-- gates: a JSON array of the gates' keys; NULL for nearly all. Such jobs lie outside the index that claims read.
-- tenant: a JSON array of its name and cost.

ALTER TABLE betimes_job ADD COLUMN gates TEXT;
ALTER TABLE betimes_job ADD COLUMN tenant TEXT;
ALTER TABLE betimes_finished ADD COLUMN gates TEXT;
ALTER TABLE betimes_finished ADD COLUMN tenant TEXT;

DROP INDEX betimes_job_ready;
CREATE INDEX betimes_job_ready ON betimes_job (queue, lane, sort_key)
WHERE status = 'ready' AND parked IS NULL AND gates IS NULL;
CREATE INDEX betimes_job_line ON betimes_job (queue, lane, gates, sort_key)
WHERE status = 'ready' AND parked IS NULL AND gates IS NOT NULL;
-- Who holds the permits of a limit: the jobs that run, so that nothing can be counted twice or forgotten.
CREATE INDEX betimes_job_holding ON betimes_job (gates, worker) WHERE worker IS NOT NULL AND gates IS NOT NULL;

-- The terms of each rule as JSON: what the code declares, and what was put in its place at run time.
CREATE TABLE betimes_rule (
    rule TEXT NOT NULL PRIMARY KEY,
    declared TEXT NOT NULL,
    changed TEXT
) STRICT, WITHOUT ROWID;

-- Rates and breakers that are not at rest. opens_at: when to look at those that wait here, if any do.
CREATE TABLE betimes_gate (
    key TEXT NOT NULL PRIMARY KEY,
    full_at INTEGER NOT NULL,
    tripped_at INTEGER NOT NULL,
    opens_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX betimes_gate_opens ON betimes_gate (opens_at) WHERE opens_at IS NOT NULL;

-- Attempts that hold permits although their job goes on or has ended: their code has not returned yet.
CREATE TABLE betimes_permit (
    seq INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    worker TEXT NOT NULL,
    gates TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    PRIMARY KEY (seq, fence)
) STRICT, WITHOUT ROWID;

-- The claimable jobs of a queue and lane that have the same gates: where the first of them stands in the order,
-- and at which gate it waits; NULL: at none.
CREATE TABLE betimes_line (
    id INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    lane TEXT NOT NULL,
    gates TEXT NOT NULL,
    head_key INTEGER NOT NULL,
    head_seq INTEGER NOT NULL,
    waits_at TEXT
) STRICT;

CREATE UNIQUE INDEX betimes_line_of ON betimes_line (queue, lane, gates);
CREATE INDEX betimes_line_ready ON betimes_line (queue, lane, head_key, head_seq) WHERE waits_at IS NULL;
CREATE INDEX betimes_line_waiting ON betimes_line (waits_at, queue, lane, head_key, head_seq)
WHERE waits_at IS NOT NULL;

-- The finish tag of each tenant's newest job.
CREATE TABLE betimes_tenant (
    name TEXT NOT NULL PRIMARY KEY,
    finish INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE betimes_log (
    seq INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    source TEXT NOT NULL,
    level INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (seq, number)
) STRICT, WITHOUT ROWID;

-- The views as before, with gates and tenant. The sort key may change now: it is given when a job becomes ready.
DROP VIEW betimes_live;
DROP VIEW betimes_ended;

CREATE VIEW betimes_live AS
SELECT seq, id, task, queue, lane, options, run_at, sort_key, status, worker, started_at, expires_at, parked, gates,
    json_array(
        seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
        worker, started_at, NULL, expires_at,
        CASE status WHEN 'blocked' THEN (SELECT count(*) FROM betimes_dependency WHERE child = seq) ELSE 0 END,
        parked, cancel_requested, rare, NULL, gates, tenant, awaited
    ) AS record,
    json_array(
        seq, status, run_at, sort_key, attempt, fence, worker, started_at, expires_at,
        CASE status WHEN 'blocked' THEN (SELECT count(*) FROM betimes_dependency WHERE child = seq) ELSE 0 END,
        parked, cancel_requested, rare, awaited
    ) AS state
FROM betimes_job;

CREATE VIEW betimes_ended AS
SELECT seq, id, task, queue, lane, options, status,
    json_array(
        seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
        NULL, started_at, finished_at, expires_at, 0, NULL, cancel_requested, rare, result, gates, tenant, 0
    ) AS record
FROM betimes_finished;

INSERT INTO betimes_meta (name, value) VALUES ('virtual_time', 0);
UPDATE betimes_meta SET value = 3 WHERE name = 'schema_version';
