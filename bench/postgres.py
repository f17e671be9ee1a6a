"""The rows of what is durable on a PostgreSQL server of the same machine: an fsync for each commit."""

from __future__ import annotations

from typing import Any

from bench.harness import Contender, Row, Target

OURS = "Betimes"
ONE_INSERT = "one INSERT a transaction, one connection"
TWENTY_INSERTS = "one INSERT a transaction, 20 connections"
RAW_BULK = "bare INSERT, 1,000 rows a transaction"
RAW_DRAIN = "finish 500 + claim 500 a transaction"
PIPELINE = "INSERT, commit, NOTIFY, LISTEN, claim, commit"
PGQUEUER = "pgqueuer"
PROCRASTINATE = "procrastinate"
SAQ = "saq"
LIBRARIES = {PGQUEUER: "pgqueuer", PROCRASTINATE: "procrastinate", SAQ: "saq"}
DRAINED = 20_000


def _contender(role: Any, name: str, function: str, quick: dict[str, object], **params: object) -> Contender:
    modules = {"limit": "limits.postgres", "ours": "ours.postgres", "variant": "ours.postgres"}
    library = LIBRARIES.get(name.partition(",")[0]) if role == "peer" else None
    return Contender(
        name=name,
        role=role,
        call=f"{modules.get(role, f'peers.{library}')}:{function}",
        params=params,
        quick=quick,
        library=library,
    )


def _row(name: str, work: str, *contenders: Contender, **more: Any) -> Row:
    return Row(
        name=f"postgres-{name}",
        section="postgres",
        work=work,
        contenders=contenders,
        has_server=True,
        **more,
    )


IN_MICROSECONDS: dict[str, Any] = {"figure": "p50_us", "unit": "µs", "also": ("p99_us",)}
FEW = {"jobs": 100}
SOME = {"jobs": 1_000}

SUBMIT_ONE_CALLER = _row(
    "submit-1",
    "durable submits, one caller, who waits for each",
    _contender("limit", ONE_INSERT, "submits", FEW, jobs=1_000, callers=1),
    _contender("ours", OURS, "submits", FEW, jobs=1_000, callers=1),
    _contender("peer", PGQUEUER, "submits", FEW, jobs=1_000, callers=1),
    _contender("peer", PROCRASTINATE, "submits", FEW, jobs=500, callers=1),
    _contender("peer", SAQ, "submits", FEW, jobs=500, callers=1),
    targets=(Target(against=ONE_INSERT, at_least=0.8),),
)

SUBMIT_MANY_CALLERS = _row(
    "submit-20",
    "durable submits, 20 callers side by side, one job a call",
    _contender("limit", TWENTY_INSERTS, "submits", FEW, jobs=10_000, callers=20),
    _contender("ours", OURS, "submits", SOME, jobs=20_000, callers=20),
    _contender("variant", "Betimes, 100 callers", "submits", SOME, jobs=20_000, callers=100),
    _contender("peer", PGQUEUER, "submits", FEW, jobs=2_000, callers=20),
    _contender("peer", PROCRASTINATE, "submits", FEW, jobs=2_000, callers=20),
    _contender("peer", SAQ, "submits", FEW, jobs=2_000, callers=20),
    targets=(Target(at_least=30_000),),
    shows_cpu=True,
)

BULK = _row(
    "bulk",
    "bulk submit, 1,000 jobs a call, each call one commit",
    _contender("limit", RAW_BULK, "bulk", SOME, jobs=50_000, batch=1_000),
    _contender("ours", OURS, "bulk", SOME, jobs=50_000, batch=1_000),
    _contender("peer", PGQUEUER, "bulk", SOME, jobs=50_000, batch=1_000),
    _contender("peer", PROCRASTINATE, "bulk", SOME, jobs=10_000, batch=1_000),
    targets=(Target(at_least=60_000),),
    shows_cpu=True,
)

