"""Queues served by shares: a reserved part of the dispatches for each, and none left idle."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.stage import Scene, StoreMaker, make_scheduler, pass_time, play

from betimes import ConfigurationError, FairShareStrategy, Limit, Priority, Scheduler
from betimes.testing import VirtualClock, run_virtual


class Queues:
    """A task, one second each, and the order of the queues its jobs were dispatched from."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.order: list[str] = []
        self._scheduler = scheduler

        @scheduler.task(name="work")
        async def work(queue: str) -> None:
            self.order.append(queue)
            await pass_time(1)

        self.work = work

    async def submit(self, queue: str, number: int, **options: Any) -> None:
        bound = self.work.using(queue=queue, **options).bind(queue)
        await self._scheduler.submit_many([bound] * number)


def test_a7_of_ten_dispatches_with_both_waiting_one_goes_to_the_low_queue(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        queues = Queues(stage.scheduler)
        await queues.submit("default", 200, priority=Priority.CRITICAL)
        await queues.submit("low", 30, priority=Priority.LOW)
        await stage.scheduler.drain()
        for begin in range(190):
            assert queues.order[begin : begin + 10].count("low") == 1, f"{begin}"

    play(scene, store=store, concurrency=1, queues={"default": 9, "low": 1})


def test_many_slots_keep_the_shares_too(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        queues = Queues(stage.scheduler)
        for name in "abc":
            await stage.scheduler.pause_queue(name)
            await queues.submit(name, 300)
        for name in "abc":
            await stage.scheduler.resume_queue(name)
        await pass_time(29.5)
        assert len(queues.order) == 30 * 7
        assert [queues.order.count(name) for name in "abc"] == pytest.approx([120, 60, 30], abs=1)
        await stage.scheduler.stop(timeout=0)

    play(scene, store=store, concurrency=7, queues={"a": 4, "b": 2, "c": 1}, checked=False)


def test_what_one_queue_does_not_use_the_others_get(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        queues = Queues(stage.scheduler)
        await queues.submit("low", 20)
        await pass_time(19.5)
        assert queues.order == ["low"] * 20
        await queues.submit("default", 90)
        await queues.submit("low", 30)
        await pass_time(20)
        assert 1 <= queues.order[20:40].count("low") <= 3, "it neither owes nor is owed anything"
        await stage.scheduler.stop(timeout=0)

    play(scene, store=store, concurrency=1, queues={"default": 9, "low": 1}, checked=False)


def test_a_queue_that_is_not_named_is_not_served(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        queues = Queues(stage.scheduler)
        await queues.submit("other", 1)
        await queues.submit("low", 1)
        await pass_time(5)
        assert queues.order == ["low"]
        await stage.scheduler.stop()

    play(scene, store=store, queues={"default": 9, "low": 1}, checked=False)


def test_a_paused_queue_s_share_goes_to_the_others(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        queues = Queues(stage.scheduler)
        await stage.scheduler.pause_queue("default")
        await queues.submit("default", 20)
        await queues.submit("low", 5)
        await pass_time(5.5)
        assert queues.order == ["low"] * 5
        await stage.scheduler.resume_queue("default")
        await stage.scheduler.drain()
        assert queues.order[5:] == ["default"] * 20

    play(scene, store=store, concurrency=1, queues={"default": 9, "low": 1})


def test_within_a_queue_the_strategy_s_order_holds(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        order: list[int] = []

        @stage.scheduler.task
        async def work(priority: int) -> None:
            order.append(priority)
            await pass_time(1)

        for queue, priorities in (("a", (1, 3, 2)), ("b", (10, 30, 20))):
            await stage.scheduler.submit_many(
                [work.using(queue=queue, priority=each).bind(each) for each in priorities]
            )
        await stage.scheduler.drain()
        assert [each for each in order if each < 10] == [3, 2, 1]
        assert [each for each in order if each >= 10] == [30, 20, 10]
        assert sorted(order[:2]) == [3, 30]

    play(scene, store=store, concurrency=1, queues={"a": 1, "b": 1})


def test_a_queue_whose_jobs_wait_at_a_gate_leaves_its_share_to_the_others(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        queues = Queues(stage.scheduler)

        @stage.scheduler.task(queue="low", limit=Limit("l", 1))
        async def slow() -> None:
            queues.order.append("slow")
            await pass_time(100)

        await stage.scheduler.submit_many([slow.bind() for _ in range(5)])
        await queues.submit("default", 40)
        await pass_time(20.5)
        assert queues.order.count("slow") == 1
        assert queues.order.count("default") == 40
        await stage.scheduler.stop(timeout=0)

    play(scene, store=store, concurrency=3, queues={"default": 1, "low": 9}, checked=False)


def test_shares_of_queues_and_of_tenants_hold_together(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        order: list[str] = []

        @stage.scheduler.task
        async def work(customer: str) -> None:
            order.append(customer)
            await pass_time(1)

        for queue in ("a", "b"):
            for customer in ("x", "y"):
                bound = work.using(queue=queue).bind(f"{customer}")
                await stage.scheduler.submit_many([bound] * 40)
        await pass_time(39.5)
        assert abs(order.count("x") - order.count("y")) <= 3
        await stage.scheduler.stop(timeout=0)

    strategy = FairShareStrategy(by="customer")
    play(scene, store=store, concurrency=1, strategy=strategy, queues={"a": 1, "b": 1}, checked=False)


@pytest.mark.parametrize("share", [0, -1, True, 1.5, "9", None, 1001])
def test_a_share_is_a_whole_number(share: Any) -> None:
    clock = VirtualClock()
    with pytest.raises(ConfigurationError, match=r"^the share of queue 'low' is .*; it is a whole number"):
        make_scheduler(clock, queues={"default": 9, "low": share})


@pytest.mark.parametrize("queues", [{}, {"": 1}, {5: 1}, 5, "default"])
def test_shares_are_given_by_queue(queues: Any) -> None:
    with pytest.raises(ConfigurationError, match="queues"):
        make_scheduler(VirtualClock(), queues=queues)


def test_shares_may_be_used_again_after_a_restart() -> None:
    async def main(clock: VirtualClock) -> None:
        scheduler = make_scheduler(clock, queues={"default": 9, "low": 1}, concurrency=1)
        queues = Queues(scheduler)
        for _ in range(2):
            async with scheduler:
                await queues.submit("default", 18)
                await queues.submit("low", 2)
                await scheduler.drain()
        assert queues.order.count("low") == 4

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)
