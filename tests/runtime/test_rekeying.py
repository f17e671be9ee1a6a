"""Ordering a store anew by another strategy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runtime.stage import READY, STORES, StoreMaker, make_scheduler, pass_time, store_maker

from betimes import (
    ConfigurationError,
    EarliestDueStrategy,
    FairShareStrategy,
    Limit,
    PriorityStrategy,
    Scheduler,
    SchedulingStrategy,
)
from betimes.clock import new_rng
from betimes.ports import Store
from betimes.testing import VirtualClock, run_virtual


@pytest.fixture(params=STORES)
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> StoreMaker:
    """Stores of each kind in which one finds what the one before has left."""
    make = store_maker(request.param, tmp_path)
    made: list[Store] = []

    def again(clock: VirtualClock) -> Store:
        if request.param == "sqlite" or not made:
            made.append(make(clock))
        return made[-1]

    return again


def register(scheduler: Scheduler, order: list[str], **options: Any) -> Any:
    @scheduler.task(**{"name": "serve", **options})
    async def serve(customer: str) -> None:
        order.append(customer)
        await pass_time(1)

    return serve


def rekeyed(
    make: StoreMaker, strategy: SchedulingStrategy | None, customers: str, **options: Any
) -> list[str]:
    """Submit under priority, order anew, and return the order in which the jobs then start."""
    order: list[str] = []

    async def main(clock: VirtualClock) -> None:
        old = make_scheduler(clock, make(clock))
        serve = register(old, order, **options)
        async with old.client():
            for number, customer in enumerate(customers):
                await serve.using(priority=number % 4).submit(customer)
                await pass_time(1)
        new = make_scheduler(clock, make(clock), strategy=strategy, concurrency=1)
        register(new, order, **options)
        if strategy is not None:
            with pytest.raises(ConfigurationError, match="priority"):
                await new.start()
        assert await new.rekey() == len(customers)
        async with new:
            await new.drain()
        if strategy is not None:
            with pytest.raises(ConfigurationError, match="strategy"):
                await old.start()

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)
    return order


def test_a_store_is_ordered_anew_by_fair_share(shared: StoreMaker) -> None:
    order = rekeyed(shared, FairShareStrategy(by="customer"), "aaaaaaaabbc")
    assert sorted(order[:3]) == ["a", "b", "c"]
    assert sorted(order[3:5]) == ["a", "b"]
    assert order[5:] == ["a"] * 6


def test_a_store_is_ordered_anew_by_due_instants(shared: StoreMaker) -> None:
    assert rekeyed(shared, EarliestDueStrategy(), "abcdef") == list("abcdef")


def test_a_store_is_ordered_anew_by_the_strategy_it_has(shared: StoreMaker) -> None:
    assert rekeyed(shared, None, "abcdefgh") == list("dhcgbfae")


def test_gates_stay_as_they_were_at_the_submit(shared: StoreMaker) -> None:
    async def main(clock: VirtualClock) -> None:
        order: list[str] = []
        old = make_scheduler(clock, shared(clock))
        serve = register(old, order, limit=Limit("old", 1, by="customer"))
        async with old.client():
            for customer in "aabb":
                await serve.submit(customer)
        new = make_scheduler(clock, shared(clock))
        register(new, order, limit=Limit("new", 1))
        assert await new.rekey() == 4
        async with new:
            await pass_time(0.5)
            assert sorted(order) == ["a", "b"]
            await new.drain()

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_back_under_priority_nobody_is_a_tenant_any_more(shared: StoreMaker) -> None:
    async def main(clock: VirtualClock) -> None:
        order: list[str] = []
        fair = make_scheduler(clock, shared(clock), strategy=FairShareStrategy(by="customer"))
        serve = register(fair, order)
        async with fair.client():
            for priority, customer in enumerate("aaab"):
                await serve.using(priority=priority).submit(customer)
        plain = make_scheduler(clock, shared(clock), concurrency=1)
        register(plain, order)
        for strategy in (plain, fair, plain):
            assert await strategy.rekey() == 4
        async with plain.client():
            assert {(await plain.job(job.id))._job.tenant for job in await plain.jobs()} == {None}
        async with plain:
            await plain.drain()
        assert order == ["b", "a", "a", "a"]

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_jobs_of_tasks_that_are_not_known_here_keep_their_gates(shared: StoreMaker) -> None:
    async def main(clock: VirtualClock) -> None:
        order: list[str] = []
        knows = make_scheduler(clock, shared(clock))
        serve = register(knows, order, limit=Limit("l", 1))
        async with knows.client():
            for customer in "abc":
                await serve.submit(customer)
        stranger = make_scheduler(clock, shared(clock))
        assert await stranger.rekey() == 3
        async with knows:
            await pass_time(0.5)
            assert order == ["a"]
            await knows.drain()
        assert order == ["a", "b", "c"]

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_delayed_and_blocked_jobs_find_their_new_place_too(shared: StoreMaker) -> None:
    async def main(clock: VirtualClock) -> None:
        order: list[str] = []
        old = make_scheduler(clock, shared(clock))
        serve = register(old, order)
        async with old.client():
            first = await serve.using(priority=0).submit("first")
            await serve.using(depends_on=[first]).submit("child")
            await serve.using(delay=5, priority=3).submit("late")
            for _ in range(10):
                await serve.using(priority=3).submit("flood")
        new = make_scheduler(clock, shared(clock), strategy=FairShareStrategy(by="customer"), concurrency=1)
        register(new, order)
        assert await new.rekey() == 13
        async with new:
            await new.drain()
        assert sorted(order[:2]) == ["first", "flood"]
        assert "child" in order[2:5]
        assert "late" in order[5:8]

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_nothing_is_ordered_anew_while_somebody_runs(shared: StoreMaker) -> None:
    async def main(clock: VirtualClock) -> None:
        first, second = (make_scheduler(clock, shared(clock), rng=new_rng(number)) for number in (1, 2))
        register(second, [])
        async with first:
            with pytest.raises(ConfigurationError, match="open: stop it before"):
                await first.rekey()
            with pytest.raises(ConfigurationError, match=r"runs.*: stop all"):
                await second.rekey()
        assert await second.rekey() == 0
        async with second:
            pass

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_a_strategy_that_fails_leaves_the_old_order(shared: StoreMaker) -> None:
    class Broken(SchedulingStrategy):
        name = "broken"

        def key(self, job: Any) -> int:
            raise ValueError("no key")

    async def main(clock: VirtualClock) -> None:
        old = make_scheduler(clock, shared(clock))
        serve = register(old, [])
        async with old.client():
            job = await serve.submit("a")
        broken = make_scheduler(clock, shared(clock), strategy=Broken())
        with pytest.raises(ConfigurationError, match="raised ValueError: no key"):
            await broken.rekey()
        async with old.client():
            assert await (await old.job(job.id)).status() is READY

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_an_empty_store_is_ordered_by_whoever_comes_first(shared: StoreMaker) -> None:
    async def main(clock: VirtualClock) -> None:
        first = make_scheduler(clock, shared(clock), strategy=EarliestDueStrategy())
        serve = register(first, [])
        assert await first.rekey() == 0
        async with first.client():
            await serve.submit("a")
        with pytest.raises(ConfigurationError, match="earliest_due"):
            await make_scheduler(clock, shared(clock), strategy=PriorityStrategy()).start()

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_a_scheduler_that_was_ordered_anew_can_be_stopped_and_started() -> None:
    clock = VirtualClock()

    async def main() -> None:
        scheduler = make_scheduler(clock)
        await scheduler.rekey()
        await scheduler.stop()
        async with scheduler:
            pass

    run_virtual(main(), clock=clock)
