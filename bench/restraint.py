"""The rows of power and restraint: work in other processes; limits, rates and fair shares."""

from __future__ import annotations

from typing import Any, Literal

from bench.harness import Contender, Row, Target

Role = Literal["limit", "ours", "variant", "peer"]

OURS = "Betimes"
PIPE = "two bare children, pipelined over pipes"
STDLIB = "ProcessPoolExecutor(2), windows of 100"
PEBBLE = "pebble, ProcessPool(2), windows of 100"
PROCESS_JOBS = 20_000
BURNS = 2_000


def _afar(role: Role, name: str, call: str, quick: int, **params: Any) -> Contender:
    """A contender of the rows with processes; a peer's call names its module."""
    where = {"limit": "limits.pipes:", "ours": "ours.processes:", "peer": "peers."}[role]
    return Contender(
        name=name,
        role=role,
        call=where + call,
        params=params,
        quick={"jobs": quick},
        library="pebble" if call.startswith("pebble") else None,
    )


def _ours(role: Role, name: str, call: str, quick: dict[str, int], **params: Any) -> Contender:
    return Contender(name=name, role=role, call=f"ours.restraint:{call}", params=params, quick=quick)


PROCESSES = Row(
    name="processes",
    section="restraint",
    work="20,000 no-op functions (the limit: 100,000) in two other processes, at most 100 in flight; "
    "pebble's and ours can be killed one by one",
    contenders=(
        _afar("limit", PIPE, "burst", 2_000, jobs=PROCESS_JOBS * 5),
        _afar("ours", OURS, "burst", 2_000, jobs=PROCESS_JOBS),
        _afar("peer", STDLIB, "stdlib_pool:burst", 2_000, jobs=PROCESS_JOBS),
        _afar("peer", PEBBLE, "pebble:burst", 2_000, jobs=PROCESS_JOBS),
    ),
    targets=(Target(at_least=15_000), Target(against=STDLIB, at_least=1.5)),
)

CPU_WORK = Row(
    name="processes-busy",
    section="restraint",
    work="2,000 functions that take 1 ms of a processor's time each, in two other processes; two processors "
    "with nothing else to do would run 2,000 a second",
    contenders=(
        _afar("limit", PIPE, "burst", 200, jobs=BURNS, what="burn", warm_up=100),
        _afar("ours", OURS, "burst", 200, jobs=BURNS, what="burn", warm_up=100),
        _afar("peer", STDLIB, "stdlib_pool:burst", 200, jobs=BURNS, what="burn", warm_up=100),
        _afar("peer", PEBBLE, "pebble:burst", 200, jobs=BURNS, what="burn", warm_up=100),
    ),
)


def _starts(name: str, work: str, *, is_cold: bool, jobs: int, quick: int) -> Row:
    def peer(library: str, module: str, method: str) -> Contender:
        return _afar(
            "peer",
            f"{library}, {method}",
            f"{module}:starts",
            quick,
            jobs=jobs,
            is_cold=is_cold,
            method=method,
        )

    return Row(
        name=name,
        section="restraint",
        work=work,
        figure="p50_us",
        unit="µs",
        also=("p90_us",),
        contenders=(
            _afar("limit", "a bare child over a pipe", "starts", quick, jobs=jobs, is_cold=is_cold),
            _afar("ours", OURS, "starts", quick, jobs=jobs, is_cold=is_cold),
            peer("ProcessPoolExecutor", "stdlib_pool", "spawn"),
            peer("ProcessPoolExecutor", "stdlib_pool", "fork"),
            peer("pebble", "pebble", "spawn"),
            peer("pebble", "pebble", "fork"),
        ),
    )


COLD = _starts(
    "process-cold",
    "the first job in another process, which has to be started: from before the scheduler or pool is opened "
    "to the job's first line (`spawn` and ours start a fresh interpreter, `fork` copies this one)",
    is_cold=True,
    jobs=10,
    quick=2,
)
WARM = _starts(
    "process-warm",
    "one job at a time in another process that is there and idle: from the submit to the job's first line",
    is_cold=False,
    jobs=400,
    quick=40,
)

UNLIMITED = "Betimes, without the limit"


def _limits(name: str, where: str, *, is_durable: bool, targets: tuple[Target, ...]) -> Row:
    def line(role: Role, called: str, **params: Any) -> Contender:
        return _ours(
            role,
            called,
            "limited",
            {"groups": 100},
            groups=1_000,
            each=100,
            is_durable=is_durable,
            **params,
        )

    return Row(
        name=name,
        section="restraint",
        work=f"1,000 groups × 100 jobs that wait {where}, those of a group together, so that the head of the "
        "queue is full of jobs that may not run yet: from the first to the last end, 100 in flight; "
        "submitted: storing them before, 1,000 a call",
        also=("submitted_rate",),
        contenders=(
            line("variant", UNLIMITED),
            line("ours", "Betimes, 5 of each group at once", max_running=5),
            line("variant", "Betimes, 1 of each group at once", max_running=1),
            line(
                "variant",
                "Betimes, 5 of each group at once, the groups taking turns",
                max_running=5,
                is_mixed=True,
            ),
        ),
        targets=targets,
        rounds=5 if not is_durable else 3,
        shows_cpu=True,
    )


