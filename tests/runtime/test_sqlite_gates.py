"""Gates, shares and logs in the SQLite store's own matters: older files, several processes, what is kept."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from tests.runtime.sqlite_scene import LANES, finish_all, job, look, opened

from betimes.core.events import DeadlinePassed, Errored, Event, GivenBack, Succeeded
from betimes.core.job import ErrorInfo, Job, JobSpec, JobStatus, Tenant
from betimes.core.limits import Gate, GateKind, GateTerms
from betimes.core.log import LINES_KEPT, LogLine, LogPage
from betimes.core.shares import COST, UNTAGGED
from betimes.ports import ClaimRequest, JobFilter, Report, WorkerInfo
from betimes.stores.sqlite import SqliteStore
from betimes.stores.sqlite.opening import SCHEMA_VERSION, _commands
from betimes.stores.sqlite.statements import migrations
from betimes.testing import VirtualClock

BOOM = ErrorInfo(type="E", message="boom")


def limit(name: str = "l", *, most: int = 1, by: str | None = None) -> GateTerms:
    """The terms of a limit."""
    return GateTerms(kind=GateKind.LIMIT, name=name, max_running=most, by=by)


def gated(job_id: str, *gates: str) -> Job:
    """A job behind gates."""
    given = job(job_id)
    given.gates = gates
    return given


# older files


def second_schema(path: Path) -> None:
    """A file as the second version made it, with a job that waits and one that has ended."""
    spec = "'work', 'default', 'loop', 1, NULL, '{}'"
    ended = "1, 1, 0, 'completed', 1, 1, 2, 3, NULL, 0, NULL, 'null', NULL, NULL"
    waiting = "5, 5, 0, 'ready', 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0"
    rows = [
        "INSERT INTO betimes_meta VALUES ('strategy', 'priority')",
        "UPDATE betimes_meta SET value = 2 WHERE name = 'last_seq'",
        f"INSERT INTO betimes_finished VALUES (1, 'done', {spec}, {ended})",
        f"INSERT INTO betimes_job VALUES (2, 'waits', {spec}, {waiting})",
        "INSERT INTO betimes_tally VALUES ('default', 'ready', 1)",
    ]
    commands = [command for number, text in migrations() if number <= 2 for command in _commands(text)]
    with closing(sqlite3.connect(path)) as sql:
        for command in (*commands, *rows):
            sql.execute(command)
        sql.commit()


def test_p28_a_file_of_the_second_schema_is_carried_over_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    second_schema(path)

    async def main() -> None:
        async with opened(path) as store:
            done, waits = await store.find("done"), await store.find("waits")
            assert done is not None
            assert waits is not None
            assert (done.status, done.gates, done.tenant) == (JobStatus.COMPLETED, (), None)
            assert (waits.status, waits.gates, waits.tenant) == (JobStatus.READY, (), None)
            await store.declare_gates([limit()])
            await store.submit([gated("new", "limit:l")])
            assert await finish_all(store) == 2

    asyncio.run(main())
    assert look(path, "SELECT value FROM betimes_meta WHERE name = 'schema_version'") == [(SCHEMA_VERSION,)]
    assert look(path, "PRAGMA integrity_check") == [("ok",)]


# what is written, and by whom


def test_declaring_what_is_known_writes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db", inline=True) as store:
            await store.declare_gates([limit("a"), limit("b")])
            before = store.commits
            await store.declare_gates([limit("b"), limit("a")])
            assert store.commits == before
            await store.declare_gates([limit("a", most=2)])
            assert store.commits == before + 1

    asyncio.run(main())


def test_p19_two_processes_on_one_file_share_a_limit(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db") as one, opened(tmp_path / "jobs.db") as other:
            await one.declare_gates([limit(most=3)])
            await other.submit([gated(f"job-{number}", "limit:l") for number in range(6)])
            taken = []
            for name, store in (("w1", one), ("w2", other)):
                await store.register(WorkerInfo(id=name, lease_us=30_000_000))
                taken.append((await store.exchange([], ClaimRequest(name, 2, LANES))).claimed)
            assert [len(jobs) for jobs in taken] == [2, 1]
            ((first, _), _) = taken
            await one.exchange([Report(first, first.fence, Succeeded(one.now(), b"null"))], None)
            assert len((await other.exchange([], ClaimRequest("w2", 2, LANES))).claimed) == 1

    asyncio.run(main())


def test_what_is_at_rest_leaves_no_rows_behind(tmp_path: Path) -> None:
    path, clock = tmp_path / "jobs.db", VirtualClock()

    async def main() -> None:
        store = SqliteStore(path, clock=clock, inline=True)
        await store.open(strategy="fair")
        rate = GateTerms(kind=GateKind.RATE, name="r", every_us=1_000_000, burst=100, by="x")
        await store.declare_gates([limit(most=100), rate])
        given = [
            Job(
                f"job-{n}", JobSpec(task="t"), sort_key=UNTAGGED, submitted_at=clock.now(), run_at=clock.now()
            )
            for n in range(20)
        ]
        for number, each in enumerate(given):
            each.gates = ("limit:l", f"rate:r\t{number}")
            each.tenant = Tenant(f"tenant {number % 5}", COST)
        await store.submit(given)
        assert await finish_all(store) == 20
        clock.advance(10)
        await store.submit([plain := Job("last", JobSpec(task="t"), run_at=clock.now())])
        for name in ("first", "second"):  # the second's start is behind all the others' finishes
            tagged = Job(name, JobSpec(task="t"), sort_key=UNTAGGED, run_at=clock.now())
            tagged.tenant = Tenant("somebody", 100 * COST)
            await store.submit([tagged])
        assert await finish_all(store, "w2") == 3
        await store.prune(keep_us=0)
        await store.close()
        assert plain.seq == 21

    asyncio.run(main())
    for table in ("betimes_line", "betimes_gate", "betimes_permit", "betimes_job"):
        assert look(path, f"SELECT count(*) FROM {table}") == [(0,)], table
    assert {name for (name,) in look(path, "SELECT name FROM betimes_tenant")} == {"somebody"}


def test_a_log_survives_and_goes_with_its_job(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with opened(path) as store:
            ((given,), _) = await store.submit([job("a")])
            await store.register(WorkerInfo(id="w", lease_us=30_000_000))
            (taken,) = (await store.exchange([], ClaimRequest("w", 1, LANES))).claimed
            lines = tuple(LogLine(at_us=1, attempt=1, text=f"line {n}") for n in range(LINES_KEPT + 5))
            await store.write_log([LogPage(taken, taken.fence, lines), LogPage(taken, 99, lines)])
            await store.exchange([Report(taken, taken.fence, Succeeded(store.now(), b"null"))], None)
            await store.write_log([LogPage(taken, taken.fence, lines[:1])])
        async with opened(path) as store:
            found = await store.log(given, after=LINES_KEPT + 3)
            assert [(line.number, line.text) for line in found] == [
                (LINES_KEPT + 4, f"line {LINES_KEPT + 3}"),
                (LINES_KEPT + 5, f"line {LINES_KEPT + 4}"),
                (LINES_KEPT + 6, "line 0"),
            ]
            assert len(await store.log(given, limit=2 * LINES_KEPT)) == LINES_KEPT
            assert await store.prune(keep_us=-1_000_000) == 1
            await store.write_log([LogPage(taken, taken.fence, lines)])
            assert await store.log(given) == []

    asyncio.run(main())
    assert look(path, "SELECT count(*) FROM betimes_log") == [(0,)]


# claims are what walking through all jobs in their order would give

KEYS = ("limit:a", "limit:b\tp", "limit:b\tq", "rate:r", "rate:s\tp", "rate:s\tq", "breaker:k")
RULES = (
    limit("a", most=3),
    limit("b", most=2, by="g"),
    GateTerms(kind=GateKind.RATE, name="r", every_us=3_000_000, burst=3),
    GateTerms(kind=GateKind.RATE, name="s", every_us=2_000_000, burst=2, by="g"),
    GateTerms(kind=GateKind.BREAKER, name="k", every_us=5_000_000),
)


def walk(ready: Collection[Job], gates: dict[str, Gate], request: ClaimRequest, now: int) -> list[str]:
    """What a claim must take: each job in its order, if its lane has room and all its gates are open."""
    free = dict(request.lanes)
    taken: list[str] = []
    for each in sorted(ready, key=lambda one: (one.sort_key, one.seq)):
        fits = len(taken) < request.limit and free.get(each.spec.lane, 0) > 0 and each.id not in request.hold
        served = request.queues is None or each.spec.queue in request.queues
        if fits and served and all(gates[key].is_open(now) for key in each.gates):
            for key in each.gates:
                gates[key].charge(now)
            free[each.spec.lane] -= 1
            taken.append(each.id)
    return taken


class AnyReport(Report):
    """A report that may say that the code runs on, or never ran."""

    has_begun = True
    has_returned = True


class Walk:
    """A random course on a store; each claim is compared with `walk`."""

    def __init__(self, store: SqliteStore, clock: VirtualClock, rng: Random) -> None:
        self.store, self.clock, self.rng = store, clock, rng
        self.jobs: list[Job] = []
        self.taken: list[tuple[str, Job, int]] = []
        self.left_running: list[tuple[int, int]] = []
        self.claims = 0

    async def submit(self) -> None:
        rng, now = self.rng, self.clock.now()
        given: list[Job] = []
        for _ in range(rng.randint(1, 8)):
            spec = JobSpec(task="t", queue=rng.choice("uv"), lane=rng.choice(["loop", "thread"]))
            delay = rng.choice([0, 0, 0, 5_000_000])
            name = f"j{len(self.jobs) + len(given)}"
            each = Job(name, spec, submitted_at=now, run_at=now + delay, sort_key=rng.choice([0, 0, 1, 2]))
            each.gates = tuple(rng.sample(KEYS, rng.choice([0, 1, 1, 2, 3])))
            each.expires_at = rng.choice([None, None, now + 10_000_000])
            given.append(each)
        self.jobs += (await self.store.submit(given))[0]

    async def claim(self) -> None:
        rng, now = self.rng, self.clock.now()
        worker = rng.choice(["w1", "w2"])
        mine = [one for one in self.taken if one[0] == worker]
        reports = [self.report(one) for one in rng.sample(mine, min(len(mine), rng.randint(0, 4)))]
        request = ClaimRequest(
            worker,
            rng.randint(1, 6),
            {"loop": rng.randint(0, 4), "thread": rng.randint(0, 4)},
            rng.choice([None, None, ("u",)]),
            [f"j{rng.randrange(len(self.jobs) or 1)}" for _ in range(rng.choice([0, 0, 3]))],
        )
        if rng.random() < 0.5:  # otherwise reports and claim go in one turn, and what must come is not known
            await self.store.exchange(reports, None)
            reports = []
            ready = await self.store.jobs(JobFilter(status=JobStatus.READY, limit=1000))
            gates = {view.key: view.gate for view in await self.store.gates(KEYS)}
            expected = walk(ready, gates, request, now)
            claimed = (await self.store.exchange([], request)).claimed
            assert [each.id for each in claimed] == expected
            self.claims += len(expected)
        else:
            claimed = (await self.store.exchange(reports, request)).claimed
        self.taken += [(worker, each, each.fence) for each in claimed]

    def report(self, one: tuple[str, Job, int]) -> Report:
        self.taken.remove(one)
        _, each, fence = one
        now = self.clock.now()
        events: list[Event] = [
            Succeeded(now, b"1"),
            Succeeded(now, b"1"),
            Errored(now, BOOM, 0),
            DeadlinePassed(now, BOOM, 1_000_000),
            GivenBack(now),
        ]
        report = AnyReport(each, fence, self.rng.choice(events))
        report.has_begun = not isinstance(report.event, GivenBack)
        report.has_returned = not isinstance(report.event, DeadlinePassed)
        if not report.has_returned:
            self.left_running.append((each.seq, fence))
        return report

    async def go_on(self) -> None:
        store, rng = self.store, self.rng
        kind = rng.random()
        if kind < 0.35:
            await self.submit()
        elif kind < 0.75:
            await self.claim()
        elif kind < 0.85:
            self.clock.advance(rng.choice([0.5, 1, 2, 7]))
        elif kind < 0.9 and self.left_running:
            await store.exchange([], None, [self.left_running.pop()])
        elif kind < 0.95 and self.jobs:
            await store.cancel(rng.choice(self.jobs), reason="requested")
        elif kind < 0.97:
            await store.trip("breaker:k", is_open=rng.random() < 0.5)
        else:
            await store.change_gates("limit:a", rng.choice([None, limit("a", most=rng.randint(0, 5))]))


@pytest.mark.parametrize("seed", range(12))
def test_p20_a_claim_takes_what_walking_through_all_jobs_would_give(tmp_path: Path, seed: int) -> None:
    async def main() -> None:
        clock = VirtualClock()
        store = SqliteStore(tmp_path / "jobs.db", clock=clock, inline=True)
        await store.open(strategy="any")
        await store.declare_gates(RULES)
        for name in ("w1", "w2"):
            await store.register(WorkerInfo(id=name, lease_us=10**12))
        course = Walk(store, clock, Random(seed))
        for _ in range(150):
            await course.go_on()
        assert course.claims > 10, "the course claims something"
        await store.close()

    asyncio.run(main())
