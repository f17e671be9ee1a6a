"""Two transactions in one another's way, step by step: what one has read is no longer so when it writes.

Each test is one interleaving under READ COMMITTED that a crowd of stores meets once in a blue moon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from betimes.core.events import DeadlinePassed
from betimes.core.job import ErrorInfo, Job, JobSpec
from betimes.core.limits import GateKind, GateTerms
from betimes.core.schedule import Fire, FireOutcome
from betimes.ports import ClaimRequest, Report, WorkerInfo
from betimes.stores.postgres import PostgresStore
from betimes.stores.postgres.statements import PostgresSql
from betimes.stores.postgres.target import target_of
from betimes.stores.postgres.wire import Wire
from betimes.stores.relational import leases
from betimes.stores.relational.arrivals import insert_plain
from betimes.stores.relational.rows import Specs, array
from betimes.stores.relational.schedule_rows import fire_row
from betimes.stores.relational.turn import Turn
from betimes.stores.relational.upkeep import SetBack
from betimes.testing import VirtualClock

SECOND = 1_000_000
HOUR = 3600 * SECOND
pass_time = asyncio.sleep  # noqa: TID251 - the server needs a moment of real time
LIMIT = GateTerms(kind=GateKind.LIMIT, name="l", max_running=1)
RATE = GateTerms(kind=GateKind.RATE, name="r", every_us=HOUR, burst=2)


class LeftRunning(Report):
    """Of an attempt whose code has not returned."""

    __slots__ = ()
    has_returned = False


class Scene:
    """A store with a worker of its own, and a wire whose transaction the test goes through by hand."""

    def __init__(self, store: PostgresStore, clock: VirtualClock, wire: Wire, url: str) -> None:
        self.store = store
        self.clock = clock
        self.wire = wire
        self.sql = PostgresSql(wire)
        self._url = url

    def job(self, job_id: str, gate: GateTerms) -> Job:
        """A new job under a gate."""
        now = self.store.now()
        job = Job(job_id, JobSpec(task="t"), b"{}", submitted_at=now, run_at=now)
        job.gates = (gate.rule,)
        return job

    async def claim(self, limit: int) -> list[Job]:
        """Have the worker claim."""
        request = ClaimRequest("w", limit, {"loop": limit}, None, (), None)
        return (await self.store.exchange([], request)).claimed

    def turn(self, *, now: int) -> Turn:
        """A turn of the wire's transaction, which began at this instant."""
        return Turn(self.sql, Specs(), now=now, boottime=now, boot_id="", hints=set(), set_back=SetBack())

    def seen(self, query: str) -> list[tuple[Any, ...]]:
        """What a bystander sees."""
        with psycopg.connect(self._url.partition("?")[0], autocommit=True) as conn:
            conn.execute(f"SET search_path TO {self.store.schema}")
            return conn.execute(query).fetchall()

    async def until_done_or_stuck(self, task: asyncio.Task[Any]) -> None:
        """Wait until a call has ended, or waits for a lock of the wire's."""
        pid = self.wire.conn.info.backend_pid
        query = f"SELECT FROM pg_stat_activity WHERE {pid} = ANY (pg_blocking_pids(pid))"
        while not (task.done() or self.seen(query)):
            await pass_time(0.005)


def play(url: str, scene: Callable[[Scene], Coroutine[Any, Any, None]], *, by_clock: bool = True) -> None:
    async def main() -> None:
        clock = VirtualClock()
        store = PostgresStore(url, clock=clock, max_stall_us=0, goes_by_clock=by_clock)
        await store.open(strategy="priority")
        await store.register(WorkerInfo(id="w", lease_us=24 * HOUR))
        try:
            with opened(url) as wire:
                await scene(Scene(store, clock, wire, url))
        finally:
            await store.close()

    asyncio.run(main())


@contextmanager
def opened(url: str) -> Iterator[Wire]:
    wire = Wire(target_of(url), monotonic=lambda: 0.0)
    try:
        yield wire
    finally:
        wire.close()


def test_p19_a_permit_kept_while_its_worker_is_declared_dead_does_not_outlive_it(postgres_url: str) -> None:
    async def scene(play: Scene) -> None:
        await play.store.declare_gates([LIMIT])
        await play.store.submit([play.job("a", LIMIT)])
        (job,) = await play.claim(1)
        play.wire.begin()
        (lease_until,) = play.sql.execute("workers").fetchall()[0][9:10]
        assert play.sql.execute(leases.DECLARE_DEAD, ("w", lease_until)).rowcount == 1
        play.sql.execute(leases.RETURN_PERMITS_OF, ("w", array(())))
        # Only now the worker says that the job is over, and that its code runs on.
        error = ErrorInfo(type="TimeoutError", message="after 1 s")
        report = LeftRunning(job, job.fence, DeadlinePassed(play.store.now(), error))
        call = asyncio.create_task(play.store.exchange([report], None))
        await play.until_done_or_stuck(call)
        if not play.sql.execute(leases.HOLDS_ANY, ("w",)).fetchone()[0]:
            play.sql.execute(leases.DELETE_WORKER, ("w",))
        play.wire.commit()
        await call
        await play.store.rescue(["t"])
        assert play.seen("SELECT seq FROM betimes_permit") == []

    play(postgres_url, scene)


