"""The rows of files with several processes, of the rollback journal, and of starting from a shell."""

from __future__ import annotations

from typing import Any

from bench.harness import Contender, Row, Target
from bench.sqlite import BACKLOG, GROUP, ONE_FSYNC, OURS, PIPELINE, RAW_BULK, RAW_DRAIN

WAL = "Betimes, WAL"
LIMITS = "limits.sqlite_file"
DURABLE = "ours.durable"
SEVERAL = "ours.several"


def _both_modes(
    name: str, work: str, limit: str, function: str, quick: int, *, targets: tuple[Target, ...], **more: Any
) -> Row:
    """Return a row on a file with the rollback journal, beside the limit there, and beside WAL."""
    of_limit: dict[str, object] = more.pop("of_limit", {})
    of_row: dict[str, Any] = more.pop("of_row", {})

    def contender(role: Any, who: str, module: str, **params: object) -> Contender:
        return Contender(
            name=who, role=role, call=f"{module}:{function}", params=more | params, quick={"jobs": quick}
        )

    return Row(
        name=name,
        section="files",
        work=f"{work}; the file has a rollback journal",
        contenders=(
            contender("limit", limit, LIMITS, journal="delete", **of_limit),
            contender("ours", OURS, DURABLE, journal="delete"),
            contender("variant", WAL, DURABLE),
        ),
        targets=targets,
        **of_row,
    )


IN_MICROSECONDS = {"figure": "p50_us", "unit": "µs", "also": ("p99_us",)}

ROLLBACK_BACKLOG: tuple[tuple[Any, str, str, dict[str, bool]], ...] = (
    ("limit", RAW_DRAIN + ", of 20,000", LIMITS, {"together": True, "alone": True}),
    ("limit", RAW_DRAIN + ", of 1,000,000", LIMITS, {"together": True}),
    ("variant", "Betimes, of 20,000", DURABLE, {"alone": True}),
    ("ours", "Betimes, of 1,000,000", DURABLE, {}),
)

