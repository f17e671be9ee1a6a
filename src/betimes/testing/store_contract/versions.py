"""Replacement: the newest version of an id is the only one that can start, and never beside an older one."""

from __future__ import annotations

from betimes.core.events import DeadlinePassed, Errored, Event, GivenBack, Snoozed, Succeeded, Withdrawn
from betimes.core.job import Job, JobStatus, Terms
from betimes.errors import DuplicateJob
from betimes.ports import CancelAnswer
from betimes.testing.store_contract.stage import BOOM, Stage, Taken, played, refused

BLOCKED, DELAYED, READY, RUNNING = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY, JobStatus.RUNNING
COMPLETED, FAILED = JobStatus.COMPLETED, JobStatus.FAILED
TIMED_OUT, CANCELLED = JobStatus.TIMED_OUT, JobStatus.CANCELLED


async def replaced_while_running(stage: Stage, **options: object) -> tuple[Taken, Job]:
    """A running version, and the newer one that waits for it."""
    old = await stage.start("x")
    new = await stage.add("x", replace_older=True, **options)
    assert await stage.statuses_of(old.job, new) == [RUNNING, BLOCKED]
    return old, new


class VersionContract:
    """What `replace` promises."""

    async def _replaces(self, stage: Stage, old: Job) -> None:
        new = await stage.add(old.id, replace_older=True)
        gone = await stage.state(old)
        assert (gone.status, gone.reason) == (CANCELLED, "replaced")
        assert await stage.status(new) is READY
        found = await stage.store.find(old.id)
        assert found is not None
        assert found.seq == new.seq
        await stage.worker("w2")
        assert [taken.job.seq for taken in await stage.claim(worker="w2")] == [new.seq]
        assert old.seq not in {taken.job.seq for taken in await stage.claim(worker="w2")}

    @played
    async def test_a_ready_version_is_replaced(self, stage: Stage) -> None:
        await self._replaces(stage, await stage.add("x"))

    @played
    async def test_a_delayed_version_is_replaced(self, stage: Stage) -> None:
        await self._replaces(stage, await stage.add("x", delay_s=5))

    @played
    async def test_a_blocked_version_is_replaced(self, stage: Stage) -> None:
        parent = await stage.add(delay_s=5)
        await self._replaces(stage, await stage.add("x", depends_on=[parent]))

    @played
    async def test_a_parked_version_is_replaced(self, stage: Stage) -> None:
        taken = await stage.start("x")
        await stage.report(taken, GivenBack(stage.now, parked="p"))
        await self._replaces(stage, taken.job)
        assert await stage.store.parked() == {}

    @played
    async def test_a_version_that_waits_for_its_retry_is_replaced(self, stage: Stage) -> None:
        taken = await stage.start("x")
        await stage.report(taken, Errored(stage.now, BOOM, retry_in_us=10**9))
        await self._replaces(stage, taken.job)

    @played
    async def test_a_finished_version_stays_as_it_is(self, stage: Stage) -> None:
        for event in (Succeeded(stage.now, b"1"), Errored(stage.now, BOOM), DeadlinePassed(stage.now, BOOM)):
            taken = await stage.start("x")
            step = await stage.report(taken, event)
            new = await stage.add("x", replace_older=True)
            assert step is not None
            assert await stage.statuses_of(taken.job, new) == [step.after, READY]
            await stage.cancel(new)

    @played
    async def test_a_new_id_may_be_submitted_with_replace(self, stage: Stage) -> None:
        assert await stage.status(await stage.add("x", replace_older=True)) is READY

    async def _waits_for(self, stage: Stage, event: Event, ends: JobStatus) -> None:
        old, new = await replaced_while_running(stage)
        assert await stage.claim() == [], "the new version waits until the old code has returned"
        await stage.report(old, event)
        assert await stage.statuses_of(old.job, new) == [ends, READY]
        assert [taken.job.seq for taken in await stage.claim()] == [new.seq]

    @played
    async def test_a_new_version_starts_when_the_old_one_has_completed(self, stage: Stage) -> None:
        await self._waits_for(stage, Succeeded(stage.now, b"1"), COMPLETED)

    @played
    async def test_a_replaced_version_is_not_retried_after_an_error(self, stage: Stage) -> None:
        await self._waits_for(stage, Errored(stage.now, BOOM, retry_in_us=0), FAILED)

    @played
    async def test_a_replaced_version_is_not_retried_after_a_timeout(self, stage: Stage) -> None:
        await self._waits_for(stage, DeadlinePassed(stage.now, BOOM, retry_in_us=0), TIMED_OUT)

    @played
    async def test_a_replaced_version_does_not_snooze(self, stage: Stage) -> None:
        await self._waits_for(stage, Snoozed(stage.now, 0), CANCELLED)

    @played
    async def test_a_replaced_version_that_is_given_back_is_over(self, stage: Stage) -> None:
        await self._waits_for(stage, GivenBack(stage.now), CANCELLED)

    @played
    async def test_a_replaced_version_may_cancel_itself(self, stage: Stage) -> None:
        await self._waits_for(stage, Withdrawn(stage.now, "enough"), CANCELLED)

    @played
    async def test_a_replaced_version_whose_worker_dies_is_over(self, stage: Stage) -> None:
        old, new = await replaced_while_running(stage)
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        assert await stage.statuses_of(old.job, new) == [CANCELLED, READY]

    @played
    async def test_a_replaced_version_whose_worker_retires_is_over(self, stage: Stage) -> None:
        old, new = await replaced_while_running(stage)
        stage.see(await stage.store.retire("w1"))
        assert await stage.statuses_of(old.job, new) == [CANCELLED, READY]

    @played
    async def test_a_replaced_version_may_be_abandoned(self, stage: Stage) -> None:
        old, new = await replaced_while_running(stage)
        await stage.cancel(old.job, abandon=True)
        assert await stage.statuses_of(old.job, new) == [CANCELLED, READY]

    @played
    async def test_a_chain_of_three_leaves_only_the_newest_to_start(self, stage: Stage) -> None:
        old, second = await replaced_while_running(stage)
        third = await stage.add("x", replace_older=True)
        assert await stage.statuses_of(old.job, second, third) == [RUNNING, CANCELLED, BLOCKED]
        await stage.report(old, Succeeded(stage.now, b"1"))
        assert await stage.statuses_of(old.job, second, third) == [COMPLETED, CANCELLED, READY]
        assert [taken.job.seq for taken in await stage.claim()] == [third.seq]

    @played
    async def test_the_old_version_is_waited_for_though_the_one_between_was_cancelled(
        self, stage: Stage
    ) -> None:
        old, second = await replaced_while_running(stage)
        assert (await stage.cancel(second)).answer is CancelAnswer.CANCELLED
        third = await stage.add("x", replace_older=True)
        assert await stage.status(third) is BLOCKED
        await stage.report(old, Succeeded(stage.now, b"1"))
        assert await stage.status(third) is READY

    @played
    async def test_an_id_whose_older_version_still_runs_is_taken(self, stage: Stage) -> None:
        _, second = await replaced_while_running(stage)
        await stage.cancel(second)
        with refused(DuplicateJob):
            await stage.store.submit([stage.job("x")])
        with refused(DuplicateJob):
            await stage.store.retry(second, by="ops")

    @played
    async def test_a_new_version_waits_for_its_dependencies_too(self, stage: Stage) -> None:
        parent = await stage.add(delay_s=60)
        old, new = await replaced_while_running(stage, depends_on=[parent])
        await stage.report(old, Succeeded(stage.now, b"1"))
        assert await stage.status(new) is BLOCKED
        assert (await stage.state(new)).depends_on == (parent.id,), "the old version is not a dependency"
        stage.advance(60)
        (taken,) = await stage.claim(worker=await stage.worker("w2"))
        await stage.report(taken, Succeeded(stage.now, b"1"))
        assert await stage.status(new) is READY

    @played
    async def test_a_new_version_waits_for_its_time_too(self, stage: Stage) -> None:
        old, new = await replaced_while_running(stage, delay_s=60)
        await stage.report(old, Succeeded(stage.now, b"1"))
        assert await stage.status(new) is DELAYED

    @played
    async def test_cancelling_the_new_version_leaves_the_old_one_to_its_end(self, stage: Stage) -> None:
        old, new = await replaced_while_running(stage)
        await stage.cancel(new)
        await stage.report(old, Succeeded(stage.now, b"1"))
        assert await stage.statuses_of(old.job, new) == [COMPLETED, CANCELLED]

    @played
    async def test_within_a_batch_the_later_one_replaces_the_earlier(self, stage: Stage) -> None:
        first, second = await stage.submit(
            stage.job("x", replace_older=True), stage.job("x", replace_older=True)
        )
        assert await stage.statuses_of(first, second) == [CANCELLED, READY]
        assert (await stage.state(first)).reason == "replaced"

    @played
    async def test_what_depends_on_a_replaced_version_is_cancelled(self, stage: Stage) -> None:
        old = await stage.add("x", delay_s=5)
        child = await stage.add(depends_on=[old])
        await stage.add("x", replace_older=True)
        assert await stage.status(child) is CANCELLED

    @played
    async def test_what_depends_on_a_running_version_waits_for_that_version(self, stage: Stage) -> None:
        old = await stage.start("x")
        child = await stage.add(depends_on=[old.job])
        new = await stage.add("x", replace_older=True)
        await stage.report(old, Succeeded(stage.now, b"1"))
        assert await stage.statuses_of(child, new) == [READY, READY]

    @played
    async def test_a_replacement_whose_reply_was_lost_replaces_once(self, stage: Stage) -> None:
        await stage.add("x")
        new = stage.job("x", replace_older=True, terms=Terms(token="t1"))
        (kept,) = await stage.submit(new)
        (found,) = await stage.submit(new)
        assert (found.seq, await stage.status(kept)) == (kept.seq, READY)
