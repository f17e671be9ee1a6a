"""Workers, their leases, and what becomes of the jobs of one that falls silent."""

from __future__ import annotations

from asyncio import gather

from betimes.core.events import GivenBack, Succeeded
from betimes.core.job import JobStatus
from betimes.core.lifecycle import CRASH_BUDGET
from betimes.ports import Report, WorkerInfo
from betimes.testing.store_contract.stage import MOST, SECOND, Stage, played

READY, RUNNING = JobStatus.READY, JobStatus.RUNNING
COMPLETED, FAILED, CANCELLED = JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED


class BeatContract:
    """What a heartbeat and a worker's end promise."""

    @played
    async def test_a_worker_is_listed_as_it_registered(self, stage: Stage) -> None:
        info = WorkerInfo(
            id="w1",
            lease_us=30 * SECOND,
            host="höst",
            pid=4711,
            process_started=99,
            boot_id="boot",
            queues=("a", "b"),
            concurrency=10,
            lanes=("loop", "thread"),
            tasks=("a.b", "ü"),
        )
        other = WorkerInfo(id="w2", lease_us=5 * SECOND)
        await stage.store.register(info)
        await stage.store.register(other)
        stage.advance(6)
        workers = sorted(await stage.store.workers(), key=lambda entry: entry[0].id)
        assert workers == [(info, 24 * SECOND), (other, 0)]

    @played
    async def test_what_a_worker_knows_can_be_changed(self, stage: Stage) -> None:
        info = WorkerInfo(id="w1", lease_us=30 * SECOND, lanes=("loop",), tasks=("a",))
        await stage.store.register(info)
        await stage.store.register(WorkerInfo(id="w2", lease_us=30 * SECOND))
        stage.advance(6)
        await stage.store.make_known("w1", ("a", "b"))
        await stage.store.make_known("nobody", ("c",))
        known = {info.id: (info.lanes, info.tasks, left) for info, left in await stage.store.workers()}
        assert known == {
            "w1": (("loop",), ("a", "b"), 24 * SECOND),
            "w2": (None, None, 24 * SECOND),
        }
        await stage.store.make_known("w1", None)
        await stage.store.retire("w2")
        assert [info.tasks for info, _ in await stage.store.workers()] == [None]

    @played
    async def test_p24_beats_keep_a_lease_for_ever(self, stage: Stage) -> None:
        taken = await stage.start()
        for _ in range(5):
            stage.advance(29)
            beat = await stage.store.beat("w1", {taken.job.seq: taken.fence}, {})
            assert beat.is_alive
            assert (list(beat.cancels), list(beat.lost), list(beat.changes)) == ([], [], [])
            assert list(await stage.store.rescue({"t"})) == []
        await stage.report(taken, Succeeded(stage.now, b"1"))

    @played
    async def test_p29_leases_do_not_follow_the_wall_clock(self, stage: Stage) -> None:
        taken = await stage.start()
        stage.clock.jump(86_400)
        assert list(await stage.store.rescue({"t"})) == []
        assert (await stage.store.beat("w1", {taken.job.seq: taken.fence}, {})).is_alive
        stage.clock.jump(-2 * 86_400)
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        assert await stage.status(taken.job) is READY

    @played
    async def test_p13_a_beat_brings_the_cancels_of_what_is_held(self, stage: Stage) -> None:
        told, other = await stage.start(), await stage.start()
        await stage.start(worker="w2")
        await stage.cancel(told.job)
        held = {one.job.seq: one.fence for one in (told, other)}
        for _ in range(2):
            assert list((await stage.store.beat("w1", held, {})).cancels) == [told.job.seq]
        assert list((await stage.store.beat("w2", {}, {})).cancels) == []
        stage.statuses = {job.seq: job.status for job in await stage.everything()}

    @played
    async def test_p24_a_claim_whose_reply_was_lost_is_given_back_by_the_next_beat(
        self, stage: Stage
    ) -> None:
        known, lost = await stage.start(), await stage.start()
        beat = await stage.store.beat("w1", {known.job.seq: known.fence}, {})
        stage.see(beat.changes)
        assert [(event.seq, event.before, event.after) for event in beat.changes] == [
            (lost.job.seq, RUNNING, READY)
        ]
        assert await stage.statuses_of(known.job, lost.job) == [RUNNING, READY]
        (second,) = await stage.claim()
        assert (second.job.seq, second.attempt, second.fence) == (lost.job.seq, 1, 2)

    @played
    async def test_p24_a_job_that_was_claimed_again_under_a_lost_reply_is_given_back(
        self, stage: Stage
    ) -> None:
        first = await stage.start()
        await stage.report(first, GivenBack(stage.now))
        await stage.claim()
        beat = await stage.store.beat("w1", {first.job.seq: first.fence}, {})
        stage.see(beat.changes)
        assert (list(beat.lost), [event.seq for event in beat.changes]) == ([first.job.seq], [first.job.seq])
        assert await stage.status(first.job) is READY

    @played
    async def test_a_beat_names_what_is_not_held_any_more(self, stage: Stage) -> None:
        done, abandoned, kept = await stage.start(), await stage.start(), await stage.start()
        others = await stage.start(worker="w2")
        await stage.report(done, Succeeded(stage.now, b"1"))
        await stage.cancel(abandoned.job, abandon=True)
        claimed = {one.job.seq: one.fence for one in (done, abandoned, kept, others)}
        beat = await stage.store.beat("w1", claimed | {987_654: 1}, {})
        assert beat.is_alive
        assert set(beat.lost) == {done.job.seq, abandoned.job.seq, others.job.seq, 987_654}
        assert list(beat.changes) == []
        assert (await stage.state(others.job)).worker == "w2"

    @played
    async def test_p08_a_rescued_worker_is_told_and_cannot_come_back(self, stage: Stage) -> None:
        taken = await stage.start()
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        before = await stage.snapshot()
        for name in ("w1", "never registered"):
            beat = await stage.store.beat(name, {taken.job.seq: taken.fence}, {})
            assert (beat.is_alive, list(beat.changes)) == (False, [])
            assert await stage.claim(worker=name) == []
        assert await stage.snapshot() == before

    @played
    async def test_p08_a_worker_is_over_when_any_of_its_jobs_was_rescued(self, stage: Stage) -> None:
        await stage.start()
        left = await stage.start(task="elsewhere")
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        beat = await stage.store.beat("w1", {left.job.seq: left.fence}, {})
        assert (beat.is_alive, list(beat.changes)) == (False, [])
        assert await stage.status(left.job) is RUNNING
        assert await stage.claim() == []

    @played
    async def test_p24_an_unknown_job_that_was_cancelled_meanwhile_ends(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.cancel(taken.job)
        beat = await stage.store.beat("w1", {}, {})
        stage.see(beat.changes)
        assert (list(beat.cancels), await stage.status(taken.job)) == ([], CANCELLED)

    @played
    async def test_p06_a_beat_that_comes_late_and_a_rescue_agree_on_who_holds_the_job(
        self, stage: Stage
    ) -> None:
        taken = await stage.start()
        stage.advance(31)
        beat = await stage.store.beat("w1", {taken.job.seq: taken.fence}, {})
        changes = await stage.store.rescue({"t"})
        stage.see(changes)
        assert len(changes) == (0 if beat.is_alive else 1)
        assert await stage.status(taken.job) is (RUNNING if beat.is_alive else READY)

    @played
    async def test_p21_a_worker_that_retires_gives_back_what_it_holds(self, stage: Stage) -> None:
        plain, told = await stage.start(), await stage.start()
        other = await stage.start(worker="w2")
        await stage.cancel(told.job)
        changes = await stage.store.retire("w1")
        stage.see(changes)
        assert await stage.statuses_of(plain.job, told.job, other.job) == [READY, CANCELLED, RUNNING]
        assert list(await stage.store.retire("w1")) == []
        assert list(await stage.store.retire("never registered")) == []
        assert [info.id for info, is_alive in await stage.store.workers() if is_alive] == ["w2"]
        assert not (await stage.store.beat("w1", {}, {})).is_alive
        (second,) = await stage.claim(worker="w2")
        assert (second.job.seq, second.attempt) == (plain.job.seq, 1)


class RescueContract:
    """What becomes of the jobs of a silent worker."""

    @played
    async def test_p08_rescue_waits_for_the_end_of_the_lease(self, stage: Stage) -> None:
        taken = await stage.start()
        stage.advance(29)
        assert list(await stage.store.rescue({"t"})) == []
        stage.advance(2)
        changes = await stage.store.rescue({"t"})
        stage.see(changes)
        assert [(event.seq, event.before, event.after) for event in changes] == [
            (taken.job.seq, RUNNING, READY)
        ]
        state = await stage.state(taken.job)
        assert (state.attempt, state.crashes, state.worker, state.fence) == (0, 1, None, taken.fence + 1)
        assert [(one.attempt, one.fence, one.outcome) for one in state.attempts] == [(1, taken.fence, "lost")]
        assert list(await stage.store.rescue({"t"})) == []

    @played
    async def test_p08_rescue_takes_only_from_whoever_is_silent(self, stage: Stage) -> None:
        silent = await stage.start(worker="w1")
        alive = await stage.start(worker="w2")
        stage.advance(20)
        await stage.store.beat("w2", {alive.job.seq: alive.fence}, {})
        stage.advance(20)
        stage.see(await stage.store.rescue({"t"}))
        assert await stage.statuses_of(silent.job, alive.job) == [READY, RUNNING]

    @played
    async def test_p08_case_094_a_task_that_nobody_here_knows_is_left_until_somebody_does(
        self, stage: Stage
    ) -> None:
        known, unknown = await stage.start(), await stage.start(task="elsewhere")
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        assert await stage.statuses_of(known.job, unknown.job) == [READY, RUNNING]
        for _ in range(2):
            stage.advance(3_600)
            assert list(await stage.store.rescue(["t"])) == []
            assert list(await stage.store.rescue([])) == []
        await stage.worker("w2")
        stage.see(await stage.store.rescue({"t", "elsewhere"}))
        assert await stage.status(unknown.job) is READY

    @played
    async def test_p08_a_job_that_has_finished_is_not_rescued(self, stage: Stage) -> None:
        taken = await stage.start()
        stage.advance(31)
        step = await stage.report(taken, Succeeded(stage.now, b"1"))
        assert step is not None, "nobody has taken it away, so the fence still holds"
        before = await stage.snapshot()
        assert list(await stage.store.rescue({"t"})) == []
        assert await stage.snapshot() == before

    @played
    async def test_case_098_of_a_rescue_and_a_finish_the_first_wins_and_the_other_changes_nothing(
        self, stage: Stage
    ) -> None:
        for order in (1, -1):
            taken = await stage.start(worker=f"w{order}")
            stage.advance(31)
            report = Report(taken.job, taken.fence, Succeeded(stage.now, b"1"))
            turn, rescue = stage.store.exchange([report], None), stage.store.rescue({"t"})
            if order == 1:
                exchange, rescued = await gather(turn, rescue)
            else:
                rescued, exchange = await gather(rescue, turn)
            finished = exchange.steps[0] is not None
            assert finished != bool(rescued)
            assert await stage.status(taken.job) is (COMPLETED if finished else READY)
            stage.statuses = {job.seq: job.status for job in await stage.everything()}

    @played
    async def test_p11_a_job_that_kills_its_workers_fails_when_its_crash_budget_is_used_up(
        self, stage: Stage
    ) -> None:
        job = await stage.add()
        child = await stage.add(depends_on=[job])
        for crash in range(1, CRASH_BUDGET + 1):
            await stage.worker(f"w{crash}")
            (taken,) = await stage.claim(worker=f"w{crash}")
            assert taken.attempt == 1, "a crash uses no attempt"
            stage.advance(31)
            stage.see(await stage.store.rescue({"t"}))
        state = await stage.state(job)
        assert (state.status, state.crashes) == (FAILED, CRASH_BUDGET)
        assert "poison pill" in str(state.reason)
        assert await stage.status(child) is CANCELLED

    @played
    async def test_p12_what_may_start_once_is_not_started_again(self, stage: Stage) -> None:
        taken = await stage.start(at_most_once=True)
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        assert await stage.status(taken.job) is FAILED
        await stage.worker("w2")
        assert await stage.claim(worker="w2") == []

    @played
    async def test_p13_a_cancelled_job_of_a_lost_worker_is_cancelled(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.cancel(taken.job, reason="not wanted")
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        state = await stage.state(taken.job)
        assert (state.status, state.reason) == (CANCELLED, "not wanted")

    @played
    async def test_p17_rescue_is_bounded_and_goes_on(self, stage: Stage) -> None:
        await stage.submit(*(stage.job() for _ in range(2_500)))
        await stage.worker()
        for _ in range(3):
            await stage.claim(MOST)
        stage.advance(31)
        rescued = 0
        while changes := await stage.store.rescue({"t"}):
            stage.see(changes)
            assert len(changes) <= MOST
            rescued += len(changes)
        assert rescued == 2_500
