"""Random lives of schedules on two stores at once: step by step, both must hold the same."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace
from tests.postgres.server import Server, fresh_schema

from betimes.core.events import Errored, Event, GivenBack, Succeeded
from betimes.core.job import FireKey, Job
from betimes.core.schedule import Advance, Fire, FireOutcome, Missed, Overlap, ScheduleRecord
from betimes.errors import BetimesError
from betimes.ports import JobFilter, ScheduleFilter, Store
from betimes.stores.memory import MemoryStore
from betimes.stores.postgres import PostgresStore
from betimes.stores.sqlite import SqliteStore
from betimes.testing import VirtualClock, VirtualLoop
from betimes.testing.store_contract.schedule_stage import MINUTE, SPEC
from betimes.testing.store_contract.stage import BOOM, SECOND, Stage, Taken

picks = st.integers(0, 20)
names = st.sampled_from(["a", "b"])
all_jobs = JobFilter(limit=1000)


class AlikeMachine(RuleBasedStateMachine):
    """One worker, an operator and two schedules, on a store in memory and on another."""

    def make_other(self) -> Store:
        raise AssertionError("each other store has its own machine")

    def make_runner(self) -> asyncio.Runner:
        return asyncio.Runner(loop_factory=lambda: VirtualLoop(clock=self.clock))

    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.runner = self.make_runner()
        stores: list[Store] = [MemoryStore(clock=self.clock), self.make_other()]
        self.stages = [Stage(store, self.clock) for store in stores]
        self.taken: list[dict[int, Taken]] = [{}, {}]
        self.stale: list[list[ScheduleRecord]] = [[], []]
        self.each(lambda stage: stage.store.open(strategy="priority"))
        self.each(lambda stage: stage.worker(lease_s=10**6))

    def teardown(self) -> None:
        self.each(lambda stage: stage.store.close())
        self.runner.close()

    def each(self, act: Callable[[Stage], Coroutine[Any, Any, Any]]) -> list[Any]:
        """Do the same on both, and return what came of it: a value, or the name of an error."""

        async def one(stage: Stage) -> Any:
            try:
                return await act(stage)
            except BetimesError as error:
                return type(error).__name__

        return [self.runner.run(one(stage)) for stage in self.stages]

    # schedules

    @initialize(delays=st.tuples(*[st.sampled_from([None, 5 * SECOND])] * 2))
    def save(self, delays: tuple[int | None, int | None]) -> None:
        for name, delay_us in zip("ab", delays, strict=True):
            now = self.clock.now()
            record = ScheduleRecord(id=name, spec=SPEC, next_fire_at=now, delay_us=delay_us)
            for stage in self.stages:
                self.runner.run(stage.store.save_schedule(record, expected_version=None))

    @rule(
        name=names,
        overlap=st.sampled_from(Overlap),
        missed=st.sampled_from(Missed),
        flags=st.integers(0, 7),
        delay_s=st.sampled_from([0, 0, 3]),
    )
    def fire(self, name: str, overlap: Overlap, missed: Missed, flags: int, delay_s: int) -> None:
        """Carry out a step as it is seen, or as it was seen before, or twice in one batch."""

        async def step(stage: Stage) -> Any:
            seen = await stage.store.schedule(name)
            assert seen is not None
            stale = self.stale[self.stages.index(stage)]
            stale.append(seen)
            if flags == 7:
                seen = stale[0]
            if seen.next_fire_at is None:
                return None
            advance = Advance(
                record=seen,
                overlap=overlap,
                missed=missed,
                due=(new_job(stage, seen, seen.next_fire_at, delay_s),),
                skips=(skipped(seen.next_fire_at - SECOND, stage.now),) if flags & 2 else (),
                next_fire_at=None if seen.delay_us else seen.next_fire_at + MINUTE,
                is_late=bool(flags & 1),
            )
            return await carry_out(stage, [advance, advance] if flags & 4 else [advance])

        self.compare(self.each(step))

    @rule(name=names, overlap=st.sampled_from(Overlap))
    def run_by_hand(self, name: str, overlap: Overlap) -> None:
        async def step(stage: Stage) -> Any:
            seen = await stage.store.schedule(name)
            assert seen is not None
            job = new_job(stage, seen, stage.now, by_hand=True)
            advance = Advance(record=seen, overlap=overlap, due=(job,), by_hand=True)
            return await carry_out(stage, [advance])

        self.compare(self.each(step))

    @rule(name=names, is_paused=st.booleans(), back_s=st.sampled_from([0, 0, 60]))
    def change(self, name: str, is_paused: bool, back_s: int) -> None:
        """Pause or resume a schedule, and perhaps set it back by an instant."""

        async def save(stage: Stage) -> Any:
            seen = await stage.store.schedule(name)
            assert seen is not None
            at = seen.next_fire_at
            changed = replace(
                seen, paused=is_paused, next_fire_at=None if at is None else at - back_s * SECOND
            )
            return await stage.store.save_schedule(changed, expected_version=seen.version)

        self.compare(self.each(save))

    # work

    @rule(limit=st.integers(1, 3))
    def claim(self, limit: int) -> None:
        for number, taken in enumerate(self.each(lambda stage: stage.claim(limit))):
            self.taken[number].update({one.job.seq: one for one in taken})

    @precondition(lambda self: self.taken[0])
    @rule(pick=picks, kind=st.sampled_from(["done", "failed", "again", "back"]))
    def report(self, pick: int, kind: str) -> None:
        seq = sorted(self.taken[0])[pick % len(self.taken[0])]
        now = self.clock.now()
        events: dict[str, Event] = {
            "done": Succeeded(now, b"1"),
            "failed": Errored(now, BOOM),
            "again": Errored(now, BOOM, 3 * SECOND),
            "back": GivenBack(now),
        }
        for number, stage in enumerate(self.stages):
            taken = self.taken[number].pop(seq)
            self.runner.run(stage.report(taken, events[kind]))

    @precondition(lambda self: self.stages[0].statuses)
    @rule(pick=picks, kind=st.sampled_from(["cancel", "cancel", "abandon", "retry"]))
    def operate(self, pick: int, kind: str) -> None:
        seqs = sorted(self.stages[0].statuses)
        seq = seqs[-1 - pick % len(seqs)]

        async def act(stage: Stage) -> Any:
            (job,) = [each for each in await stage.store.jobs(all_jobs) if each.seq == seq]
            if kind == "retry":
                stage.see(await stage.store.retry(job, by="ops"))
                return None
            return (await stage.cancel(job, abandon=kind == "abandon")).answer

        answers = self.each(act)
        assert answers[0] == answers[1]

    @rule(seconds=st.sampled_from([1, 5, 60]))
    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.each(lambda stage: stage.turn())

    # comparing

    def compare(self, answers: list[Any]) -> None:
        assert answers[0] == answers[1]

    @invariant()
    def both_hold_the_same(self) -> None:
        memory, other = self.each(seen)
        assert memory == other

    @invariant()
    def nothing_is_stuck(self) -> None:
        """Who waits for the end of a run waits for one that is live."""
        for record, live in self.runner.run(waiting(self.stages[1])):
            assert record.awaits is None or record.awaits in live, record
            assert record.held_at is None or live, record


async def waiting(stage: Stage) -> list[tuple[ScheduleRecord, set[int]]]:
    """The schedules, each with those of its jobs that are live."""
    live = [job for job in await stage.store.jobs(all_jobs) if job.fire and not job.status.is_terminal]
    return [
        (record, {job.seq for job in live if job.fire and job.fire.schedule == record.id})
        for record in await stage.store.schedules(ScheduleFilter())
    ]


async def carry_out(stage: Stage, advances: list[Advance]) -> list[Any]:
    """Carry out steps; return what can be compared of the answers."""
    answers, changes = await stage.store.fire(advances)
    stage.see(changes)
    return [
        None if fired is None else (fired.record, fired.fires, [job.seq for job in fired.jobs])
        for fired in answers
    ]


async def seen(stage: Stage) -> object:
    """All that there is to see of a store's schedules and jobs."""
    records = await stage.store.schedules(ScheduleFilter())
    jobs = await stage.store.jobs(all_jobs)
    return (
        records,
        [sorted(await stage.store.fires(each.id, limit=1000), key=_place) for each in records],
        {job.seq: (job.status, job.fire, job.unmet, job.cancel_requested, job.reason) for job in jobs},
        await stage.store.next_fire(),
    )


