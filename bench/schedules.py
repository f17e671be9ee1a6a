"""The rows of recurring work: the next instant, many schedules that wait, and many that are due at once."""

from __future__ import annotations

from typing import Any, Literal

from bench.harness import Contender, Row, Target

MANY = 100_000
DUE = 10_000
VENV_4 = ".venv-apscheduler4"
OURS = "Betimes"
CRONSIM = "cronsim"
THREE = "APScheduler 3"
FOUR = "APScheduler 4"
FEW_PENDING = "Betimes, 100 schedules"

Role = Literal["limit", "ours", "variant", "peer"]


def _ours(name: str, call: str, quick: dict[str, Any], role: Role = "ours", **params: Any) -> Contender:
    return Contender(name=name, role=role, call=f"ours.recurring:{call}", params=params, quick=quick)


def _three(name: str, call: str, quick: dict[str, Any], **params: Any) -> Contender:
    return Contender(
        name=f"{THREE}, {name}",
        role="peer",
        call=f"peers.apscheduler_recurring:{call}",
        params=params,
        quick=quick,
        library="apscheduler",
    )


def _four(name: str, call: str, quick: dict[str, Any], **params: Any) -> Contender:
    return Contender(
        name=f"{FOUR}, {name}",
        role="peer",
        call=f"peers.apscheduler4:{call}",
        params=params,
        quick=quick,
        library="apscheduler 4",
        venv=VENV_4,
    )


def _next(name: str, role: Role, which: str, steps: int) -> Contender:
    return Contender(
        name=name,
        role=role,
        call="cron_next:run",
        params={"which": which, "steps": steps},
        quick={"steps": 5},
    )


NEXT = Row(
    name="cron-next",
    section="schedules",
    work="the next instant of a cron expression: twelve expressions in UTC and in Europe/Berlin, from every "
    "minute to every 29 February, the geometric mean of them; processor time",
    figure="step_us",
    unit="µs",
    also=("slowest_us",),
    contenders=(
        _next(CRONSIM, "limit", "cronsim", 300),
        _next(OURS, "ours", "betimes", 300),
        _next("croniter", "peer", "croniter", 100),
    ),
    targets=(Target(against=CRONSIM, at_most=1.5),),
)

ADD = Row(
    name="schedule-add",
    section="schedules",
    work="schedules added one after the other, each its own cron expression with a zone, to a running "
    "scheduler in memory (Betimes: 10,000; peers: 5,000)",
    unit="schedules/s",
    contenders=(
        _ours(OURS, "adds", {"schedules": 500}, schedules=10_000),
        _three("memory", "adds", {"schedules": 200}, schedules=5_000),
        _four("memory", "adds", {"schedules": 200}, schedules=5_000),
    ),
)

START = Row(
    name="schedule-start",
    section="schedules",
    work="a program starts on a SQLite file with 100,000 schedules (APScheduler 3: 5,000; 4: 1,000), one of "
    "them due: open the file, look at what is due, and start the job of that one",
    figure="start_us",
    unit="µs",
    contenders=(
        _ours(OURS, "start", {}),
        _three("SQLAlchemy", "start", {"schedules": 100}, schedules=5_000),
        _four("SQLAlchemy", "start", {"schedules": 50}, schedules=1_000),
    ),
    targets=(Target(at_most=2_000_000),),
    prepare="ours.recurring:fill_shared",
    prepare_params={"schedules": MANY},
    prepare_quick={"schedules": 1_000},
)

IDLE_FILE = f"{OURS}, SQLite"
IDLE_MEMORY = f"{OURS}, memory"
IDLE_FEW = f"{OURS}, SQLite, 1 schedule"
IDLE = Row(
    name="schedule-idle",
    section="schedules",
    work="100,000 schedules of which none is due for a day (APScheduler 3: 5,000; 4: 1,000): the share of "
    "one core that is taken, over ten seconds",
    figure="percent",
    unit="%",
    contenders=(
        _ours(IDLE_FILE, "idle", {"seconds": 0.5}, seconds=10.0),
        _ours(IDLE_FEW, "idle", {"seconds": 0.5}, "variant", seconds=10.0, pending=1, is_durable=True),
        _ours(IDLE_MEMORY, "idle", {"seconds": 0.5, "pending": 1_000}, "variant", seconds=10.0, pending=MANY),
        _three(
            "memory", "idle", {"seconds": 0.5, "pending": 100}, seconds=10.0, pending=5_000, is_durable=False
        ),
        _three(
            "SQLAlchemy",
            "idle",
            {"seconds": 0.5, "pending": 100},
            seconds=10.0,
            pending=5_000,
            is_durable=True,
        ),
        _four(
            "memory", "idle", {"seconds": 0.5, "pending": 100}, seconds=10.0, pending=1_000, is_durable=False
        ),
        _four(
            "SQLAlchemy",
            "idle",
            {"seconds": 0.5, "pending": 50},
            seconds=10.0,
            pending=1_000,
            is_durable=True,
        ),
    ),
    targets=(
        Target(at_most=1),
        Target(of=IDLE_MEMORY, at_most=1),
        Target(against=IDLE_FEW, at_most=1.5),
    ),
    rounds=3,
    prepare="ours.recurring:fill_shared",
    prepare_params={"schedules": MANY},
    prepare_quick={"schedules": 1_000},
)

