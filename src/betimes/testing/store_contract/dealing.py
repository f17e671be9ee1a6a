"""Queues that are served by shares: each gets its part of the dispatches while several have work."""

from __future__ import annotations

from typing import Any

from betimes.core.queue_shares import QueueShares
from betimes.testing.store_contract.gate_stage import GateStage, seqs
from betimes.testing.store_contract.stage import MOST, Stage, Taken, played


class Server:
    """A worker that serves queues by shares."""

    def __init__(self, stage: Stage, **shares: int) -> None:
        """Begin with all even."""
        self._stage = stage
        self._queues = tuple(shares)
        self._shares = QueueShares(shares)

    async def claim(self, limit: int = MOST, **options: Any) -> list[Taken]:
        """Claim, and count what was dealt."""
        request = self._stage.request(limit, queues=self._queues, shares=self._shares, **options)
        exchange = await self._stage.turn(claim=request)
        self._shares.dealt(job.spec.queue for job in exchange.claimed)
        return [Taken(job, job.fence, job.attempt) for job in exchange.claimed]

    async def one_by_one(self, number: int, **options: Any) -> str:
        """The queues of so many dispatches, each claimed by itself."""
        return "".join([job.job.spec.queue for _ in range(number) for job in await self.claim(1, **options)])


async def filled(stage: Stage, **numbers: int) -> None:
    """Put so many jobs into each queue; those named first would go first, were it not for the shares."""
    await stage.worker()
    for place, (queue, number) in enumerate(numbers.items()):
        await stage.submit(*(stage.job(queue=queue, sort_key=place) for _ in range(number)))


class DealContract:
    """What queue shares promise."""

    @played
    async def test_of_ten_dispatches_with_both_waiting_one_goes_to_the_queue_of_one_share(
        self, stage: Stage
    ) -> None:
        await filled(stage, d=40, l=40)
        got = await Server(stage, d=9, l=1).one_by_one(40)
        assert [got[n : n + 10].count("l") for n in range(0, 40, 10)] == [1, 1, 1, 1]

    @played
    async def test_shares_hold_within_one_claim_as_over_many(self, stage: Stage) -> None:
        await filled(stage, a=20, b=20, c=20)
        server = Server(stage, a=3, b=2, c=1)
        for limit in (6, 12, 2, 4, 6):
            await server.claim(limit)
        taken = [job.spec.queue for job in await stage.everything() if job.worker is not None]
        assert {queue: taken.count(queue) for queue in "abc"} == {"a": 15, "b": 10, "c": 5}

    @played
    async def test_p20_within_a_queue_the_strategys_order_holds(self, stage: Stage) -> None:
        await stage.worker()
        keys = [3, 1, 2, 1]
        a = await stage.submit(*(stage.job(queue="a", sort_key=key) for key in keys))
        b = await stage.submit(*(stage.job(queue="b", sort_key=key - 10) for key in keys))
        server = Server(stage, a=1, b=1)
        got = [seq for _ in range(8) for seq in seqs(await server.claim(1))]
        for jobs in (a, b):
            expected = [job.seq for job in sorted(jobs, key=lambda job: (job.sort_key, job.seq))]
            assert [seq for seq in got if seq in expected] == expected

    @played
    async def test_a_queue_that_was_empty_gets_no_credit(self, stage: Stage) -> None:
        await filled(stage, a=60)
        server = Server(stage, a=1, b=1)
        assert await server.one_by_one(30) == "a" * 30
        await stage.submit(*(stage.job(queue="b") for _ in range(30)))
        got = await server.one_by_one(20)
        assert (got.count("a"), got[:4].count("b")) == (10, 2)

    @played
    async def test_a_queue_alone_gets_all(self, stage: Stage) -> None:
        await filled(stage, a=3, b=9)
        server = Server(stage, a=1, b=1)
        assert len(await server.claim(12)) == 12

    @played
    async def test_only_queues_with_a_share_are_served(self, stage: Stage) -> None:
        await filled(stage, z=5, a=2)
        assert [one.job.spec.queue for one in await Server(stage, a=1, b=1).claim()] == ["a", "a"]

    @played
    async def test_p14_a_paused_queue_is_dealt_nothing_and_holds_up_nobody(self, stage: Stage) -> None:
        await filled(stage, a=9, b=30)
        await stage.store.pause_queue("a")
        server = Server(stage, a=5, b=1)
        assert await server.one_by_one(4) == "bbbb"
        assert [one.job.spec.queue for one in await server.claim(6)] == ["b"] * 6
        await stage.store.resume_queue("a")
        assert (await server.one_by_one(7)).count("b") == 1

    @played
    async def test_p19_lanes_without_room_and_closed_gates_are_dealt_nothing(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        await gates.add(5, limit, queue="a")
        await gates.add(5, queue="a", lane="thread")
        b = await gates.add(5, queue="b")
        await stage.worker()
        server = Server(stage, a=9, b=1)
        taken = await server.claim(4, lanes={"loop": 9})
        assert sorted(one.job.spec.queue for one in taken) == ["a", "b", "b", "b"]
        taken = await server.claim(9, lanes={"loop": 9, "thread": 1})
        assert [(one.job.spec.queue, one.job.spec.lane) for one in taken if one.job.seq not in seqs(b)] == [
            ("a", "thread")
        ]
        assert len(taken) == 3

    @played
    async def test_p26_who_is_on_hold_costs_its_queue_nothing(self, stage: Stage) -> None:
        await stage.worker()
        a = await stage.submit(*(stage.job(queue="a") for _ in range(4)))
        await stage.submit(*(stage.job(queue="b") for _ in range(4)))
        server = Server(stage, a=1, b=1)
        taken = await server.claim(4, hold={a[0].id, a[1].id})
        assert sorted(one.job.spec.queue for one in taken) == ["a", "a", "b", "b"]
        assert {one.job.seq for one in taken}.isdisjoint({a[0].seq, a[1].seq})
        assert sorted(await server.one_by_one(4)) == ["a", "a", "b", "b"]

    @played
    async def test_p19_lanes_get_no_more_than_their_room(self, stage: Stage) -> None:
        await stage.worker()
        for queue in "ab":
            for lane in ("loop", "thread"):
                await stage.submit(*(stage.job(queue=queue, lane=lane) for _ in range(5)))
        server = Server(stage, a=1, b=1)
        taken = await server.claim(9, lanes={"loop": 2, "thread": 4})
        assert [one.job.spec.lane for one in taken].count("loop") == 2
        assert [one.job.spec.lane for one in taken].count("thread") == 4
        assert [one.job.spec.queue for one in taken].count("a") == 3
