"""Rates of a running scheduler: never exceeded, and nobody waits longer, or works more, than they ask for."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.restraint_scene import Load, turns_of, two_schedulers
from tests.runtime.stage import (
    CANCELLED,
    COMPLETED,
    READY,
    Scene,
    StoreMaker,
    make_scheduler,
    pass_time,
    play,
    store_maker,
)

from betimes import ConfigurationError, Context, Limit, Rate, ReasonCode, RetryPolicy, Snooze, every
from betimes.testing import VirtualClock, run_virtual


def module_work() -> None: ...


def test_case_141_a_rate_limited_task_does_not_block_the_others(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        a_starts: list[float] = []
        b_ends: list[float] = []

        @stage.scheduler.task(rate=Rate("10/min"))
        async def a() -> None:
            a_starts.append(stage.time)
            await pass_time(0.1)

        @stage.scheduler.task
        async def b() -> None:
            await pass_time(0.1)
            b_ends.append(stage.time)

        await stage.scheduler.submit_many([a.bind() for _ in range(100)])
        await stage.scheduler.submit_many([b.bind() for _ in range(100)])
        await pass_time(60)
        assert len(b_ends) == 100
        assert max(b_ends) < 5
        assert len([at for at in a_starts if at < 60]) == 10
        await stage.scheduler.drain()
        assert a_starts == pytest.approx([6.0 * number for number in range(100)])

    play(scene, store=store, concurrency=4)


def test_a14_a_throttled_task_idles_no_worker_whatever_its_priority(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        load = Load()

        @stage.scheduler.task(rate=Rate("1/h"), priority=3)
        async def throttled() -> None: ...

        @stage.scheduler.task(priority=0)
        async def free() -> None:
            await load.carry("free", 1)

        await stage.scheduler.submit_many([throttled.bind() for _ in range(1000)])
        await stage.scheduler.submit_many([free.bind() for _ in range(40)])
        await pass_time(9.5)
        assert load.running["free"] == load.peak["free"] == 4
        await pass_time(2)
        assert (await stage.scheduler.metrics()).completed == 41
        await stage.scheduler.stop(timeout=0)

    play(scene, store=store, concurrency=4, checked=False)


def test_a_worker_sleeps_until_the_next_token_and_no_longer(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        starts: list[float] = []

        @stage.scheduler.task(rate=Rate("1/10s"))
        async def work() -> None:
            starts.append(stage.time)

        await stage.settle()
        turns = turns_of(stage.scheduler)
        await pass_time(200)
        at_rest = turns()  # with chores alone: on a file, looking for processes that are gone
        await stage.scheduler.submit_many([work.bind() for _ in range(20)])
        await pass_time(200)
        assert starts == [200 + 10.0 * number for number in range(20)]
        assert turns() - at_rest <= at_rest + 2 * 20 + 3, "two turns a token: one to claim, one to report"

    play(scene, store=store, poll="1h", lease="2h", grace=0)


def test_a_burst_gathers_while_nothing_starts_and_no_further(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        starts: list[float] = []

        @stage.scheduler.task(rate=Rate("1/10s", burst=3))
        async def work() -> None:
            starts.append(stage.time)

        await stage.scheduler.submit_many([work.bind() for _ in range(5)])
        await stage.scheduler.drain()
        assert starts == [0, 0, 0, 10, 20]
        await pass_time(15)
        await stage.scheduler.submit_many([work.bind() for _ in range(3)])
        await stage.scheduler.drain()
        assert starts[5:] == [35, 40, 50]
        await pass_time(1000)
        await stage.scheduler.submit_many([work.bind() for _ in range(4)])
        await stage.scheduler.drain()
        assert starts[8:] == [1050, 1050, 1050, 1060]

    play(scene, store=store)


def test_tasks_that_name_a_rate_share_it_in_the_order_of_priority(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        order: list[str] = []
        smtp = Rate("1/s", name="smtp")

        @stage.scheduler.task(rate=smtp)
        async def mail() -> None:
            order.append(f"mail {stage.time:g}")

        @stage.scheduler.task(rate=smtp)
        def alarm() -> None:
            order.append(f"alarm {stage.time:g}")

        await stage.scheduler.submit_many([mail.bind() for _ in range(3)])
        await stage.settle()
        await stage.scheduler.submit_many([alarm.using(priority=3).bind() for _ in range(2)])
        await stage.scheduler.drain()
        assert sorted(order, key=lambda one: float(one.split()[1])) == order
        assert [one.split()[1] for one in order] == ["0", "1", "2", "3", "4"]
        assert (await stage.scheduler.limit("smtp", kind="rate")).every_s == 1

    play(scene, store=store)


def test_each_value_of_an_argument_has_a_rate_of_its_own(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        starts: dict[str, list[float]] = {"a": [], "b": []}

        @stage.scheduler.task(rate=Rate("1/10s", by="host"))
        async def fetch(host: str) -> None:
            starts[host].append(stage.time)

        await stage.scheduler.submit_many([fetch.bind(host) for host in "aabaabb"])
        await stage.scheduler.drain()
        assert starts == {"a": [0, 10, 20, 30], "b": [0, 10, 20]}

    play(scene, store=store)


def test_a_job_waits_for_its_limit_and_its_rates_together_and_charges_none_alone(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        starts: list[float] = []
        rates = [Rate("1/s", name="fast"), Rate("1/5s", name="slow")]

        @stage.scheduler.task(rate=rates, limit=Limit("l", 1))
        async def both() -> None:
            starts.append(stage.time)
            await pass_time(8)

        @stage.scheduler.task(rate=rates[0])
        async def fast() -> None: ...

        await stage.scheduler.submit_many([both.bind() for _ in range(3)])
        await pass_time(4)
        first = await fast.submit()
        await first.result()
        assert stage.time == 4, "those who wait for the limit have taken none of its tokens"
        await stage.scheduler.drain()
        assert starts == [0, 8, 16]

    play(scene, store=store)


def test_every_attempt_is_charged_and_a_wait_is_not(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        starts: list[float] = []

        @stage.scheduler.task(rate=Rate("1/10s"), retry=RetryPolicy(3, base_delay=1, jitter=False))
        async def work(context: Context, *, way: str) -> None:
            starts.append(stage.time)
            if way == "fails" and context.attempt == 1:
                raise ValueError
            if way == "snoozes" and len(starts) == 1:
                raise Snooze(3)

        await work.submit(way="snoozes")
        await work.submit(way="fails")
        await stage.scheduler.drain()
        assert starts == [0, 10, 20, 30]

    play(scene, store=store)


def test_who_is_cancelled_while_it_waits_takes_no_token(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(rate=Rate("1/10s"))
        async def work() -> float:
            return stage.time

        jobs = await stage.scheduler.submit_many([work.bind() for _ in range(4)])
        await pass_time(1)
        for job in jobs[1:3]:
            await job.cancel()
        assert await jobs[3].result() == 10
        assert [await job.status() for job in jobs] == [COMPLETED, CANCELLED, CANCELLED, COMPLETED]

    play(scene, store=store)


def test_a_worker_that_does_not_know_the_task_uses_no_token(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        knows, stranger = two_schedulers(clock, tmp_path)
        starts: list[float] = []

        @knows.task(name="work", rate=Rate("1/h"))
        async def work() -> None:
            starts.append(clock.monotonic())

        async with knows.client():
            await work.submit()
            async with stranger:
                await pass_time(60)
                (info,) = await stranger.limits("work")
                assert info.is_open, "the token came back"
        async with knows:
            await knows.drain()
        assert len(starts) == 1
        assert starts[0] < 70

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_a_rate_is_changed_while_it_runs_and_used_tokens_stay_used(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        starts: list[float] = []

        @stage.scheduler.task(name="work", rate=Rate("1/100s"))
        async def work() -> None:
            starts.append(stage.time)

        await stage.scheduler.submit_many([work.bind() for _ in range(30)])
        await pass_time(10)
        assert starts == [0]
        await stage.scheduler.set_rate("work", "1/s", burst=2)
        await pass_time(5)
        assert starts[1:] != []
        assert 5 <= len(starts) <= 1 + 2 + 6
        info = await stage.scheduler.limit("work", kind="rate")
        assert (info.every_s, info.burst, info.is_changed) == (1, 2, True)
        await stage.scheduler.set_rate("work", None)
        done = len(starts)
        await pass_time(99)
        assert len(starts) <= done + 1
        info = await stage.scheduler.limit("work", kind="rate")
        assert (info.every_s, info.burst, info.is_changed) == (100, 1, False)
        await stage.scheduler.set_rate("work", "1000000/s", burst=1000)
        await stage.scheduler.drain()

    play(scene, store=store)


@pytest.mark.parametrize(
    ("rate", "burst", "text"), [("soon", 1, "^rate is"), (5, 1, "^rate is"), ("1/s", 0, "^burst is")]
)
def test_a_rate_is_changed_to_a_rate(rate: Any, burst: Any, text: str) -> None:
    async def scene(stage: Scene) -> None:
        stage.scheduler.task(name="work", rate=Rate("1/s"))(module_work)
        with pytest.raises(ConfigurationError, match=text):
            await stage.scheduler.set_rate("work", rate, burst)

    play(scene)


def test_the_next_token_and_the_expected_start_are_said_and_kept(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="work", rate=Rate("1/10s"))
        async def work() -> None: ...

        jobs = await stage.scheduler.submit_many([work.bind() for _ in range(5)])
        await pass_time(3)
        said = []
        for job in jobs[1:]:
            explanation = await job.explain()
            (reason,) = explanation.reasons
            assert reason.code is ReasonCode.NO_TOKEN
            assert "Rate 'work' gives one token every 10s; the next comes at" in reason.text
            said.append(explanation.expected_start)
        await stage.scheduler.drain()
        assert [(await job.info()).started_at for job in jobs[1:]] == said

    play(scene, store=store)


def test_a_schedule_s_runs_are_held_to_the_rate(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        starts: list[float] = []

        @stage.scheduler.task(rate=Rate("1/10s"))
        async def work() -> None:
            starts.append(stage.time)

        await stage.scheduler.add_schedule("s", work.bind(), every("3s"), overlap="allow")
        await pass_time(31)
        assert len(starts) <= 4
        assert all(later - earlier >= 10 for earlier, later in pairwise(starts))
        await stage.scheduler.stop()

    play(scene, store=store, checked=False)


def test_a14_two_processes_share_a_rate(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        both = two_schedulers(clock, tmp_path)
        starts: list[float] = []
        tasks = []
        for scheduler in both:

            @scheduler.task(name="work", rate=Rate("1/s"))
            async def work() -> None:
                starts.append(clock.monotonic())

            tasks.append(work)
        async with both[0], both[1]:
            for number in range(20):
                await tasks[number % 2].submit()
            await asyncio.gather(*(scheduler.drain() for scheduler in both))
        assert len(starts) == 20
        assert all(later - earlier > 0.999 for earlier, later in pairwise(starts))
        assert starts[-1] < 21

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_a_restart_gives_no_token_back(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        make = store_maker("sqlite", tmp_path)
        starts: list[float] = []
        statuses = []
        for _ in range(3):
            scheduler = make_scheduler(clock, make(clock))

            @scheduler.task(name="work", rate=Rate("1/100s"))
            async def work() -> None:
                starts.append(clock.monotonic())

            async with scheduler:
                job = await work.submit()
                await pass_time(10)
                statuses.append(await job.status())
        assert starts == [0]
        assert statuses == [COMPLETED, READY, READY]

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_a_wall_clock_that_is_set_back_lengthens_no_wait(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        starts: list[float] = []

        @stage.scheduler.task(rate=Rate("1/10s"))
        async def work() -> None:
            starts.append(stage.time)

        await stage.scheduler.submit_many([work.bind() for _ in range(4)])
        await pass_time(15)
        stage.clock.jump("-1h")
        await stage.scheduler.drain()
        assert len(starts) == 4
        assert starts[-1] <= 10 + 2 * 10 + 10 + 61, "noticed within a minute, and then only one token's wait"

    play(scene, store=store)


@pytest.mark.parametrize("wrong", [5, "10/s", [5], [Rate("1/s"), "10/s"], {"r": Rate("1/s")}, Limit("l", 1)])
def test_a_rate_is_given_as_one_or_a_list(wrong: Any) -> None:
    async def scene(stage: Scene) -> None:
        with pytest.raises(ConfigurationError, match=r"^rate is .*; write rate=Rate"):
            stage.scheduler.task(rate=wrong)(module_work)
        with pytest.raises(ConfigurationError, match="has two rates named"):
            stage.scheduler.task(rate=[Rate("1/s"), Rate("5/m")])(module_work)
        assert stage.scheduler.task(rate=[Rate("1/s"), Rate("5/m", name="m")])(module_work).name

    play(scene)
