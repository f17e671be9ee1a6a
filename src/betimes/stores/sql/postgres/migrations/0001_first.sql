-- The first schema: everything that a store keeps.
--
-- Instants are whole microseconds since 1970, and flags are 0 or 1. Live jobs and ended jobs lie apart ("hot and
-- cold"), so that the table which claims read holds live rows only. Columns that few jobs need share `options` (what
-- was asked for) and `rare` (what happened), as JSON; they are text, since only a text gives back exactly what was put
-- in. What is compared or ordered goes by its bytes (COLLATE "C"), whatever the language of the database.
--
-- There are no foreign keys: they would have rows that are locked all the time lock each other. All indexes on live
-- jobs but those of the id are partial: a row is only in those that its state calls for.
--
-- Tables whose rows come and go within seconds are to be vacuumed early and often; those whose rows are written over
-- in place leave room for that on their pages, so that no index need be touched.

-- The number of each job, in the order of submission; none comes again.
CREATE SEQUENCE betimes_number;

-- schema_version, serves (the oldest version whose code works with this schema), pruned (how many jobs have been
-- forgotten), virtual_time (of fair share), strategy.
CREATE TABLE betimes_meta (
    name text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_scale_factor = 0);

-- parked: under which name it is kept back, if it is.
-- gates: a JSON array of the gates' keys; NULL for nearly all. Such jobs lie outside the index that claims read first.
-- tenant: a JSON array of its name and cost.
-- awaited: whether others wait for it; only such jobs pay for looking.
CREATE TABLE betimes_job (
    seq bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    task text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    lane text COLLATE "C" NOT NULL,
    priority integer NOT NULL,
    options text,
    payload text NOT NULL,
    submitted_at bigint NOT NULL,
    run_at bigint NOT NULL,
    sort_key bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    attempt integer NOT NULL,
    fence bigint NOT NULL,
    worker text COLLATE "C",
    started_at bigint,
    expires_at bigint,
    parked text COLLATE "C",
    cancel_requested integer NOT NULL,
    rare text,
    token text COLLATE "C",
    awaited integer NOT NULL,
    gates text COLLATE "C",
    tenant text
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_threshold = 500,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 0
);

-- A generated id has no token: so it is there once, however often its submit is tried.
CREATE UNIQUE INDEX betimes_job_id ON betimes_job (id, token) NULLS NOT DISTINCT;
CREATE INDEX betimes_job_ready ON betimes_job (queue, lane, sort_key, seq)
WHERE status = 'ready' AND parked IS NULL AND gates IS NULL;
-- A line is found by a hash of its gates, since all their keys together may be longer than an index takes.
CREATE INDEX betimes_job_line ON betimes_job (queue, lane, hashtextextended(gates, 0), sort_key, seq)
WHERE status = 'ready' AND parked IS NULL AND gates IS NOT NULL;
CREATE INDEX betimes_job_delayed ON betimes_job (run_at, seq) WHERE status = 'delayed';
CREATE INDEX betimes_job_running ON betimes_job (worker, seq) WHERE worker IS NOT NULL;
-- Who holds the permits of a limit: the jobs that run, so that nothing can be counted twice or forgotten.
CREATE INDEX betimes_job_holding ON betimes_job (worker) WHERE worker IS NOT NULL AND gates IS NOT NULL;
CREATE INDEX betimes_job_untagged ON betimes_job (seq)
WHERE status = 'ready' AND tenant IS NOT NULL AND sort_key = 9223372036854775807;
CREATE INDEX betimes_job_expires ON betimes_job (expires_at, seq) WHERE expires_at IS NOT NULL AND started_at IS NULL;
CREATE INDEX betimes_job_parked ON betimes_job (parked, seq) WHERE parked IS NOT NULL;