def _place(fire: Fire) -> tuple[int, bool, str]:
    """Fires of one instant stand in any order."""
    return -fire.at, fire.outcome is FireOutcome.BY_HAND, fire.job_id or ""


def new_job(
    stage: Stage, record: ScheduleRecord, at: int, delay_s: float = 0.0, *, by_hand: bool = False
) -> Job:
    """The job that an instant is to become."""
    job = stage.job(delay_s=delay_s)
    job.fire = FireKey(record.id, at, by_hand)
    return job


def skipped(at: int, now: int) -> Fire:
    """Instants before one that is due."""
    return Fire(at=at, first_at=at, count=3, outcome=FireOutcome.MERGED, decided_at=now)


class FileMachine(AlikeMachine):
    def make_other(self) -> Store:
        self.folder = Path(tempfile.mkdtemp(prefix="betimes-model-"))
        return SqliteStore(self.folder / "jobs.db", clock=self.clock, inline=True)

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.folder)


class ServerMachine(AlikeMachine):
    server: ClassVar[Server]

    def make_runner(self) -> asyncio.Runner:
        return asyncio.Runner()  # what goes on in threads is waited for

    def make_other(self) -> Store:
        self.schema = ExitStack()
        url = self.schema.enter_context(fresh_schema(self.server))
        return PostgresStore(url, clock=self.clock, max_stall_us=0, goes_by_clock=True)

    def teardown(self) -> None:
        super().teardown()
        self.schema.close()


def live(machine: type[AlikeMachine], examples: int) -> None:
    """Play so many random lives."""
    TestCase = machine.TestCase  # noqa: N806 - hypothesis's own name
    phases = set(Phase) - {Phase.explain}  # which traces every line, and is slow
    TestCase.settings = settings(max_examples=examples, stateful_step_count=50, phases=phases)
    TestCase().runTest()


@pytest.mark.timeout(400)  # it takes seconds; but when it fails, it looks for the shortest way to fail
def test_p18_memory_and_file_agree_on_every_step_of_a_schedule() -> None:
    live(FileMachine, 60)


@pytest.mark.timeout(400)  # as above
def test_p18_memory_and_server_agree_on_every_step_of_a_schedule(postgres: Server) -> None:
    ServerMachine.server = postgres
    live(ServerMachine, 25)