def test_p19_a_rate_goes_by_the_time_at_which_it_is_charged_not_when_the_transaction_began(
    postgres_url: str,
) -> None:
    async def scene(play: Scene) -> None:
        await play.store.declare_gates([RATE])
        await play.store.submit([play.job(name, RATE) for name in "abc"])
        assert len(await play.claim(3)) == 2
        full_at = play.seen("SELECT full_at FROM betimes_gate")
        # Its beginning lies two hours back: it has waited for locks, and then it looks at the gate.
        turn = play.turn(now=play.wire.begin() - 2 * HOUR)
        turn.lines.gates.load([RATE.rule])
        turn.flush()
        play.wire.commit()
        assert play.seen("SELECT full_at FROM betimes_gate") == full_at

    play(postgres_url, scene, by_clock=False)


def test_p19_pruning_forgets_no_rate_that_is_just_being_charged(postgres_url: str) -> None:
    async def scene(play: Scene) -> None:
        await play.store.declare_gates([RATE])
        play.wire.begin()
        play.sql.write("write_gate", [(RATE.rule, play.store.now() - 1, 0, None)])
        play.wire.commit()
        play.wire.begin()
        play.sql.write("write_gate", [(RATE.rule, play.store.now() + HOUR, 0, None)])
        call = asyncio.create_task(play.store.prune(keep_us=0))
        await play.until_done_or_stuck(call)
        play.wire.commit()
        await call
        assert play.seen("SELECT full_at FROM betimes_gate") == [(play.store.now() + HOUR,)]

    play(postgres_url, scene)


def test_pruning_forgets_no_tenant_whose_share_is_just_being_spent(postgres_url: str) -> None:
    async def scene(play: Scene) -> None:
        play.wire.begin()
        play.sql.write("write_finish", [("acme", 0)])
        play.wire.commit()
        play.wire.begin()
        play.sql.write("write_finish", [("acme", 10**9)])
        call = asyncio.create_task(play.store.prune(keep_us=0))
        await play.until_done_or_stuck(call)
        play.wire.commit()
        await call
        assert play.seen("SELECT name, finish FROM betimes_tenant") == [("acme", 10**9)]

    play(postgres_url, scene)


def test_p03_pruning_forgets_no_key_that_is_just_being_remembered_anew(postgres_url: str) -> None:
    async def scene(play: Scene) -> None:
        now = play.store.now()
        play.wire.begin()
        play.sql.execute("remember_key", ("k", 1, b"", now - 1))
        play.wire.commit()
        play.wire.begin()
        play.sql.execute("remember_key", ("k", 2, b"", now + HOUR))
        call = asyncio.create_task(play.store.prune(keep_us=0))
        await play.until_done_or_stuck(call)
        play.wire.commit()
        await call
        assert play.seen("SELECT key, seq FROM betimes_key") == [("k", 2)]

    play(postgres_url, scene)


def test_a_schedule_that_is_removed_while_it_fires_leaves_no_fires_behind(postgres_url: str) -> None:
    async def scene(play: Scene) -> None:
        play.wire.begin()
        play.wire.run(
            "INSERT INTO betimes_schedule (id, task, queue, lane, priority, options, payload, definition,"
            " version, paused, fired, skipped, jobs, delay_us)"
            " VALUES ('s', 't', 'default', 'loop', 1, '{}', '{}', '{}', 1, 0, 0, 0, '{}', 0)"
        )
        play.wire.commit()
        play.wire.begin()
        play.sql.read("standing_schedules", (array(["s"]),))
        call = asyncio.create_task(play.store.remove_schedule("s"))
        await play.until_done_or_stuck(call)
        at = play.store.now()
        fire = Fire(at=at, first_at=at, count=1, outcome=FireOutcome.OVERLAP, decided_at=at)
        play.sql.write("add_fire", [fire_row("s", fire)])
        play.wire.commit()
        assert await call
        assert play.seen("SELECT schedule FROM betimes_fire") == []

    play(postgres_url, scene)


def test_p20_a_job_that_is_just_being_submitted_is_ordered_anew_with_the_others(postgres_url: str) -> None:
    def last(job: Job) -> None:
        job.sort_key = 77

    async def scene(play: Scene) -> None:
        await play.store.retire("w")
        now = play.store.now()
        play.wire.begin()
        assert insert_plain(
            play.turn(now=now), [[Job("a", JobSpec(task="t"), b"{}", submitted_at=now, run_at=now)]]
        )
        call = asyncio.create_task(play.store.rekey(strategy="deadline", assign=last))
        await play.until_done_or_stuck(call)
        play.wire.commit()
        assert await call == 1
        assert play.seen("SELECT sort_key FROM betimes_job") == [(77,)]

    play(postgres_url, scene)


def test_p06_a_beat_that_was_held_up_does_not_shorten_the_lease(postgres_url: str) -> None:
    async def scene(play: Scene) -> None:
        now = play.store.now()
        for begun_at in (now, now - SECOND):
            play.wire.begin()
            assert leases.renew(play.turn(now=begun_at), "w")
            play.wire.commit()
        assert play.seen("SELECT lease_until FROM betimes_worker") == [(now + 24 * HOUR,)]

    play(postgres_url, scene)
