"""The rows of what happens in one process, on the memory store."""

from __future__ import annotations

from bench.harness import Contender, Row, Target

JOBS = 100_000
WEIGHED = 50_000
LIMIT = "create_task + callback"
OURS = "Betimes"
HUEY = "huey, memory, 1 thread"
TASKIQ = "taskiq, in memory"
APSCHEDULER = "APScheduler 3, asyncio, memory"
DRAMATIQ = "dramatiq, stub broker, 8 threads"


def _limit(call: str, quick: int, name: str = LIMIT, **params: object) -> Contender:
    return Contender(
        name=name, role="limit", call=f"limits.in_process:{call}", params=params, quick={"jobs": quick}
    )


def _ours(call: str, quick: int, **params: object) -> Contender:
    return Contender(
        name=OURS, role="ours", call=f"ours.in_process:{call}", params=params, quick={"jobs": quick}
    )


def _variant(name: str, call: str, quick: int, **params: object) -> Contender:
    return Contender(
        name=name, role="variant", call=f"ours.in_process:{call}", params=params, quick={"jobs": quick}
    )


def _peer(name: str, call: str, quick: int, **params: object) -> Contender:
    library = call.partition(":")[0]
    return Contender(
        name=name, role="peer", call=f"peers.{call}", params=params, quick={"jobs": quick}, library=library
    )


HEARD = "Betimes, one listener hearing of every transition"
BURST = Row(
    name="burst",
    section="memory",
    work="100,000 no-op coroutine jobs (peers: 10,000 to 30,000), submitted one a call as fast as it goes, "
    "to the end of the last; at most 100 in flight; retries, results and metrics on",
    contenders=(
        _limit("burst", 5_000, jobs=JOBS),
        _ours("burst", 5_000, jobs=JOBS),
        _variant("Betimes, 1,000 a call", "burst", 5_000, jobs=JOBS, batch=1_000),
        _variant(HEARD, "burst", 5_000, jobs=JOBS, is_heard=True),
        _peer(HUEY, "huey:burst", 2_000, jobs=30_000, workers=1),
        _peer(TASKIQ, "taskiq:burst", 1_000, jobs=20_000),
        _peer(APSCHEDULER, "apscheduler:burst", 1_000, jobs=10_000),
        _peer(DRAMATIQ, "dramatiq:burst", 1_000, jobs=10_000),
    ),
    targets=(
        Target(against=LIMIT, at_least=0.35),
        Target(against=HUEY, at_least=2),
        Target(against=TASKIQ, at_least=5),
        Target(against=APSCHEDULER, at_least=8),
    ),
    shows_cpu=True,
)

CROWDED = "Betimes, 1,000,000 pending"
GROWTH = Row(
    name="growth",
    section="memory",
    work="the same while 1,000,000 delayed jobs are pending (APScheduler: 1,000 and 100,000)",
    contenders=(
        _variant("Betimes, nothing pending", "burst", 5_000, jobs=JOBS),
        Contender(
            name=CROWDED,
            role="ours",
            call="ours.in_process:burst",
            params={"jobs": JOBS, "pending": 1_000_000},
            quick={"jobs": 5_000, "pending": 20_000},
        ),
        _peer("APScheduler 3, 1,000 pending", "apscheduler:burst", 200, jobs=5_000, pending=1_000),
        Contender(
            name="APScheduler 3, 100,000 pending",
            role="peer",
            call="peers.apscheduler:burst",
            params={"jobs": 1_000, "pending": 100_000},
            quick={"jobs": 200, "pending": 1_000},
            library="apscheduler",
        ),
    ),
    targets=(Target(against="Betimes, nothing pending", at_least=0.5),),
    rounds=3,
    shows_cpu=True,
    is_long=True,
)

IDLE = Row(
    name="idle",
    section="memory",
    work="one job on an idle scheduler: submit to start",
    figure="p50_us",
    unit="µs",
    also=("p99_us",),
    contenders=(
        _limit("starts", 100, name="create_task", jobs=400),
        _ours("starts", 100, jobs=400),
        _peer(TASKIQ, "taskiq:starts", 50, jobs=400),
        _peer(APSCHEDULER, "apscheduler:starts", 50, jobs=400),
        _peer(DRAMATIQ, "dramatiq:starts", 50, jobs=400),
        _peer(
            "huey, memory, polling every 1 ms (0.1 s as it comes)", "huey:starts", 50, jobs=400, poll_s=0.001
        ),
    ),
    targets=(Target(at_most=40),),
)

STEADY = Row(
    name="steady",
    section="memory",
    work="2,000 jobs a second for two seconds, ten every 5 ms: submit to start",
    figure="p50_us",
    unit="µs",
    also=("p99_us",),
    contenders=(
        _limit("starts", 400, name="create_task", jobs=4_000, per_second=2_000),
        _ours("starts", 400, jobs=4_000, per_second=2_000),
        _peer(TASKIQ, "taskiq:starts", 400, jobs=4_000, per_second=2_000),
        _peer(APSCHEDULER, "apscheduler:starts", 400, jobs=4_000, per_second=2_000),
    ),
)

THREADS = Row(
    name="threads",
    section="memory",
    work="no-op functions in threads, 100 in flight",
    contenders=(
        _limit("threads", 2_000, name="run_in_executor, windows of 100", jobs=20_000, workers=100),
        _ours("threads", 2_000, jobs=20_000, workers=100),
        _peer(DRAMATIQ, "dramatiq:burst", 1_000, jobs=10_000),
    ),
    targets=(Target(against="run_in_executor, windows of 100", at_least=0.5),),
    shows_cpu=True,
)


def _weight(name: str, *, traced: bool, targets: tuple[Target, ...]) -> Row:
    how = "as tracemalloc counts it" if traced else "as the resident memory of the process grows"
    limit = _limit("weigh", 5_000, name="slots record, dict and heap entry", jobs=WEIGHED, traced=traced)
    return Row(
        name=name,
        section="memory",
        work=f"memory of one pending job whose time has not come, of 50,000 (peers: 5,000), {how}",
        figure="bytes",
        unit="B",
        contenders=(
            limit,
            _ours("weigh", 5_000, jobs=WEIGHED, traced=traced),
            _peer("huey, memory (pickled)", "huey:weigh", 2_000, jobs=WEIGHED // 10, traced=traced),
            _peer(APSCHEDULER, "apscheduler:weigh", 1_000, jobs=WEIGHED // 10, traced=traced),
        ),
        targets=targets,
        rounds=3,
    )


TRACED = _weight("weight", traced=True, targets=(Target(at_most=700),))
RESIDENT = _weight("resident", traced=False, targets=())

QUEUE_LIMIT = "heapq: push + pop"
QUEUE = Row(
    name="queue",
    section="memory",
    work="`TaskQueue` with 100,000 pending: `schedule` + `next`",
    unit="tasks/s",
    contenders=(
        Contender(name=QUEUE_LIMIT, role="limit", call="task_queue:run", params={"which": "limit"}),
        Contender(
            name="Betimes: TaskQueue", role="ours", call="task_queue:run", params={"which": "schedule_next"}
        ),
        Contender(
            name="TaskQueue: schedule + next + finish",
            role="variant",
            call="task_queue:run",
            params={"which": "schedule_next_finish"},
        ),
    ),
    targets=(Target(against=QUEUE_LIMIT, at_least=0.3),),
)

ROWS = (BURST, GROWTH, IDLE, STEADY, TRACED, RESIDENT, QUEUE, THREADS)