ROWS = (
    _both_modes(
        "rollback-submit-100",
        "durable submits, 100 callers side by side, one job a call",
        GROUP,
        "submits",
        1_000,
        jobs=20_000,
        callers=100,
        targets=(Target(against=GROUP, at_least=0.4),),
        of_row={"shows_cpu": True},
    ),
    _both_modes(
        "rollback-submit-1",
        "durable submits, one caller, who waits for each",
        ONE_FSYNC,
        "submits",
        100,
        jobs=500,
        callers=1,
        targets=(Target(against=ONE_FSYNC, at_least=0.8),),
    ),
    _both_modes(
        "rollback-bulk",
        "bulk submit, 1,000 jobs a call, each call one commit",
        RAW_BULK,
        "bulk",
        4_000,
        jobs=50_000,
        batch=1_000,
        targets=(Target(at_least=60_000),),
        of_row={"shows_cpu": True},
    ),
    _both_modes(
        "rollback-drain",
        "20,000 no-op jobs, stored, then run, finished and recorded by one process; 100 in flight",
        RAW_DRAIN,
        "drain",
        1_000,
        jobs=20_000,
        of_limit={"together": True},
        targets=(Target(at_least=25_000), Target(against=RAW_DRAIN, at_least=0.3)),
        of_row={"shows_cpu": True},
    ),
    _both_modes(
        "rollback-idle",
        "one job on an idle scheduler, run in the same process: submit to start",
        PIPELINE,
        "starts",
        30,
        jobs=100,
        targets=(Target(against=PIPELINE, at_most=1.5),),
        of_row=IN_MICROSECONDS,
    ),
    Row(
        name="rollback-backlog",
        section="files",
        work="20,000 no-op jobs out of a backlog of 1,000,000 that are ready, beside 20,000 out of 20,000; "
        "the file has a rollback journal",
        contenders=tuple(
            Contender(
                name=who,
                role=role,
                call=f"{module}:drain",
                params={"jobs": 20_000, "journal": "delete"} | params,
                quick={"jobs": 1_000},
            )
            for role, who, module, params in ROLLBACK_BACKLOG
        ),
        targets=(Target(against="Betimes, of 20,000", at_least=0.7),),
        rounds=3,
        is_long=True,
        prepare=f"{DURABLE}:fill_shared",
        prepare_params={"jobs": BACKLOG, "journal": "delete"},
        prepare_quick={"jobs": 20_000},
    ),
    Row(
        name="across",
        section="files",
        work="one job on a file, submitted by one process and started by another, which is idle",
        figure="p50_us",
        unit="µs",
        also=("p99_us",),
        contenders=(
            Contender(
                name=OURS,
                role="ours",
                call=f"{SEVERAL}:starts_elsewhere",
                params={"jobs": 200},
                quick={"jobs": 30},
            ),
            Contender(
                name="Betimes, rollback journal",
                role="variant",
                call=f"{SEVERAL}:starts_elsewhere",
                params={"jobs": 200, "journal": "delete"},
                quick={"jobs": 30},
            ),
        ),
        targets=(Target(at_most=20_000), Target(of="Betimes, rollback journal", at_most=20_000)),
    ),
    Row(
        name="workers",
        section="files",
        work="20,000 no-op jobs, worked off by several processes on one file",
        contenders=(
            Contender(
                name="Betimes, 1 process",
                role="variant",
                call=f"{SEVERAL}:drain_together",
                params={"jobs": 20_000, "workers": 1},
                quick={"jobs": 1_000},
            ),
            Contender(
                name="Betimes, 2 processes",
                role="ours",
                call=f"{SEVERAL}:drain_together",
                params={"jobs": 20_000, "workers": 2},
                quick={"jobs": 1_000},
            ),
        ),
    ),
    Row(
        name="idle-worker",
        section="files",
        work="a worker on a file with nothing to do: the share of one core that it takes, over ten seconds",
        figure="percent",
        unit="%",
        rounds=3,
        contenders=(
            Contender(
                name=OURS,
                role="ours",
                call=f"{SEVERAL}:idle",
                params={"seconds": 10.0},
                quick={"seconds": 1.0},
            ),
        ),
        targets=(Target(at_most=1.0),),
    ),
    Row(
        name="import",
        section="files",
        work="a Python process that imports and ends",
        figure="ms",
        unit="ms",
        contenders=(
            Contender(
                name="nothing",
                role="limit",
                call=f"{SEVERAL}:command",
                params={"arguments": ["-c", "pass"], "times": 9},
            ),
            Contender(
                name="asyncio and msgspec",
                role="limit",
                call=f"{SEVERAL}:command",
                params={"arguments": ["-c", "import asyncio, msgspec"], "times": 9},
            ),
            Contender(
                name="import betimes",
                role="variant",
                call=f"{SEVERAL}:command",
                params={"arguments": ["-c", "import betimes"], "times": 9},
            ),
            Contender(
                name="from betimes import Scheduler",
                role="ours",
                call=f"{SEVERAL}:command",
                params={"arguments": ["-c", "from betimes import Scheduler"], "times": 9},
            ),
            Contender(
                name="huey",
                role="peer",
                call=f"{SEVERAL}:command",
                library="huey",
                params={"arguments": ["-c", "from huey import SqliteHuey"], "times": 9},
            ),
            Contender(
                name="APScheduler 3",
                role="peer",
                call=f"{SEVERAL}:command",
                library="apscheduler",
                params={
                    "arguments": ["-c", "from apscheduler.schedulers.asyncio import AsyncIOScheduler"],
                    "times": 9,
                },
            ),
        ),
        targets=(Target(at_most=120),),
    ),
    Row(
        name="help",
        section="files",
        work="`--help`, from start to end",
        figure="ms",
        unit="ms",
        contenders=(
            Contender(
                name="click alone",
                role="limit",
                call=f"{SEVERAL}:command",
                params={"arguments": ["-c", "import click"], "times": 9},
            ),
            Contender(
                name="betimes --help",
                role="ours",
                call=f"{SEVERAL}:command",
                params={"arguments": ["-m", "betimes", "--help"], "times": 9},
            ),
            Contender(
                name="taskiq --help",
                role="peer",
                call=f"{SEVERAL}:command",
                library="taskiq",
                params={"arguments": ["-m", "taskiq", "--help"], "times": 9},
            ),
            Contender(
                name="dramatiq --help",
                role="peer",
                call=f"{SEVERAL}:command",
                library="dramatiq",
                params={"arguments": ["-m", "dramatiq", "--help"], "times": 9},
            ),
        ),
        targets=(Target(at_most=150),),
    ),
)
