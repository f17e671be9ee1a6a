"""Fair share: every tenant within one job of its share, no flood in anybody's way, no credit for idling."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.stage import COMPLETED, Scene, StoreMaker, make_scheduler, pass_time, play, store_maker

from betimes import (
    ConfigurationError,
    FairShareStrategy,
    Limit,
    Priority,
    RetryPolicy,
    Scheduler,
    every,
)
from betimes.clock import new_rng
from betimes.testing import VirtualClock, run_virtual


class Shop:
    """A task whose jobs belong to customers, one second each, and the order in which they start."""

    def __init__(self, scheduler: Scheduler, **options: Any) -> None:
        self.order: list[str] = []

        @scheduler.task(**{"name": "serve", **options})
        async def serve(customer: str = "somebody") -> None:
            self.order.append(customer)
            await pass_time(1)

        self.serve = serve
        self._scheduler = scheduler

    async def submit(self, customers: str | list[str], **options: Any) -> None:
        bound = [self.serve.using(**options).bind(customer) for customer in customers]
        await self._scheduler.submit_many(bound)


def off(order: list[str], weights: dict[str, float]) -> float:
    """How far any tenant's starts are, at most, from its share of any stretch of the order.

    All tenants must have jobs waiting throughout. Counted from each start to each later one: as many jobs as
    a tenant of that weight would have got on an ideal machine, against those that it got.
    """
    worst = 0.0
    total = sum(weights.values())
    for begin in range(len(order)):
        got: Counter[str] = Counter()
        for length, tenant in enumerate(order[begin:], 1):
            got[tenant] += 1
            for name, weight in weights.items():
                worst = max(worst, abs(got[name] - length * weight / total))
    return worst


@pytest.mark.parametrize(
    "weights", [{"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 3, "b": 1}, {"a": 5, "b": 2}, {"a": 0.5, "b": 1.5}]
)
def test_a7_over_any_busy_time_each_of_two_tenants_is_within_one_job_of_its_weight(
    weights: dict[str, float], store: StoreMaker
) -> None:
    async def scene(stage: Scene) -> None:
        shop = Shop(stage.scheduler)
        for name in weights:
            await shop.submit([name] * 60)
        await stage.scheduler.drain()
        least = min(60 / weight for weight in weights.values())
        busy = shop.order[: int(least * sum(weights.values())) - 2]
        assert set(busy) == set(weights)
        assert off(busy, weights) <= 1 + 1e-9

    strategy = FairShareStrategy(by="customer", weights=weights)
    play(scene, store=store, concurrency=1, strategy=strategy)


@pytest.mark.parametrize("seed", range(3))
def test_a7_of_many_tenants_any_two_share_their_starts_within_one_job(seed: int, store: StoreMaker) -> None:
    weights = {name: 1.0 + number % 3 for number, name in enumerate("abcdefg")}

    async def scene(stage: Scene) -> None:
        shop = Shop(stage.scheduler)
        jobs = [name for name, weight in weights.items() for _ in range(int(weight) * 10)]
        new_rng(seed).shuffle(jobs)
        await shop.submit(jobs)
        await stage.scheduler.drain()
        busy = shop.order[:-13]
        for one, other in combinations(weights, 2):
            theirs = [tenant for tenant in busy if tenant in (one, other)]
            assert off(theirs, {one: weights[one], other: weights[other]}) <= 1 + 1e-9

    strategy = FairShareStrategy(by="customer", weights=weights)
    play(scene, store=store, concurrency=1, strategy=strategy)


def test_a7_tenants_of_one_weight_go_round_by_round(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        shop = Shop(stage.scheduler)
        jobs = [name for name in "abcdefg" for _ in range(15)]
        new_rng(5).shuffle(jobs)
        await shop.submit(jobs)
        await stage.scheduler.drain()
        for begin in range(0, len(jobs), 7):
            assert sorted(shop.order[begin : begin + 7]) == list("abcdefg")

    play(scene, store=store, concurrency=1, strategy=FairShareStrategy(by="customer"))


def test_a7_a_flood_delays_nobody_s_first_job_by_more_than_one_round(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        shop = Shop(stage.scheduler)
        await shop.submit(["flood"] * 500)
        await pass_time(20.5)
        await shop.submit(["x", "y", "z"])
        await pass_time(5)
        assert set(shop.order[21:25]) >= {"x", "y", "z"}, "within one round of the four"
        await stage.scheduler.stop(timeout=0)

    strategy = FairShareStrategy(by="customer")
    play(scene, store=store, concurrency=1, strategy=strategy, checked=False)


def test_a7_who_was_idle_gets_no_credit(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        shop = Shop(stage.scheduler)
        await shop.submit(["b"])
        await shop.submit(["a"] * 100)
        await pass_time(50.5)
        await shop.submit(["b"] * 50)
        await pass_time(20)
        then = shop.order[51:]
        assert abs(then.count("a") - then.count("b")) <= 1
        assert "bbb" not in "".join(then)
        await stage.scheduler.stop(timeout=0)

    strategy = FairShareStrategy(by="customer")
    play(scene, store=store, concurrency=1, strategy=strategy, checked=False)


def test_jobs_for_later_are_not_ahead_of_those_of_today(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        shop = Shop(stage.scheduler)
        await shop.submit(["late"] * 50, delay=100)
        await shop.submit(["a"] * 200)
        await pass_time(140.5)
        then = "".join("l" if name == "late" else "a" for name in shop.order[101:])
        assert abs(then.count("l") - then.count("a")) <= 1, "from then on half and half"
        await stage.scheduler.stop(timeout=0)

    strategy = FairShareStrategy(by="customer")
    play(scene, store=store, concurrency=1, strategy=strategy, checked=False)


def test_priority_decides_between_equals_only(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        shop = Shop(stage.scheduler)
        await shop.submit(["a"], priority=Priority.LOW)
        await shop.submit(["b"], priority=Priority.MEDIUM)
        await shop.submit(["c"], priority=Priority.CRITICAL)
        await shop.submit(["c"], priority=Priority.CRITICAL)
        await stage.scheduler.drain()
        assert shop.order == ["c", "b", "a", "c"]

    play(scene, store=store, concurrency=1, strategy=FairShareStrategy(by="customer"))


def test_a_task_without_the_argument_is_one_tenant_more(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        shop = Shop(stage.scheduler)

        @stage.scheduler.task
        async def other() -> None:
            shop.order.append("other")
            await pass_time(1)

        await shop.submit(["a"] * 10 + ["b"] * 10)
        await stage.scheduler.submit_many([other.bind() for _ in range(10)])
        await stage.scheduler.drain()
        for begin in range(0, 30, 3):
            assert sorted(shop.order[begin : begin + 3]) == ["a", "b", "other"]

    play(scene, store=store, concurrency=1, strategy=FairShareStrategy(by="customer"))


def test_an_argument_left_out_is_its_default_s_tenant(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        shop = Shop(stage.scheduler)
        await shop.submit(["a"] * 4)
        await stage.scheduler.submit_many([shop.serve.bind() for _ in range(2)])
        await shop.submit(["somebody"] * 2)
        await stage.scheduler.drain()
        assert shop.order == ["a", "somebody"] * 4

    play(scene, store=store, concurrency=1, strategy=FairShareStrategy(by="customer"))


def test_retries_and_schedules_keep_their_tenant(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        failed: set[str] = set()
        order: list[str] = []

        @stage.scheduler.task(retry=RetryPolicy(2, base_delay=0), name="serve")
        async def serve(customer: str, number: int = 0) -> None:
            order.append(customer)
            await pass_time(1)
            if customer == "fails" and str(number) not in failed:
                failed.add(str(number))
                raise ValueError

        await stage.scheduler.submit_many([serve.bind("fails", number) for number in range(3)])
        await stage.scheduler.submit_many([serve.bind("good") for _ in range(6)])
        await stage.scheduler.drain()
        assert order[:2] in (["fails", "fails"], ["fails", "good"])
        assert order.count("fails") == 6
        await stage.scheduler.add_schedule("s", serve.bind("clock"), every("1s"), overlap="allow")
        await stage.scheduler.submit_many([serve.bind("good") for _ in range(50)])
        order.clear()
        await pass_time(20.5)
        assert order.count("clock") >= 9
        await stage.scheduler.stop(timeout=0)

    strategy = FairShareStrategy(by="customer")
    play(scene, store=store, concurrency=1, strategy=strategy, checked=False)


def test_shares_hold_among_the_jobs_that_wait_at_a_limit(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        shop = Shop(stage.scheduler, limit=Limit("l", 2))
        await shop.submit(["flood"] * 40)
        await pass_time(5.5)
        await shop.submit(["x"] * 5)
        await pass_time(10)
        then = shop.order[12:24]
        assert then.count("x") == 5
        assert abs(then[:10].count("x") - 5) <= 1
        await stage.scheduler.stop(timeout=0)

    strategy = FairShareStrategy(by="customer")
    play(scene, store=store, concurrency=10, strategy=strategy, checked=False)


def test_the_shares_and_the_order_outlive_a_restart_with_other_weights(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        make = store_maker("sqlite", tmp_path)
        orders = []
        for weights in ({"a": 1}, {"a": 3}):
            strategy = FairShareStrategy(by="customer", weights=weights)
            scheduler = make_scheduler(clock, make(clock), concurrency=1, strategy=strategy)
            shop = Shop(scheduler)
            async with scheduler:
                await shop.submit((["a"] * 30 + ["b"] * 30) * 2)
                await pass_time(40.5 if weights["a"] == 1 else 120.5)
            orders.append(shop.order)
        assert abs(orders[0].count("a") - orders[0].count("b")) <= 1
        # The rest of the first ones keep their places; those submitted since come at three to one.
        rest, since = orders[1][:80], orders[1][80:]
        assert (rest.count("a"), rest.count("b")) == pytest.approx((40, 40), abs=1)
        assert (since.count("a"), since.count("b")) == pytest.approx((30, 10), abs=2)

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_another_argument_is_another_strategy(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        make = store_maker("sqlite", tmp_path)
        scheduler = make_scheduler(clock, make(clock), strategy=FairShareStrategy(by="customer"))
        shop = Shop(scheduler)
        async with scheduler.client():
            await shop.submit(["a"])
        for strategy in (FairShareStrategy(by="user"), None):
            with pytest.raises(ConfigurationError, match="fair_share:customer"):
                await make_scheduler(clock, make(clock), strategy=strategy).start()

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_an_operator_s_retry_and_a_dependency_come_to_their_turn(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        shop = Shop(stage.scheduler)
        job = await shop.serve.submit("a")
        child = await shop.serve.using(depends_on=[job]).submit("child")
        await job.result()
        assert await child.wait() is COMPLETED
        await shop.submit(["flood"] * 20)
        again = await stage.scheduler.retry(job.id)
        await pass_time(3.5)
        assert await again.status() is COMPLETED
        await stage.scheduler.stop(timeout=0)

    strategy = FairShareStrategy(by="customer")
    play(scene, store=store, concurrency=1, strategy=strategy, checked=False)