FIRE_MEMORY = Row(
    name="schedule-fire",
    section="schedules",
    work="one fire of one schedule, and its job's whole life, beside 100,000 that wait (APScheduler 3 and 4: "
    "100 and 20,000), in memory: processor time, with the waiting for the timer",
    figure="cpu_us",
    unit="µs",
    contenders=(
        _ours(FEW_PENDING, "fires", {"fires": 20}, "variant", fires=150, pending=100),
        _ours(
            f"{OURS}, 100,000 schedules", "fires", {"fires": 20, "pending": 1_000}, fires=150, pending=MANY
        ),
        _three("100", "fires", {"fires": 20}, fires=150, pending=100, is_durable=False),
        _three("20,000", "fires", {"fires": 20, "pending": 500}, fires=150, pending=20_000, is_durable=False),
        _four("100", "fires", {"fires": 20}, fires=150, pending=100, is_durable=False),
        _four("20,000", "fires", {"fires": 20, "pending": 500}, fires=150, pending=20_000, is_durable=False),
    ),
    targets=(Target(against=FEW_PENDING, at_most=1.5),),
    rounds=3,
)

FIRE_FILE = Row(
    name="schedule-fire-file",
    section="schedules",
    work="the same on a SQLite file (APScheduler 3: 100 and 5,000; 4: 100 and 1,000)",
    figure="cpu_us",
    unit="µs",
    contenders=(
        _ours(FEW_PENDING, "fires", {"fires": 20}, "variant", fires=150, pending=100, is_durable=True),
        _ours(f"{OURS}, 100,000 schedules", "fires", {"fires": 20}, fires=150),
        _three("100", "fires", {"fires": 20}, fires=150, pending=100, is_durable=True),
        _three("5,000", "fires", {"fires": 20, "pending": 200}, fires=150, pending=5_000, is_durable=True),
        _four("100", "fires", {"fires": 10}, fires=50, pending=100, is_durable=True),
        _four("1,000", "fires", {"fires": 10, "pending": 100}, fires=50, pending=1_000, is_durable=True),
    ),
    targets=(Target(against=FEW_PENDING, at_most=1.5),),
    rounds=3,
    prepare="ours.recurring:fill_shared",
    prepare_params={"schedules": MANY},
    prepare_quick={"schedules": 1_000},
)

TICK_LIMIT = "bare statements, 500 schedules a transaction"


def _tick(name: str, *, is_durable: bool, contenders: tuple[Contender, ...], which: str) -> Row:
    return Row(
        name=name,
        section="schedules",
        work=f"10,000 schedules {which} that are due at one instant: until all have their job, from that "
        "instant; finished: until all those jobs have ended, too",
        unit="fires/s",
        also=("finished_rate",),
        contenders=(
            *contenders[:1],
            _ours(OURS, "tick", {"schedules": 1_000}, schedules=DUE, is_durable=is_durable),
            *contenders[1:],
        ),
        targets=(Target(at_least=DUE),),
        shows_cpu=True,
    )


TICK_MEMORY = _tick(
    "tick",
    is_durable=False,
    which="in memory (APScheduler 4: 2,000)",
    contenders=(
        _three("memory", "tick", {"schedules": 500}, schedules=DUE, is_durable=False),
        _four("memory", "tick", {"schedules": 200}, schedules=2_000, is_durable=False),
    ),
)

TICK_FILE = _tick(
    "tick-file",
    is_durable=True,
    which="on a SQLite file (APScheduler 3: 2,000; 4: 500)",
    contenders=(
        Contender(
            name=TICK_LIMIT,
            role="limit",
            call="limits.recurring:tick",
            params={"schedules": DUE},
            quick={"schedules": 1_000},
        ),
        _three("SQLAlchemy", "tick", {"schedules": 100}, schedules=2_000, is_durable=True),
        _four("SQLAlchemy", "tick", {"schedules": 50}, schedules=500, is_durable=True),
    ),
)

ROWS = (NEXT, ADD, START, IDLE, FIRE_MEMORY, FIRE_FILE, TICK_MEMORY, TICK_FILE)
