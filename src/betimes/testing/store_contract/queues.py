"""What a store shows of its queues, and of itself."""

from __future__ import annotations

from betimes.core.events import Errored, GivenBack, Succeeded
from betimes.core.job import Job
from betimes.core.queue_view import Pause, QueueView
from betimes.testing.store_contract.gate_stage import GateStage
from betimes.testing.store_contract.stage import BOOM, SECOND, Stage, played


class QueueContract:
    """What stands first, what is kept back and since when, and who paused it."""

    async def _heads(self, stage: Stage, queue: str = "default") -> list[int]:
        return [job.seq for job in (await stage.store.queue(queue)).heads]

    @played
    async def test_a_queue_without_jobs_shows_nothing(self, stage: Stage) -> None:
        await stage.add(queue="other")
        assert await stage.store.queue("nobody") == QueueView()
        assert await stage.store.oldest_due() == {"other": stage.now}

    @played
    async def test_p20_the_first_of_each_lane_is_shown_in_the_order_of_claims(self, stage: Stage) -> None:
        await stage.add(sort_key=5)
        thread = await stage.add(sort_key=3, lane="thread")
        loop = await stage.add(sort_key=4)
        await stage.add(sort_key=4)
        await stage.add(sort_key=1, queue="other")
        await stage.add(sort_key=0, delay_s=9)
        assert await self._heads(stage) == [thread.seq, loop.seq]
        await stage.worker()
        taken = await stage.claim(2, queues=("default",))
        assert [one.job.seq for one in taken] == [thread.seq, loop.seq]

    @played
    async def test_p19_what_waits_at_a_gate_does_not_stand_first(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit, rate = await gates.limit(), await gates.rate("r")
        free = (await gates.add(1, limit, sort_key=1))[0]
        plain = await stage.add(sort_key=2)
        assert await self._heads(stage) == [free.seq]
        held = await gates.start(limit)
        assert await self._heads(stage) == [plain.seq]
        view = await stage.store.queue("default")
        assert view.gates == (limit,)
        await gates.start(rate)
        await gates.add(1, rate, sort_key=-1)
        assert set((await stage.store.queue("default")).gates) == {limit, rate}
        assert (await stage.store.queue("other")).gates == ()
        await gates.tell(held)
        assert await self._heads(stage) == [free.seq]

    @played
    async def test_p18_what_is_put_aside_is_counted_by_queue_and_name(self, stage: Stage) -> None:
        for name, queue in (("task:a", "default"), ("task:a", "default"), ("lane:x", "default"), ("p", "b")):
            taken = await stage.start(queue=queue)
            await stage.report(taken, GivenBack(stage.now, parked=name))
        view = await stage.store.queue("default")
        assert (dict(view.parked), view.heads) == ({"task:a": 2, "lane:x": 1}, ())
        assert dict((await stage.store.queue("b")).parked) == {"p": 1}
        assert await stage.store.oldest_due() == {}

    @played
    async def test_the_next_that_is_due_is_shown(self, stage: Stage) -> None:
        await stage.submit(stage.job(delay_s=9), stage.job(delay_s=7), stage.job(delay_s=5, queue="b"))
        assert (await stage.store.queue("default")).next_due_at == stage.now + 7 * SECOND
        assert (await stage.store.queue("c")).next_due_at is None

    @played
    async def test_case_147_the_oldest_that_is_due_is_found_behind_those_that_go_first(
        self, stage: Stage
    ) -> None:
        old = await stage.add(sort_key=9)
        stage.advance(30)
        await stage.submit(*(stage.job(sort_key=1) for _ in range(20)))
        await stage.submit(stage.job(queue="b", delay_s=5), stage.job(queue="c", delay_s=60))
        stage.advance(10)
        assert await stage.store.oldest_due() == {"default": old.run_at, "b": stage.now - 5 * SECOND}
        await stage.cancel(old)
        assert (await stage.store.oldest_due())["default"] == stage.now - 10 * SECOND

    @played
    async def test_case_147_what_runs_or_waits_for_something_else_is_not_late(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        running = await gates.start(limit)
        await gates.add(1, limit)
        await stage.add(depends_on=[running.job])
        retried = await stage.start()
        await stage.report(retried, Errored(stage.now, BOOM, retry_in_us=90 * SECOND))
        stage.advance(20)
        assert await stage.store.oldest_due() == {}
        await gates.tell(running, Succeeded(stage.now, b"1"))
        assert await stage.store.oldest_due() == {"default": stage.now - 20 * SECOND}

    @played
    async def test_a_pause_says_since_when_and_by_whom_and_the_first_one_stays(self, stage: Stage) -> None:
        await stage.store.pause_queue("a", by="ops")
        first = Pause(at=stage.now, by="ops")
        stage.advance(5)
        await stage.store.pause_queue("a", by="somebody else")
        await stage.store.pause_queue("b")
        assert await stage.store.paused_queues() == {"a": first, "b": Pause(at=stage.now)}
        await stage.store.resume_queue("a")
        await stage.store.pause_queue("a")
        assert (await stage.store.paused_queues())["a"] == Pause(at=stage.now)

    @played
    async def test_looking_at_queues_changes_nothing(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        await gates.start(limit)
        jobs: list[Job] = [*await gates.add(2, limit), await stage.add(delay_s=5), await stage.add()]
        stage.advance(6)
        before = await stage.snapshot()
        for _ in range(2):
            await stage.store.queue("default")
            await stage.store.oldest_due()
            await stage.store.vitals()
        assert await stage.snapshot() == before
        assert [await stage.status(job) for job in jobs] == [job.status for job in jobs]

    @played
    async def test_a_store_says_of_itself_that_it_is_well(self, stage: Stage) -> None:
        assert (await stage.store.vitals()).latest is None
        await stage.add()
        vitals = await stage.store.vitals(full=True)
        assert vitals.is_durable == stage.store.is_durable
        assert (vitals.trouble, vitals.strategy, vitals.latest) == (None, "priority", stage.now)
        assert vitals.can_be_looked_at
