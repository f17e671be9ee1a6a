"""The rows of what is durable on a SQLite file: WAL, synchronous=FULL, an fsync for each commit."""

from __future__ import annotations

from typing import Any

from bench.harness import Contender, Row, Target

OURS = "Betimes"
HUEY = "huey, fsync=True"
APSCHEDULER = "APScheduler 3 + SQLAlchemy"
GROUP = "writer thread with group commit"
ONE_FSYNC = "one INSERT and one fsync each"
RAW_BULK = "bare INSERT, 1,000 rows a commit"
RAW_DRAIN = "finish 100 + claim 100 a commit"
PIPELINE = "insert, commit, wake, claim, commit"


def _contender(role: Any, name: str, call: str, quick: int, **params: object) -> Contender:
    where = {"limit": "limits.sqlite_file", "ours": "ours.durable", "variant": "ours.durable"}
    module, _, function = call.rpartition(":")
    return Contender(
        name=name,
        role=role,
        call=f"{where.get(role, f'peers.{module}')}:{function}",
        params=params,
        quick={"jobs": quick},
        library=module or None,
    )


SUBMIT_MANY_CALLERS = Row(
    name="submit-100",
    section="sqlite",
    work="durable submits, 100 callers side by side, one job a call (peers: one caller, which is their best)",
    contenders=(
        _contender("limit", GROUP, "submits", 1_000, jobs=20_000, callers=100),
        _contender("ours", OURS, "submits", 1_000, jobs=20_000, callers=100),
        _contender("peer", HUEY, "huey:durable_submits", 100, jobs=1_000),
        _contender("peer", APSCHEDULER, "apscheduler:durable_submits", 50, jobs=200),
    ),
    targets=(Target(against=GROUP, at_least=0.4),),
    shows_cpu=True,
)

SUBMIT_ONE_CALLER = Row(
    name="submit-1",
    section="sqlite",
    work="durable submits, one caller, who waits for each",
    contenders=(
        _contender("limit", ONE_FSYNC, "bulk", 100, jobs=1_000, batch=1),
        _contender("ours", OURS, "submits", 100, jobs=1_000, callers=1),
        _contender("peer", HUEY, "huey:durable_submits", 100, jobs=1_000),
        _contender("peer", APSCHEDULER, "apscheduler:durable_submits", 50, jobs=200),
    ),
    targets=(Target(against=ONE_FSYNC, at_least=0.8),),
)

BULK = Row(
    name="bulk",
    section="sqlite",
    work="bulk submit, 1,000 jobs a call, each call one commit",
    contenders=(
        _contender("limit", RAW_BULK, "bulk", 4_000, jobs=50_000, batch=1_000),
        _contender("ours", OURS, "bulk", 4_000, jobs=50_000, batch=1_000),
    ),
    targets=(Target(at_least=60_000),),
    shows_cpu=True,
)

DRAIN = Row(
    name="drain",
    section="sqlite",
    work="20,000 no-op jobs (peers: 2,000 and 500), stored, then run, finished and recorded by one process; "
    "100 in flight",
    contenders=(
        _contender("limit", RAW_DRAIN, "drain", 1_000, jobs=20_000, together=True),
        _contender("ours", OURS, "drain", 1_000, jobs=20_000),
        _contender("variant", "Betimes, 500 in flight", "drain", 1_000, jobs=20_000, concurrency=500),
        _contender("peer", HUEY + ", 1 thread", "huey:drain", 200, jobs=2_000, workers=1),
        _contender("peer", HUEY + ", 8 threads", "huey:drain", 200, jobs=2_000, workers=8),
        _contender("peer", APSCHEDULER, "apscheduler:drain", 100, jobs=500),
    ),
    targets=(
        Target(at_least=25_000),
        Target(against=RAW_DRAIN, at_least=0.3),
        Target(against=HUEY + ", 1 thread", at_least=7),
    ),
    shows_cpu=True,
)

BACKLOG = 1_100_000
GROWTH = Row(
    name="backlog",
    section="sqlite",
    work="20,000 no-op jobs out of a backlog of 1,000,000 that are ready, beside 20,000 out of 20,000",
    contenders=(
        _contender(
            "limit", RAW_DRAIN + ", of 20,000", "drain", 1_000, jobs=20_000, together=True, alone=True
        ),
        _contender("limit", RAW_DRAIN + ", of 1,000,000", "drain", 1_000, jobs=20_000, together=True),
        _contender("variant", "Betimes, of 20,000", "drain", 1_000, jobs=20_000, alone=True),
        _contender("ours", "Betimes, of 1,000,000", "drain", 1_000, jobs=20_000),
    ),
    targets=(Target(against="Betimes, of 20,000", at_least=0.7),),
    rounds=3,
    is_long=True,
    prepare="ours.durable:fill_shared",
    prepare_params={"jobs": BACKLOG},
    prepare_quick={"jobs": 20_000},
)

IDLE = Row(
    name="durable-idle",
    section="sqlite",
    work="one job on an idle scheduler, run in the same process: submit to start",
    figure="p50_us",
    unit="µs",
    also=("p99_us",),
    contenders=(
        _contender("limit", PIPELINE, "starts", 30, jobs=100),
        _contender("ours", OURS, "starts", 30, jobs=100),
        _contender("peer", HUEY + ", polling every 1 ms", "huey:durable_starts", 30, jobs=100, poll_s=0.001),
        _contender("peer", HUEY + ", 0.1 s and more, as it comes", "huey:durable_starts", 10, jobs=20),
    ),
    targets=(Target(against=PIPELINE, at_most=1.5),),
)

STEADY = Row(
    name="durable-steady",
    section="sqlite",
    work="200 jobs a second for two seconds, one every 5 ms, run in the same process: submit to start",
    figure="p50_us",
    unit="µs",
    also=("p99_us",),
    contenders=(
        _contender("limit", PIPELINE, "starts", 100, jobs=400, per_second=200),
        _contender("ours", OURS, "starts", 100, jobs=400, per_second=200),
    ),
)

ROWS = (SUBMIT_MANY_CALLERS, SUBMIT_ONE_CALLER, BULK, DRAIN, GROWTH, IDLE, STEADY)