LIMITS = _limits("limits", "in memory", is_durable=False, targets=(Target(against=UNLIMITED, at_least=0.8),))
LIMITS_FILE = _limits(
    "limits-file", "on a SQLite file", is_durable=True, targets=(Target(against=UNLIMITED, at_least=0.8),)
)

ALONE = "Betimes, nobody waiting"


def _crowded(name: str, work: str, crowd: int, *, is_durable: bool, jobs: int, quick: int) -> Row:
    sizes = {"jobs": quick}
    return Row(
        name=name,
        section="restraint",
        work=work,
        contenders=(
            _ours("variant", ALONE, "crowded", sizes, jobs=jobs, waiting=0, is_durable=is_durable),
            _ours(
                "ours",
                f"Betimes, {crowd:,} waiting",
                "crowded",
                sizes | {"waiting": 20_000},
                jobs=jobs,
                waiting=crowd,
                is_durable=is_durable,
            ),
        ),
        targets=(Target(against=ALONE, at_least=0.9),),
        rounds=3 if not is_durable else 5,
        shows_cpu=True,
        is_long=not is_durable,
    )


CROWDED = _crowded(
    "limits-crowded",
    "100,000 no-op jobs that nothing holds back, submitted 1,000 a call and run in memory, while 1,000,000 "
    "jobs of one group, which came first, wait for the group's only permit",
    1_000_000,
    is_durable=False,
    jobs=100_000,
    quick=5_000,
)
CROWDED_FILE = _crowded(
    "limits-crowded-file",
    "20,000 no-op jobs that nothing holds back, submitted 1,000 a call and run on a SQLite file, while "
    "100,000 jobs of one group, which came first, wait for the group's only permit",
    100_000,
    is_durable=True,
    jobs=20_000,
    quick=1_000,
)


def _rates(name: str, where: str, *, is_durable: bool) -> Row:
    def line(role: Role, called: str, waiting: int, quick: int) -> Contender:
        return _ours(
            role,
            called,
            "throttled",
            {"jobs": 1_000, "waiting": quick},
            jobs=10_000,
            waiting=waiting,
            rate="100/s",
            is_durable=is_durable,
        )

    return Row(
        name=name,
        section="restraint",
        work=f"10,000 no-op jobs that nothing holds back, submitted 1,000 a call and run {where}, while "
        "10,000 of another task, which came first, wait for its tokens: 100 a second",
        contenders=(
            line("variant", ALONE, 0, 0),
            line("ours", "Betimes, 10,000 waiting", 10_000, 1_000),
        ),
        targets=(Target(against=ALONE, at_least=0.9),),
        shows_cpu=True,
    )


RATES = _rates("rates", "in memory", is_durable=False)
RATES_FILE = _rates("rates-file", "on a SQLite file", is_durable=True)

BY_PRIORITY = "Betimes, by priority"
MOST_COST = 1.3
"""What a job of a fair share may cost, beside one in the order of priority."""


def _shares(name: str, where: str, each: int, *, is_durable: bool) -> Row:
    def line(role: Role, called: str, **params: Any) -> Contender:
        return _ours(
            role,
            called,
            "shared",
            {"tenants": 1_000},
            tenants=10_000,
            each=each,
            is_durable=is_durable,
            **params,
        )

    return Row(
        name=name,
        section="restraint",
        work=f"10,000 tenants × {each} no-op jobs {where}, those of a tenant together: submitted 1,000 a "
        "call, then run; both: the two one after the other. A job may cost 1.3 times what it costs by "
        "priority",
        figure="both_rate",
        also=("submitted_rate", "run_rate"),
        contenders=(
            line("variant", BY_PRIORITY, is_fair=False),
            line("ours", "Betimes, in fair shares", is_fair=True),
            line("variant", "Betimes, in fair shares, the tenants taking turns", is_fair=True, is_mixed=True),
        ),
        targets=(Target(against=BY_PRIORITY, at_least=round(1 / MOST_COST, 2)),),
        rounds=5 if not is_durable else 3,
    )


SHARES = _shares("shares", "in memory", 10, is_durable=False)
SHARES_FILE = _shares("shares-file", "on a SQLite file", 5, is_durable=True)

WINDOW = 10
COMMANDS = Row(
    name="commands",
    section="restraint",
    work="the command `true`, 10 at once, each in a process group of its own, what it prints read to the end",
    unit="commands/s",
    contenders=(
        _afar("limit", "create_subprocess_exec, windows of 10", "commands", 50, jobs=1_000, window=WINDOW),
        _afar("ours", OURS, "commands", 50, jobs=1_000, window=WINDOW),
    ),
)

ROWS = (
    PROCESSES,
    CPU_WORK,
    COLD,
    WARM,
    LIMITS,
    LIMITS_FILE,
    CROWDED,
    CROWDED_FILE,
    RATES,
    RATES_FILE,
    SHARES,
    SHARES_FILE,
    COMMANDS,
)
