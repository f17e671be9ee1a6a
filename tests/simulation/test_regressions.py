"""Faults that the simulation has found, each as the shortest story that shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.simulation.loops import pass_time

from betimes import Scheduler
from betimes.core.job import Job, JobStatus
from betimes.errors import SchedulerClosed, StoreUnavailable
from betimes.ports import Beat, CancelAnswer, Cancellation, ClaimRequest, Exchange, Report
from betimes.stores.memory import MemoryStore
from betimes.testing import VirtualClock, run_virtual

COMPLETED, TIMED_OUT, CANCELLED = JobStatus.COMPLETED, JobStatus.TIMED_OUT, JobStatus.CANCELLED


async def hold_out(seconds: float) -> None:
    """Let time pass, whoever cancels."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while (left := until - loop.time()) > 0:
        try:
            await pass_time(left)
        except asyncio.CancelledError:
            continue


def test_p26_a_newer_version_waits_for_the_older_ones_code_also_after_its_timeout() -> None:
    async def main(clock: VirtualClock) -> list[tuple[str, float]]:
        seen: list[tuple[str, float]] = []
        scheduler = Scheduler(clock=clock, watchdog=None)

        @scheduler.task(name="job")
        async def job(which: str) -> None:
            seen.append((f"{which} begins", clock.monotonic()))
            await hold_out(3.0 if which == "old" else 0.0)
            seen.append((f"{which} ends", clock.monotonic()))

        async with scheduler:
            old = await job.using(job_id="x", timeout=1.0).submit("old")
            await pass_time(0.5)
            new = await job.using(job_id="x", replace=True).submit("new")
            assert await old.wait() is TIMED_OUT
            assert clock.monotonic() == 1.0
            assert await new.wait() is COMPLETED
        return seen

    clock = VirtualClock()
    seen = run_virtual(main(clock), clock=clock)
    assert seen == [("old begins", 0.0), ("old ends", 3.0), ("new begins", 3.0), ("new ends", 3.0)]


def test_p26_a_job_abandoned_and_taken_back_by_others_waits_for_its_code_that_still_runs_here() -> None:
    async def main(clock: VirtualClock) -> list[str]:
        seen: list[str] = []
        store = MemoryStore(clock=clock)
        here = Scheduler(store, clock=clock, watchdog=None)
        there = Scheduler(store, clock=clock, watchdog=None)

        @here.task(name="job")
        async def job() -> None:
            seen.append("begins")
            await hold_out(2.0)
            seen.append("ends")

        async with here, there.client():
            handle = await job.submit()
            await pass_time(0.5)
            assert await (await there.job(handle.id)).cancel(abandon=True) is CancelAnswer.CANCELLED
            await there.retry(handle.id)
            assert await handle.wait() is COMPLETED
            assert (await here.metrics()).store_errors == 0
        return seen

    clock = VirtualClock()
    assert run_virtual(main(clock), clock=clock) == ["begins", "ends", "begins", "ends"]


class _LosesOneReply(MemoryStore):
    """The reply to the first claim comes late, then not at all; after the beat that follows somebody acts."""

    def __init__(self, *, clock: VirtualClock) -> None:
        super().__init__(clock=clock)
        self.is_claimed, self.goes_on = asyncio.Event(), asyncio.Event()
        self.has_lost = False

    async def exchange(
        self, reports: Sequence[Report], claim: ClaimRequest | None, returned: Sequence[tuple[int, int]] = ()
    ) -> Exchange:
        exchange = await super().exchange(reports, claim, returned)
        if exchange.claimed and not self.has_lost:
            self.has_lost = True
            self.is_claimed.set()
            await self.goes_on.wait()
            raise StoreUnavailable("the reply was lost")
        return exchange

    async def beat(self, worker: str, held: Mapping[int, int], running: Mapping[int, int]) -> Beat:
        beat = await super().beat(worker, held, running)
        for event in beat.changes:
            job = await self.find(event.job_id)
            assert job is not None
            assert job.status is CANCELLED, "the cancel came before it had started"
            await self.retry(job, by="somebody who is fast")
        return beat


def test_p13_a_cancel_of_a_claim_that_was_lost_does_not_cancel_what_is_taken_back_later() -> None:
    async def main(clock: VirtualClock) -> tuple[CancelAnswer, JobStatus]:
        store = _LosesOneReply(clock=clock)
        scheduler = Scheduler(store, clock=clock, watchdog=None)

        @scheduler.task(name="job")
        async def job() -> None:
            return None

        async with scheduler:
            handle = await job.submit()
            await store.is_claimed.wait()
            answer = await handle.cancel()
            store.goes_on.set()
            await pass_time(60.0)
            return answer, await handle.status()

    clock = VirtualClock()
    assert run_virtual(main(clock), clock=clock) == (CancelAnswer.REQUESTED, COMPLETED)