-- forget_at: when it is to be forgotten, if that is its own affair and not the store's.
CREATE TABLE betimes_finished (
    seq bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    task text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    lane text COLLATE "C" NOT NULL,
    priority integer NOT NULL,
    options text,
    payload text NOT NULL,
    submitted_at bigint NOT NULL,
    run_at bigint NOT NULL,
    sort_key bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    attempt integer NOT NULL,
    fence bigint NOT NULL,
    started_at bigint,
    finished_at bigint NOT NULL,
    expires_at bigint,
    cancel_requested integer NOT NULL,
    rare text,
    result text,
    token text COLLATE "C",
    forget_at bigint,
    gates text COLLATE "C",
    tenant text
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX betimes_finished_id ON betimes_finished (id, seq);
CREATE INDEX betimes_finished_token ON betimes_finished (id, token) WHERE token IS NOT NULL;
CREATE INDEX betimes_finished_at ON betimes_finished (finished_at) WHERE forget_at IS NULL;
CREATE INDEX betimes_finished_forget ON betimes_finished (forget_at) WHERE forget_at IS NOT NULL;

-- Idempotency keys, which outlive their jobs.
CREATE TABLE betimes_key (
    key text COLLATE "C" PRIMARY KEY,
    seq bigint NOT NULL,
    digest bytea NOT NULL,
    until bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX betimes_key_seq ON betimes_key (seq);
CREATE INDEX betimes_key_until ON betimes_key (until);

-- Which BLOCKED job waits for which live job; the edge goes when either end moves on.
CREATE TABLE betimes_dependency (
    parent bigint NOT NULL,
    child bigint NOT NULL,
    need text COLLATE "C" NOT NULL,
    PRIMARY KEY (parent, child)
) WITH (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX betimes_dependency_child ON betimes_dependency (child);

-- Jobs that have ended while another transaction had locked some who wait for them: those are told later.
CREATE TABLE betimes_unsettled (
    parent bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    ended_at bigint NOT NULL
) WITH (autovacuum_vacuum_threshold = 100, autovacuum_vacuum_scale_factor = 0);

CREATE INDEX betimes_unsettled_at ON betimes_unsettled (ended_at);

-- Written with every beat: no index knows of the lease, and most of each page is left for new versions of its rows.
CREATE TABLE betimes_worker (
    id text COLLATE "C" PRIMARY KEY,
    host text NOT NULL,
    pid bigint NOT NULL,
    pid_namespace text NOT NULL,
    process_started bigint NOT NULL,
    boot_id text NOT NULL,
    queues text,
    concurrency integer NOT NULL,
    lease_us bigint NOT NULL,
    lease_until bigint NOT NULL,
    lease_boot_id text NOT NULL,
    is_dead integer NOT NULL
) WITH (fillfactor = 30, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_scale_factor = 0);

-- Apart from the workers' rows, which are written with every beat. lanes, tasks: JSON arrays; NULL: it does not say.
CREATE TABLE betimes_worker_known (
    worker text COLLATE "C" PRIMARY KEY,
    lanes text,
    tasks text
);

CREATE TABLE betimes_paused_queue (
    queue text COLLATE "C" PRIMARY KEY,
    paused_at bigint,
    paused_by text
);

-- jobs: the numbers of its live jobs. version: goes up with every change.
CREATE TABLE betimes_schedule (
    id text COLLATE "C" PRIMARY KEY,
    task text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    lane text COLLATE "C" NOT NULL,
    priority integer NOT NULL,
    options text,
    payload text NOT NULL,
    definition text NOT NULL,
    next_fire_at bigint,
    version bigint NOT NULL,
    paused integer NOT NULL,
    error text,
    last_fire_at bigint,
    fired bigint NOT NULL,
    skipped bigint NOT NULL,
    jobs bigint[],
    held_at bigint,
    awaits bigint,
    delay_us bigint,
    ends_at bigint
) WITH (fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02);

-- Those that are due, in the order in which they are listed.
CREATE INDEX betimes_schedule_due ON betimes_schedule (next_fire_at, id) WHERE paused = 0 AND next_fire_at IS NOT NULL;

-- at, first_at, count: the last and the first of the instants in a row that shared this fate, and how many.
-- by_hand: 0 for the schedule's own instants, each of which is decided once; else the number of the job that somebody
-- asked for, so that no run by hand ever takes the place of an instant.
CREATE TABLE betimes_fire (
    schedule text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    by_hand bigint NOT NULL,
    first_at bigint NOT NULL,
    count bigint NOT NULL,
    is_exact integer NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    decided_at bigint NOT NULL,
    job_id text COLLATE "C",
    moved_from text,
    PRIMARY KEY (schedule, at, by_hand)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX betimes_fire_decided ON betimes_fire (decided_at);

-- The terms of each rule as JSON: what the code declares, and what was put in its place at run time.
CREATE TABLE betimes_rule (
    rule text COLLATE "C" PRIMARY KEY,
    declared text NOT NULL,
    changed text
);

-- Rates and breakers that are not at rest. opens_at: when to look at those that wait here, if any do.
CREATE TABLE betimes_gate (
    key text COLLATE "C" PRIMARY KEY,
    full_at bigint NOT NULL,
    tripped_at bigint NOT NULL,
    opens_at bigint
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX betimes_gate_opens ON betimes_gate (opens_at) WHERE opens_at IS NOT NULL;

-- Attempts that hold permits although their job goes on or has ended: their code has not returned yet.
CREATE TABLE betimes_permit (
    seq bigint NOT NULL,
    fence bigint NOT NULL,
    worker text COLLATE "C" NOT NULL,
    gates text COLLATE "C" NOT NULL,
    started_at bigint NOT NULL,
    PRIMARY KEY (seq, fence)
) WITH (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The claimable jobs of a queue and lane that have the same gates: where the first of them stands in the order,
-- and at which gate it waits; NULL: at none.
CREATE TABLE betimes_line (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text COLLATE "C" NOT NULL,
    lane text COLLATE "C" NOT NULL,
    gates text COLLATE "C" NOT NULL,
    head_key bigint NOT NULL,
    head_seq bigint NOT NULL,
    waits_at text COLLATE "C"
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_analyze_threshold = 500,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 0
);

CREATE INDEX betimes_line_of ON betimes_line (queue, lane, hashtextextended(gates, 0));
CREATE INDEX betimes_line_ready ON betimes_line (queue, lane, head_key, head_seq) WHERE waits_at IS NULL;
CREATE INDEX betimes_line_waiting ON betimes_line (waits_at, queue, lane, head_key, head_seq)
WHERE waits_at IS NOT NULL;

-- The finish tag of each tenant's newest job.
CREATE TABLE betimes_tenant (
    name text COLLATE "C" PRIMARY KEY,
    finish bigint NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE betimes_log (
    seq bigint NOT NULL,
    number bigint NOT NULL,
    at bigint NOT NULL,
    attempt integer NOT NULL,
    source text NOT NULL,
    level integer NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (seq, number)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- What was touched by those who do not keep the order of jobs with gates: a line, or (without a queue) a gate.
CREATE TABLE betimes_stirred (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text COLLATE "C",
    lane text COLLATE "C",
    name text COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_threshold = 100, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- The two views give live and ended jobs the same columns, in the order in which the code reads them. What a job still
-- waits for is counted, not kept, so that a job which waits for thousands is not rewritten for each.
CREATE VIEW betimes_live AS
SELECT seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    worker, started_at, NULL::bigint AS finished_at, expires_at,
    CASE status WHEN 'blocked' THEN (SELECT count(*) FROM betimes_dependency WHERE child = seq) ELSE 0 END AS unmet,
    parked, cancel_requested, rare, NULL::text AS result, gates, tenant, awaited
FROM betimes_job;

CREATE VIEW betimes_ended AS
SELECT seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    NULL::text AS worker, started_at, finished_at, expires_at, 0::bigint AS unmet,
    NULL::text AS parked, cancel_requested, rare, result, gates, tenant, 0 AS awaited
FROM betimes_finished;

-- The same for schedules.
CREATE VIEW betimes_plan AS
SELECT id, task, queue, lane, priority, options, payload, definition, next_fire_at, version, paused, error,
    last_fire_at, fired, skipped, coalesce(jobs, '{}') AS jobs, held_at, awaits, delay_us, ends_at
FROM betimes_schedule;

INSERT INTO betimes_meta (name, value)
VALUES ('schema_version', '1'), ('serves', '1'), ('pruned', '0'), ('virtual_time', '0');
