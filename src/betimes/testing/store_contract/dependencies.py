"""Waiting for other jobs: release, cascade, and nothing that stays BLOCKED for ever."""

from __future__ import annotations

from asyncio import gather

from betimes.core.events import DeadlinePassed, Errored, Event, Snoozed, Succeeded, Withdrawn
from betimes.core.job import Job, JobStatus, Need
from betimes.errors import DependencyCycle, UnknownJob
from betimes.ports import ClaimRequest, Report
from betimes.testing.store_contract.stage import BOOM, LANES, SECOND, Stage, played, refused

BLOCKED, DELAYED, READY, RUNNING = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY, JobStatus.RUNNING
COMPLETED, FAILED, CANCELLED = JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED
DEPTH = 500


def ended(job: Job | str) -> tuple[Job | str, Need]:
    """The need that a job ends, however that may be."""
    return job, Need.ENDED


async def _send(stage: Stage, report: Report) -> None:
    """Send a report until the store has taken it, as workers do."""
    while (await stage.store.exchange([report], None)).not_now:
        pass


class DependencyContract:
    """What `depends_on` promises."""

    @played
    async def test_p15_a_job_starts_only_after_all_its_dependencies_have_completed(
        self, stage: Stage
    ) -> None:
        first, second = await stage.start(), await stage.start()
        child = await stage.add(depends_on=[first.job, second.job.id])
        assert (await stage.state(child)).depends_on == (first.job.id, second.job.id)
        await stage.report(first, Succeeded(stage.now, b"1"))
        assert await stage.claim() == []
        await stage.report(second, Succeeded(stage.now, b"1"))
        assert [taken.job.seq for taken in await stage.claim()] == [child.seq]

    @played
    async def test_p15_a_released_job_may_be_claimed_in_the_turn_that_released_it(self, stage: Stage) -> None:
        parent = await stage.start()
        child = await stage.add(depends_on=[parent.job])
        report = Report(parent.job, parent.fence, Succeeded(stage.now, b"1"))
        exchange = await stage.turn([report], ClaimRequest("w1", 5, LANES))
        assert [(event.seq, event.before, event.after) for event in exchange.changes] == [
            (child.seq, BLOCKED, READY)
        ]
        assert [job.seq for job in exchange.claimed] == [child.seq]

    @played
    async def test_p15_release_happens_once(self, stage: Stage) -> None:
        first, second = await stage.start(), await stage.start()
        child = await stage.add(depends_on=[first.job, second.job])
        reports = [Report(taken.job, taken.fence, Succeeded(stage.now, b"1")) for taken in (first, second)]
        exchange = await stage.turn([*reports, *reports])
        assert [event.seq for event in exchange.changes] == [child.seq]
        assert (await stage.turn(reports)).changes == []

    @played
    async def test_p15_a_dependency_named_twice_counts_once(self, stage: Stage) -> None:
        parent = await stage.start()
        child = await stage.add(depends_on=[parent.job, parent.job.id, ended(parent.job)])
        await stage.report(parent, Succeeded(stage.now, b"1"))
        assert await stage.status(child) is READY

    @played
    async def test_a_parent_that_will_run_again_releases_nothing(self, stage: Stage) -> None:
        events: list[Event] = [Errored(stage.now, BOOM, retry_in_us=10**9), Snoozed(stage.now, 10**9)]
        for event in events:
            parent = await stage.start()
            child = await stage.add(depends_on=[ended(parent.job)])
            await stage.report(parent, event)
            assert await stage.status(child) is BLOCKED

    # Cascades

    async def _cascades(self, stage: Stage, parent: Job, children: list[Job], final: JobStatus) -> None:
        strict, grandchild, _ = children
        assert await stage.statuses_of(parent, *children) == [final, CANCELLED, CANCELLED, READY]
        assert (await stage.state(strict)).reason == f"dependency: {parent.id}"
        assert (await stage.state(grandchild)).reason == f"dependency: {strict.id}"

    async def _children(self, stage: Stage, parent: Job) -> list[Job]:
        strict = await stage.add(depends_on=[parent])
        return [strict, await stage.add(depends_on=[strict]), await stage.add(depends_on=[ended(strict)])]

    async def _cascades_after(self, stage: Stage, event: Event, final: JobStatus) -> None:
        parent = await stage.start()
        children = await self._children(stage, parent.job)
        await stage.report(parent, event)
        await self._cascades(stage, parent.job, children, final)

    @played
    async def test_case_132_a_failed_parent(self, stage: Stage) -> None:
        await self._cascades_after(stage, Errored(stage.now, BOOM), FAILED)

    @played
    async def test_case_132_a_parent_that_timed_out(self, stage: Stage) -> None:
        await self._cascades_after(stage, DeadlinePassed(stage.now, BOOM), JobStatus.TIMED_OUT)

    @played
    async def test_case_132_a_parent_that_cancelled_itself(self, stage: Stage) -> None:
        await self._cascades_after(stage, Withdrawn(stage.now, "enough"), CANCELLED)

    @played
    async def test_case_132_a_waiting_parent_that_was_cancelled(self, stage: Stage) -> None:
        parent = await stage.add()
        children = await self._children(stage, parent)
        answer = await stage.cancel(parent)
        assert [event.seq for event in answer.changes][:2] == [parent.seq, children[0].seq]
        await self._cascades(stage, parent, children, CANCELLED)

    @played
    async def test_case_046_a_running_parent_that_was_cancelled(self, stage: Stage) -> None:
        parent = await stage.start()
        children = await self._children(stage, parent.job)
        await stage.cancel(parent.job)
        assert await stage.statuses_of(*children) == [BLOCKED] * 3, "it is not over yet"
        await stage.report(parent, Succeeded(stage.now, b"1"))
        await self._cascades(stage, parent.job, children, CANCELLED)

    @played
    async def test_case_132_an_abandoned_parent(self, stage: Stage) -> None:
        parent = await stage.start()
        children = await self._children(stage, parent.job)
        await stage.cancel(parent.job, abandon=True)
        await self._cascades(stage, parent.job, children, CANCELLED)

    @played
    async def test_case_132_an_expired_parent(self, stage: Stage) -> None:
        parent = await stage.add(expires_s=5)
        children = await self._children(stage, parent)
        stage.advance(5)
        await stage.turn()
        await self._cascades(stage, parent, children, CANCELLED)

    @played
    async def test_case_132_a_parent_whose_worker_died_and_may_not_start_again(self, stage: Stage) -> None:
        parent = await stage.start(at_most_once=True)
        children = await self._children(stage, parent.job)
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        await self._cascades(stage, parent.job, children, FAILED)

    @played
    async def test_p15_a_long_chain_fails_to_its_end(self, stage: Stage) -> None:
        first = await stage.start()
        batch = [stage.job(depends_on=[first.job])]
        for _ in range(DEPTH - 1):
            batch.append(stage.job(depends_on=[batch[-1]]))
        await stage.submit(*batch)
        step = (await stage.turn([Report(first.job, first.fence, Errored(stage.now, BOOM))])).changes
        assert [event.after for event in step] == [CANCELLED] * DEPTH
        assert await stage.counts() == {}

    @played
    async def test_p15_many_wait_for_one_and_one_for_many(self, stage: Stage) -> None:
        root = await stage.start()
        middle = await stage.submit(*(stage.job(depends_on=[root.job]) for _ in range(200)))
        last = await stage.add(depends_on=middle)
        await stage.report(root, Succeeded(stage.now, b"1"))
        taken = await stage.claim()
        assert len(taken) == 200
        for one in taken:
            assert await stage.status(last) is BLOCKED
            await stage.report(one, Succeeded(stage.now, b"1"))
        assert await stage.status(last) is READY

    @played
    async def test_an_operators_retry_of_the_parent_does_not_wake_what_was_cancelled(
        self, stage: Stage
    ) -> None:
        parent = await stage.start()
        child = await stage.add(depends_on=[parent.job])
        await stage.report(parent, Errored(stage.now, BOOM))
        stage.see(await stage.store.retry(parent.job, by="ops"))
        (taken,) = await stage.claim()
        await stage.report(taken, Succeeded(stage.now, b"1"))
        assert await stage.statuses_of(parent.job, child) == [COMPLETED, CANCELLED]

    # At submit

    @played
    async def test_p15_a_dependency_that_has_ended_counts_at_once(self, stage: Stage) -> None:
        good, bad = await stage.start(), await stage.start()
        await stage.report(good, Succeeded(stage.now, b"1"))
        await stage.report(bad, Errored(stage.now, BOOM))
        met, lost, either = await stage.submit(
            stage.job(depends_on=[good.job]),
            stage.job(depends_on=[good.job, bad.job.id]),
            stage.job(depends_on=[ended(good.job), ended(bad.job)]),
        )
        assert await stage.statuses_of(met, lost, either) == [READY, CANCELLED, READY]
        assert (await stage.state(lost)).reason == f"dependency: {bad.job.id}"

    @played
    async def test_p15_of_two_dependencies_the_one_that_has_ended_is_not_waited_for(
        self, stage: Stage
    ) -> None:
        done, open_one = await stage.start(), await stage.start()
        await stage.report(done, Succeeded(stage.now, b"1"))
        child = await stage.add(depends_on=[done.job, open_one.job])
        assert await stage.status(child) is BLOCKED
        await stage.report(open_one, Succeeded(stage.now, b"1"))
        assert await stage.status(child) is READY

    @played
    async def test_p15_a_job_that_is_lost_at_submit_takes_its_batch_mates_along(self, stage: Stage) -> None:
        bad = await stage.start()
        await stage.report(bad, Errored(stage.now, BOOM))
        child = stage.job(depends_on=[bad.job])
        kept = await stage.submit(child, stage.job(depends_on=[child]), stage.job(depends_on=[ended(child)]))
        assert await stage.statuses_of(*kept) == [CANCELLED, CANCELLED, READY]

    @played
    async def test_p15_a_dependency_that_ends_during_the_submit_is_never_missed(self, stage: Stage) -> None:
        for event, status in ((Succeeded(stage.now, b"1"), READY), (Errored(stage.now, BOOM), CANCELLED)):
            for order in (1, -1):
                parent = await stage.start()
                child = stage.job(depends_on=[parent.job])
                report = Report(parent.job, parent.fence, event)
                calls = [stage.store.submit([child]), _send(stage, report)][::order]
                await gather(*calls)
                found = await stage.store.find(child.id)
                assert found is not None
                assert found.status is status
        stage.statuses = {job.seq: job.status for job in await stage.everything()}  # the order was left open

    @played
    async def test_p15_a_batch_may_depend_on_itself_forwards_and_backwards(self, stage: Stage) -> None:
        later = stage.job("later")
        first = stage.job(depends_on=[later])
        last = stage.job(depends_on=["later", first])
        kept = await stage.submit(first, later, last)
        assert await stage.statuses_of(*kept) == [BLOCKED, READY, BLOCKED]
        await stage.worker()
        for job in (kept[1], kept[0], kept[2]):
            (taken,) = await stage.claim()
            assert taken.job.seq == job.seq
            await stage.report(taken, Succeeded(stage.now, b"1"))

    @played
    async def test_an_id_means_its_newest_version_and_a_job_its_own(self, stage: Stage) -> None:
        old = await stage.start("x")
        new = await stage.add("x", replace_older=True, delay_s=60)
        by_job, by_id = await stage.submit(stage.job(depends_on=[old.job]), stage.job(depends_on=["x"]))
        await stage.report(old, Succeeded(stage.now, b"1"))
        assert await stage.statuses_of(by_job, by_id, new) == [READY, BLOCKED, DELAYED]

    @played
    async def test_an_unknown_dependency_is_refused_by_name(self, stage: Stage) -> None:
        for unknown in ("nobody", stage.job("never-submitted")):
            with refused(UnknownJob) as caught:
                await stage.store.submit([stage.job(depends_on=[unknown])])
            assert isinstance(caught.error, UnknownJob)
            assert caught.error.job_id == (unknown if isinstance(unknown, str) else unknown.id)
        assert await stage.everything() == []

    @played
    async def test_p15_a_circle_of_ids_is_refused(self, stage: Stage) -> None:
        circle = [
            stage.job("a", depends_on=["b"]),
            stage.job("b", depends_on=["c"]),
            stage.job("c", depends_on=["a"]),
        ]
        with refused(DependencyCycle) as caught:
            await stage.store.submit([stage.job(), *circle])
        assert isinstance(caught.error, DependencyCycle)
        assert set(caught.error.cycle) == {"a", "b", "c"}
        assert await stage.everything() == []
        with refused(UnknownJob):
            await stage.store.submit([stage.job("a", depends_on=["a"])])

    @played
    async def test_p15_a_new_version_may_depend_on_the_older_one(self, stage: Stage) -> None:
        old = await stage.start("x")
        await stage.report(old, Succeeded(stage.now, b"1"))
        new = await stage.add("x", depends_on=["x"])
        assert (await stage.state(new)).depends_on == ("x",)
        assert await stage.status(new) is READY

    # Times

    @played
    async def test_case_134_a_dependency_goes_before_the_time(self, stage: Stage) -> None:
        parent = await stage.add(delay_s=2)
        child = await stage.add(depends_on=[parent], delay_s=2)
        await stage.worker()
        stage.advance(2)
        (taken,) = await stage.claim()
        assert taken.job.seq == parent.seq
        stage.advance(3)
        await stage.report(taken, Succeeded(stage.now, b"1"))
        state = await stage.state(child)
        assert (state.status, state.run_at) == (READY, stage.now), "its lag counts from its release"

    @played
    async def test_p14_a_released_job_still_waits_for_its_time(self, stage: Stage) -> None:
        parent = await stage.start()
        child = await stage.add(depends_on=[parent.job], delay_s=60)
        await stage.report(parent, Succeeded(stage.now, b"1"))
        assert await stage.status(child) is DELAYED
        assert (await stage.turn()).next_at == stage.now + 60 * SECOND