DRAIN = _row(
    "drain",
    "20,000 no-op jobs (procrastinate and saq: 2,000), stored, then run, finished and recorded by one "
    "process",
    _contender("limit", RAW_DRAIN, "drain", SOME, jobs=DRAINED, batch=500),
    _contender("ours", OURS + ", 500 in flight", "drain", SOME, jobs=DRAINED, concurrency=500),
    _contender("variant", OURS + ", 100 in flight", "drain", SOME, jobs=DRAINED, concurrency=100),
    _contender("peer", PGQUEUER + ", batches of 500", "drain", SOME, jobs=DRAINED, batch=500),
    _contender("peer", PGQUEUER + ", batches of 100", "drain", SOME, jobs=DRAINED, batch=100),
    _contender("peer", PROCRASTINATE + ", 100 in flight", "drain", FEW, jobs=2_000, concurrency=100),
    _contender("peer", SAQ + ", 100 in flight", "drain", FEW, jobs=2_000, concurrency=100),
    targets=(
        Target(at_least=25_000),
        Target(against=RAW_DRAIN, at_least=0.4),
        Target(against=PGQUEUER + ", batches of 100", at_least=1.6),
    ),
    shows_cpu=True,
)

TWO_WORKERS = _row(
    "workers",
    "40,000 no-op jobs, worked off by processes of their own, 500 in flight each",
    _contender(
        "limit", RAW_DRAIN + ", 2 connections", "drain_together", SOME, jobs=40_000, workers=2, batch=500
    ),
    _contender("variant", OURS + ", 1 process", "drain_together", SOME, jobs=40_000, workers=1),
    _contender("ours", OURS + ", 2 processes", "drain_together", SOME, jobs=40_000, workers=2),
    targets=(Target(against=OURS + ", 1 process", at_least=1.4),),
)

IDLE = _row(
    "idle",
    "one job on an idle scheduler, run in the same process: submit to start",
    _contender("limit", PIPELINE, "starts", {"jobs": 20}, jobs=200),
    _contender("ours", OURS, "starts", {"jobs": 20}, jobs=200),
    _contender("variant", OURS + ", run by another process", "starts_elsewhere", {"jobs": 20}, jobs=200),
    _contender("peer", PGQUEUER, "starts", {"jobs": 20}, jobs=200),
    _contender("peer", PROCRASTINATE, "starts", {"jobs": 20}, jobs=200),
    _contender("peer", SAQ, "starts", {"jobs": 20}, jobs=200),
    targets=(
        Target(against=PIPELINE, at_most=2),
        Target(of=OURS + ", run by another process", against=PIPELINE, at_most=2),
    ),
    **IN_MICROSECONDS,
)

SMALL = {"jobs": 1_000, "backlog": 2_000, "history": 5_000}
GROWN = {"jobs": DRAINED, "backlog": 1_000_000, "history": 5_000_000}
GROWTH = _row(
    "growth",
    "20,000 no-op jobs out of a backlog of 1,000,000 and beside a history of 5,000,000, and without both",
    _contender("limit", RAW_DRAIN + ", alone", "drain", SOME, jobs=DRAINED, batch=500),
    _contender("limit", RAW_DRAIN + ", grown", "drain", SMALL, batch=500, **GROWN),
    _contender("variant", OURS + ", alone", "drain", SOME, jobs=DRAINED),
    _contender("ours", OURS + ", grown", "drain", SMALL, **GROWN),
    targets=(Target(against=OURS + ", alone", at_least=0.6),),
    rounds=3,
    is_long=True,
)

PINNED = _row(
    "pinned",
    "10,000 jobs submitted and worked off again and again for 60 s: the rate of the last 15 s, with and "
    "without a transaction elsewhere that stays open",
    _contender(
        "limit",
        "bare statements, alone",
        "drain_for",
        {"seconds": 2},
        seconds=60,
        jobs=10_000,
        is_pinned=False,
    ),
    _contender(
        "limit",
        "bare statements, pinned",
        "drain_for",
        {"seconds": 2},
        seconds=60,
        jobs=10_000,
        is_pinned=True,
    ),
    _contender("variant", OURS + ", alone", "drain_for", {"seconds": 2}, seconds=60, is_pinned=False),
    _contender("ours", OURS + ", pinned", "drain_for", {"seconds": 2}, seconds=60, is_pinned=True),
    targets=(Target(against=OURS + ", alone", at_least=0.5),),
    rounds=3,
    is_long=True,
)

ROWS = (SUBMIT_ONE_CALLER, SUBMIT_MANY_CALLERS, BULK, DRAIN, TWO_WORKERS, IDLE, GROWTH, PINNED)