class _HoldsTurns(MemoryStore):
    """Once it has a gate, the turns of new workers wait before it."""

    def __init__(self, *, clock: VirtualClock) -> None:
        super().__init__(clock=clock)
        self.gate: asyncio.Event | None = None
        self.early: set[str] = set()

    async def exchange(
        self, reports: Sequence[Report], claim: ClaimRequest | None, returned: Sequence[tuple[int, int]] = ()
    ) -> Exchange:
        if claim is not None and self.gate is None:
            self.early.add(claim.worker)
        elif claim is not None and self.gate is not None and claim.worker not in self.early:
            await self.gate.wait()
        return await super().exchange(reports, claim, returned)


def test_p13_a_cancel_speaks_of_the_attempt_that_ran_and_not_of_one_that_was_claimed_since() -> None:
    async def main(clock: VirtualClock) -> list[str]:
        seen: list[str] = []
        store = _HoldsTurns(clock=clock)
        here, there = (Scheduler(store, clock=clock, watchdog=None) for _ in range(2))

        def register(scheduler: Scheduler, name: str) -> Any:
            async def job() -> None:
                seen.append(f"{name} begins")
                await hold_out(5.0 if name == "there" else 0.0)
                seen.append(f"{name} ends")

            return scheduler.task(name="job")(job)

        register(here, "here")
        job = register(there, "there")
        async with there:
            handle = await job.submit()
            await pass_time(0.5)
            store.gate = asyncio.Event()
            async with here:
                await pass_time(0.5)
                assert await here.cancel(handle.id) is CancelAnswer.REQUESTED
                assert await there.cancel(handle.id, abandon=True) is CancelAnswer.CANCELLED
                await there.retry(handle.id)
                store.gate.set()
                assert await (await here.job(handle.id)).wait() is COMPLETED
        return seen

    clock = VirtualClock()
    assert run_virtual(main(clock), clock=clock) == ["there begins", "here begins", "here ends", "there ends"]


class _CannotCancel(MemoryStore):
    """Cancels do not get through."""

    async def cancel(self, job: Job, *, reason: str, abandon: bool = False) -> Cancellation:
        raise StoreUnavailable("the request was lost")


def test_p21_a_stop_whose_cancels_are_lost_gives_back_what_it_cannot_cancel() -> None:
    async def main(clock: VirtualClock) -> tuple[JobStatus, list[str]]:
        scheduler = Scheduler(_CannotCancel(clock=clock), clock=clock, watchdog=None, grace=1.0)

        @scheduler.task(name="job")
        async def job() -> None:
            await pass_time(60.0)

        async with scheduler:
            handle = await job.submit()
            await pass_time(1.0)
            await scheduler.stop(cancel_running=True)
        async with scheduler.client():
            info = await handle.info()
            return info.status, [attempt.outcome for attempt in info.attempts]

    clock = VirtualClock()
    assert run_virtual(main(clock), clock=clock) == (JobStatus.READY, ["given_back"])


class _AnswersLate(MemoryStore):
    """A look at a job takes a second."""

    async def get(self, job: Job) -> Job | None:
        await pass_time(1.0)
        return await super().get(job)


def test_whoever_begins_to_wait_while_the_scheduler_stops_is_told_so() -> None:
    async def main(clock: VirtualClock) -> set[str]:
        scheduler = Scheduler(_AnswersLate(clock=clock), clock=clock, watchdog=None)

        @scheduler.task(name="job")
        async def job() -> None:
            return None

        async with scheduler:
            handle = await job.using(delay="1h").submit()
            waiter = asyncio.ensure_future(handle.wait())
            await pass_time(0.5)
        with pytest.raises(SchedulerClosed):
            await waiter
        return {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("betimes")}

    clock = VirtualClock()
    assert run_virtual(main(clock), clock=clock) == set()


def test_a_wait_that_a_stop_has_ended_leaves_nothing_behind_after_the_next_start() -> None:
    async def main(clock: VirtualClock) -> set[str]:
        scheduler = Scheduler(_AnswersLate(clock=clock), clock=clock, watchdog=None)

        @scheduler.task(name="job")
        async def job() -> None:
            return None

        async with scheduler.client():
            handle = await job.using(delay="1h").submit()
            first = asyncio.ensure_future(handle.wait())
            await pass_time(0.5)
        async with scheduler.client():
            second = asyncio.ensure_future(handle.wait())
            await pass_time(5.0)
        for waiter in (first, second):
            with pytest.raises(SchedulerClosed):
                await waiter
        return {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("betimes")}

    clock = VirtualClock()
    assert run_virtual(main(clock), clock=clock) == set()
