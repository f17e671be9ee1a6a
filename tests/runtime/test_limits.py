"""Limits of a running scheduler: never exceeded, never leaked, never in anybody else's way."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.restraint_scene import CountedExecutor, Load, held, ids, turns_of, two_schedulers
from tests.runtime.stage import (
    CANCELLED,
    COMPLETED,
    READY,
    RUNNING,
    TIMED_OUT,
    Scene,
    StoreMaker,
    make_scheduler,
    pass_time,
    play,
    store_maker,
)
from tests.runtime.test_leases import silence

from betimes import (
    CancelAnswer,
    ConfigurationError,
    Context,
    Limit,
    RetryPolicy,
    Snooze,
    every,
)
from betimes.testing import InlineExecutor, VirtualClock, run_virtual


def module_work() -> None: ...


def test_p19_at_most_so_many_run_at_once_in_the_order_of_priority(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        load = Load()

        @stage.scheduler.task(limit=Limit("l", 3))
        async def work(name: str) -> None:
            load.order.append(name)
            await load.carry("l", 10)

        numbers = list(range(20))
        bound = [work.using(priority=number % 5).bind(f"{4 - number % 5}") for number in numbers]
        handles = await stage.scheduler.submit_many(bound)
        await stage.scheduler.drain()
        assert load.peak["l"] == 3
        assert stage.time == 70
        assert [await handle.status() for handle in handles] == [COMPLETED] * 20
        names = [name for name in load.order if name != "l"]
        assert names == sorted(names)
        assert await held(stage.scheduler, "l") == 0

    play(scene, store=store)


def test_p19_one_limit_holds_over_loop_threads_processes_and_commands(store: StoreMaker) -> None:
    load = Load()

    async def scene(stage: Scene) -> None:
        shared = Limit("shared", 4)

        @stage.scheduler.task(limit=shared)
        async def on_loop() -> None:
            await load.carry("all", 7)

        @stage.scheduler.task(limit=shared)
        def in_thread() -> None: ...

        in_process = stage.scheduler.task(executor="process", limit=shared, name="process")(module_work)
        command = stage.scheduler.command("command", ["true"], limit=shared)
        for _ in range(6):
            await on_loop.submit()
            await in_thread.submit()
            await in_process.submit()
            await command.submit()
        await stage.scheduler.drain()
        assert load.peak["all"] == 4
        assert len(load.starts) == 24
        assert await held(stage.scheduler, "shared") == 0

    lanes = ("thread", "process", "command")
    executors = [CountedExecutor(lane, load, "all", 5.0) for lane in lanes]
    play(scene, store=store, executors=executors, concurrency=50)


def test_p19_each_value_of_an_argument_has_a_limit_of_its_own(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        load = Load()

        @stage.scheduler.task(limit=Limit("api", 2, by="customer"))
        async def call(number: int, customer: str = "nobody") -> None:
            await load.carry(customer, 10)

        await stage.scheduler.submit_many(
            [call.bind(n, customer) for n in range(6) for customer in ("a", "b", "c")]
            + [call.bind(n) for n in range(3)]
            + [call.bind(n, "nobody") for n in range(3)]
        )
        await stage.settle()
        assert load.running == {"a": 2, "b": 2, "c": 2, "nobody": 2}
        limits = await stage.scheduler.limits("api")
        assert {(each.value, each.held) for each in limits} == {("a", 2), ("b", 2), ("c", 2), ("nobody", 2)}
        assert all(each.by == "customer" for each in limits)
        await stage.scheduler.drain()
        assert load.peak == {"a": 2, "b": 2, "c": 2, "nobody": 2}
        assert stage.time == 30

    play(scene, store=store, concurrency=100)


def test_p19_a_job_passes_only_if_all_its_limits_let_it(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        load = Load()
        whole = Limit("whole", 3)

        @stage.scheduler.task(limit=[whole, Limit("host", 1, by="host")])
        async def fetch(host: str) -> None:
            load.begin("whole")
            await load.carry(host, 10)
            load.end("whole")

        @stage.scheduler.task(limit=whole)
        async def other() -> None:
            await load.carry("whole", 10)

        await stage.scheduler.submit_many([fetch.bind(host) for host in "aaaabbbb"])
        await stage.scheduler.submit_many([other.bind() for _ in range(8)])
        await stage.settle()
        assert load.running == {"whole": 3, "a": 1, "b": 1}, "the third place is not kept for a or b"
        await stage.scheduler.drain()
        assert (load.peak["whole"], load.peak["a"], load.peak["b"]) == (3, 1, 1)
        assert (await held(stage.scheduler, "whole"), await held(stage.scheduler, "host", "a")) == (0, 0)

    play(scene, store=store, concurrency=100)


def test_p19_a_thread_past_its_timeout_keeps_its_place(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        starts: list[float] = []

        @stage.scheduler.task(timeout=1, limit=Limit("l", 1))
        def stuck() -> None:
            starts.append(stage.time)

        first, second = [await stuck.submit() for _ in range(2)]
        assert await first.wait() is TIMED_OUT
        assert stage.time == 1
        await pass_time(20)
        assert (await second.status(), await held(stage.scheduler, "l")) == (READY, 1)
        (holder,) = (await stage.scheduler.limit("l")).holders
        assert holder.job_id == first.id
        assert await second.wait() is TIMED_OUT
        assert starts == [0, 30]
        await pass_time(60)
        assert await held(stage.scheduler, "l") == 0

    play(scene, store=store, executors=[InlineExecutor(takes_s=lambda run: 30.0)])


def test_p19_a_late_thread_s_retry_waits_for_it_and_takes_one_place_only(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        starts: list[float] = []

        @stage.scheduler.task(timeout=1, limit=Limit("l", 2), retry=RetryPolicy(2, base_delay=0))
        def stuck() -> None:
            starts.append(stage.time)

        handle = await stuck.submit()
        await pass_time(10)
        assert (await handle.status(), await held(stage.scheduler, "l")) == (READY, 1)
        assert await handle.wait() is TIMED_OUT
        assert starts == [0, 30]
        await pass_time(60)
        assert await held(stage.scheduler, "l") == 0

    play(scene, store=store, executors=[InlineExecutor(takes_s=lambda run: 30.0)])


def test_p19_an_abandoned_job_keeps_its_place_until_its_code_returns(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(limit=Limit("l", 1))
        def slow() -> float:
            return stage.time

        first, second = [await slow.submit() for _ in range(2)]
        await pass_time(5)
        assert await first.cancel(abandon=True) is CancelAnswer.CANCELLED
        await pass_time(5)
        assert (await first.status(), await second.status()) == (CANCELLED, READY)
        assert await held(stage.scheduler, "l") == 1
        assert await second.result() == 30
        assert await held(stage.scheduler, "l") == 0

    play(scene, store=store, executors=[InlineExecutor(takes_s=lambda run: 30.0)])


def test_a_cancelled_loop_job_gives_its_place_to_the_next(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(limit=Limit("l", 1))
        async def work() -> None:
            await pass_time(100)

        first, second, third = [await work.submit() for _ in range(3)]
        await pass_time(1)
        assert await second.cancel() is CancelAnswer.CANCELLED, "it waits at the limit, and never starts"
        assert await first.cancel() is CancelAnswer.REQUESTED
        await stage.settle()
        assert [await job.status() for job in (first, second, third)] == [CANCELLED, CANCELLED, RUNNING]
        assert await third.wait() is COMPLETED
        assert stage.time == 101

    play(scene, store=store)


def test_a_replaced_version_leaves_the_line_and_the_new_one_stands_in_its_own_place(
    store: StoreMaker,
) -> None:
    async def scene(stage: Scene) -> None:
        load = Load()

        @stage.scheduler.task(limit=Limit("l", 1, by="key"))
        async def work(key: str, seconds: float) -> None:
            await load.carry(key, seconds)

        running = await work.using(job_id="a").submit("x", 10)
        waiting = await work.using(job_id="b").submit("x", 10)
        await stage.settle()
        moved = await work.using(job_id="b", replace=True).submit("y", 1)
        assert await waiting.wait() is CANCELLED
        assert await moved.wait() is COMPLETED
        assert stage.time == 1, "the new version waits at its own gate"
        newer = await work.using(job_id="a", replace=True).submit("x", 1)
        assert await newer.wait() is COMPLETED
        assert stage.time == 11, "it waits for the old one's code, and for its place"
        assert await running.status() in (COMPLETED, CANCELLED)
        assert load.peak == {"x": 1, "y": 1}
        assert await held(stage.scheduler, "l", "x") == 0

    play(scene, store=store)


def test_a_snooze_or_a_wait_for_a_retry_holds_no_place(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        order: list[str] = []
        policy = RetryPolicy(2, base_delay=50, jitter=False)

        @stage.scheduler.task(limit=Limit("l", 1), retry=policy)
        async def work(context: Context, name: str) -> None:
            order.append(f"{name} {stage.time:g}")
            await pass_time(1)
            if name == "snoozer" and len(order) == 1:
                raise Snooze(30)
            if name == "failer" and context.attempt == 1:
                raise ValueError("once")

        jobs = [await work.submit(name) for name in ("snoozer", "failer", "plain")]
        await stage.scheduler.drain()
        assert order == ["snoozer 0", "failer 1", "plain 2", "snoozer 31", "failer 52"]
        assert [await job.status() for job in jobs] == [COMPLETED] * 3

    play(scene, store=store)


def test_a_graph_s_jobs_wait_for_each_other_and_then_at_the_limit(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        load = Load()

        @stage.scheduler.task(limit=Limit("l", 2))
        async def work() -> None:
            await load.carry("l", 10)

        leaves = {f"leaf{number}": (work.bind(), ("root",)) for number in range(5)}
        graph = {"root": (work.bind(), ()), **leaves, "end": (work.bind(), tuple(leaves))}
        handles = await stage.scheduler.submit_graph(graph)
        await stage.scheduler.drain()
        assert (load.peak["l"], stage.time) == (2, 50)
        assert {await handle.status() for handle in handles.values()} == {COMPLETED}

    play(scene, store=store)


def test_a_schedule_s_jobs_and_those_by_hand_stand_at_the_limit(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        load = Load()

        @stage.scheduler.task(limit=Limit("l", 1, by="who"))
        async def work(who: str = "me") -> None:
            await load.carry(who, 25)

        await stage.scheduler.add_schedule("s", work.bind(), every("10s"), overlap="allow")
        by_hand = await stage.scheduler.trigger_now("s")
        other = await work.submit("you")
        await stage.settle()
        assert [await job.status() for job in (by_hand, other)] == [RUNNING, RUNNING]
        await pass_time(100)
        assert load.peak == {"me": 1, "you": 1}
        assert (await stage.scheduler.limit("l", "me")).waiting > 0
        await stage.scheduler.remove_schedule("s")
        await stage.scheduler.drain()

    play(scene, store=store)


def test_a_job_that_expires_at_the_limit_ends_there(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(limit=Limit("l", 1))
        async def work() -> None:
            await pass_time(10)

        first, late, last = await work.submit(), await work.using(expires=5).submit(), await work.submit()
        assert await late.wait() is CANCELLED
        assert stage.time == 5
        assert [await job.wait() for job in (first, last)] == [COMPLETED, COMPLETED]
        assert stage.time == 20

    play(scene, store=store)


def test_a_full_limit_keeps_no_worker_and_no_other_task_waiting(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(limit=Limit("l", 1))
        async def limited() -> None:
            await pass_time(1000)

        @stage.scheduler.task
        async def free() -> None: ...

        await stage.scheduler.submit_many([limited.using(priority=3).bind() for _ in range(2000)])
        jobs = await stage.scheduler.submit_many([free.using(priority=0).bind() for _ in range(50)])
        await asyncio.gather(*(job.result() for job in jobs))
        assert stage.time == 0
        metrics = await stage.scheduler.metrics()
        assert (metrics.in_flight, metrics.ready) == (1, 1999)
        turns = turns_of(stage.scheduler)
        await pass_time(900)
        assert turns() <= 905, "nothing polls the line"
        await stage.scheduler.stop(timeout=0)

    play(scene, store=store, concurrency=4, checked=False, limit_s=5000)


# --- looked at and changed


def test_a_limit_shows_who_holds_it_and_who_waits(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(limit=Limit("l", 2))
        async def work() -> None:
            await pass_time(10)

        jobs = [await work.using(priority=3 - n // 2).submit() for n in range(5)]
        await stage.settle()
        info = await stage.scheduler.limit("l")
        assert (info.kind, info.name, info.value, info.by) == ("limit", "l", None, None)
        assert (info.max_running, info.held, info.waiting) == (2, 2, 3)
        assert (info.is_open, info.opens_at, info.is_changed, info.is_tripped) == (False, None, False, False)
        assert {holder.job_id for holder in info.holders} == set(ids(jobs[:2]))
        assert {holder.worker for holder in info.holders} == {(await jobs[0].info()).worker}
        assert info.waiters == ids(jobs[2:])
        (listed,) = await stage.scheduler.limits()
        assert (listed.name, listed.held, listed.holders, listed.waiters) == ("l", 2, (), ())

    play(scene, store=store)


def test_a_limit_is_changed_while_it_runs(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        load = Load()

        @stage.scheduler.task(limit=Limit("l", 2))
        async def work() -> None:
            await load.carry("l", 10)

        await stage.scheduler.submit_many([work.bind() for _ in range(30)])
        await stage.settle()
        await stage.scheduler.set_limit("l", 5)
        await stage.settle()
        assert load.running["l"] == 5
        info = await stage.scheduler.limit("l")
        assert (info.max_running, info.is_changed) == (5, True)
        await stage.scheduler.set_limit("l", 1)
        await pass_time(11)
        assert load.running["l"] == 1, "what runs goes on; nothing more starts until there is room"
        await stage.scheduler.set_limit("l", 0)
        await pass_time(100)
        assert load.running["l"] == 0
        await stage.scheduler.set_limit("l", None)
        await stage.settle()
        assert load.running["l"] == 2
        assert not (await stage.scheduler.limit("l")).is_changed
        await stage.scheduler.drain()
        assert load.peak["l"] == 5

    play(scene, store=store)


def test_a_task_that_comes_while_the_scheduler_runs_brings_its_limit(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        load = Load()
        with pytest.raises(ConfigurationError, match="knows no limit named 'l'"):
            await stage.scheduler.set_limit("l", 3)

        @stage.scheduler.task(limit=Limit("l", 1))
        async def work() -> None:
            await load.carry("l", 10)

        await stage.scheduler.set_limit("l", 3)
        await stage.scheduler.submit_many([work.bind() for _ in range(6)])
        await stage.scheduler.drain()
        assert load.peak["l"] == 3

    play(scene, store=store)


def test_a_limit_that_was_just_registered_can_be_looked_at(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(limit=Limit("l", 1))
        async def work() -> None: ...

        assert (await stage.scheduler.limit("l")).max_running == 1
        assert [each.name for each in await stage.scheduler.limits()] == ["l"]
        del work

    play(scene, store=store)


@pytest.mark.parametrize("wrong", [-1, True, 1.5, "3", 1_000_001])
def test_a_limit_is_changed_to_a_whole_number(wrong: Any) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(limit=Limit("l", 1))
        async def work() -> None: ...

        with pytest.raises(ConfigurationError, match=r"^max_running is .*; it is a whole number from 0 to"):
            await stage.scheduler.set_limit("l", wrong)
        del work

    play(scene)


def test_what_is_not_there_is_said_to_be_unknown(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        s = stage.scheduler
        for call, kind in (
            (s.limit("x"), "limit"),
            (s.limit("x", kind="rate"), "rate"),
            (s.limit("x", "value", kind="breaker"), "breaker"),
            (s.set_limit("x", 1), "limit"),
            (s.set_limit("x", None), "limit"),
            (s.set_rate("x", "1/s"), "rate"),
            (s.set_rate("x", None), "rate"),
            (s.open_circuit("x"), "breaker"),
            (s.close_circuit("x"), "breaker"),
        ):
            with pytest.raises(ConfigurationError, match=f"the store knows no {kind} named 'x'"):
                await call
        assert await s.limits() == await s.limits("x") == []

    play(scene, store=store)


@pytest.mark.parametrize("value", [5, True, 1.5, b"x", ["a"]])
def test_a_value_is_asked_for_as_text(value: Any) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(limit=Limit("l", 1, by="who"))
        async def work(who: bool) -> None:
            await pass_time(1)

        await work.submit(True)
        await stage.settle()
        assert await held(stage.scheduler, "l", "true") == 1
        with pytest.raises(ConfigurationError, match=r'it must be text: .* such as "5", "true" or "null"'):
            await stage.scheduler.limit("l", value)

    play(scene)


@pytest.mark.parametrize("value", ["x" * 100_000, "a\tb", "\n", "", "ü€"])
def test_a_value_of_any_length_and_kind_is_found_again(value: str) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(limit=Limit("l", 1, by="who"))
        async def work(who: str) -> None:
            await pass_time(1)

        await work.submit(value)
        await work.submit(value + "other")
        await stage.settle()
        info = await stage.scheduler.limit("l", value)
        assert info.held == 1
        assert info.value is not None
        assert len(info.value) < 300
        assert await held(stage.scheduler, "l", info.value) == 1, "as it is listed, too"

    play(scene)


# --- over processes, and restarts


def test_p19_two_schedulers_on_one_file_share_a_limit(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        load = Load()
        both = two_schedulers(clock, tmp_path)
        tasks = []
        for scheduler in both:

            @scheduler.task(name="work", limit=Limit("l", 3))
            async def work() -> None:
                await load.carry("l", 10)

            tasks.append(work)
        async with both[0], both[1]:
            for number in range(20):
                await tasks[number % 2].submit()
            await asyncio.gather(*(scheduler.drain() for scheduler in both))
            assert load.peak["l"] == 3
            assert len(load.starts) == 20
            workers = [await scheduler.metrics() for scheduler in both]
            assert sum(metrics.completed for metrics in workers) == 20
            await both[0].set_limit("l", 7)
            assert (await both[1].limit("l")).max_running == 7

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_p19_a_dead_worker_s_places_are_free_when_its_lease_is_over(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        load = Load()
        both = two_schedulers(clock, tmp_path, lease=10)
        tasks = []
        for name, scheduler in zip(("first", "second"), both, strict=True):

            async def work(name: str = name) -> None:
                await load.carry(name, 1000 if name == "first" else 1)

            tasks.append(scheduler.task(name="work", limit=Limit("l", 2))(work))
        async with both[0]:
            jobs = [await tasks[0].submit() for _ in range(4)]
            await pass_time(1)
            assert load.running["first"] == 2
            silence(both[0])
            async with both[1]:
                await pass_time(5)
                assert load.starts == [0, 0], "until its lease is over, they are its places"
                assert (await both[1].limit("l")).held == 2
                await pass_time(30)
                assert load.peak["second"] == 2
                assert load.order.count("second") == 4
                assert [await job.status() for job in jobs] == [COMPLETED] * 4
                assert (await both[1].limit("l")).held == 0
            await both[0].stop(timeout=0)

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_what_a_stop_gives_back_holds_no_place(store: StoreMaker) -> None:
    async def main(clock: VirtualClock) -> None:
        load = Load()
        scheduler = make_scheduler(clock, store(clock))

        @scheduler.task(limit=Limit("l", 2))
        async def work() -> None:
            await load.carry("l", 10)

        async with scheduler.client():
            await scheduler.submit_many([work.bind() for _ in range(6)])
        for _ in range(3):
            await scheduler.start()
            await pass_time(2)
            assert load.running["l"] == 2
            await scheduler.stop(timeout=0)
            assert load.running["l"] == 0
        async with scheduler:
            await scheduler.drain()
            assert (await held(scheduler, "l"), load.peak["l"]) == (0, 2)

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_a_changed_limit_outlives_a_restart_and_a_changed_program(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        make = store_maker("sqlite", tmp_path)
        for declared, changed, now in ((2, 5, 5), (3, None, 5), (3, "back", 3), (4, None, 4)):
            scheduler = make_scheduler(clock, make(clock))

            @scheduler.task(name="work", limit=Limit("l", declared))
            async def work() -> None: ...

            async with scheduler:
                if isinstance(changed, int):
                    await scheduler.set_limit("l", changed)
                elif changed == "back":
                    await scheduler.set_limit("l", None)
                assert (await scheduler.limit("l")).max_running == now

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_a_client_s_jobs_stand_at_the_limits_of_its_tasks(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        load = Load()
        client, worker = two_schedulers(clock, tmp_path)
        tasks = []
        for scheduler in (client, worker):

            @scheduler.task(name="work", limit=Limit("l", 2))
            async def work() -> None:
                await load.carry("l", 10)

            tasks.append(work)
        async with client.client():
            jobs = [await tasks[0].submit() for _ in range(6)]
            async with worker:
                await asyncio.gather(*(job.result() for job in jobs))
        assert load.peak["l"] == 2

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_a_schedule_fired_by_a_process_that_does_not_know_the_task_keeps_its_limit(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        load = Load()
        knows, stranger = two_schedulers(clock, tmp_path)

        @knows.task(name="work", limit=Limit("l", 1, by="who"))
        async def work(who: str = "me") -> None:
            await load.carry(who, 100)

        async with knows.client():
            await knows.add_schedule("s", work.bind("you"), every("10s"), overlap="allow")
        async with stranger:
            await pass_time(45)
            assert [job.task for job in await stranger.jobs()] == ["work"] * 4
        async with knows:
            await knows.pause_schedule("s")
            await pass_time(50)
            info = await knows.limit("l", "you")
            assert (info.held, load.peak) == (1, {"you": 1})
            assert info.waiting >= 3
            await knows.drain()
        assert load.peak == {"you": 1}

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


# --- what is refused


def test_tasks_that_share_a_limit_say_the_same_of_it(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="one", limit=Limit("l", 2))
        async def one() -> None: ...

        with pytest.raises(ConfigurationError, match="two and one share the limit 'l', and say different"):
            stage.scheduler.task(name="two", limit=Limit("l", 3))(module_work)
        stage.scheduler.task(name="two", limit=Limit("l", 2))(module_work)
        with pytest.raises(ConfigurationError, match="three has two limits named 'l'"):
            stage.scheduler.task(name="three", limit=[Limit("l", 2), Limit("l", 2)])(module_work)
        with pytest.raises(ConfigurationError, match="three has 11 limits and rates; at most 10"):
            stage.scheduler.task(name="three", limit=[Limit(f"l{n}", 2) for n in range(11)])(module_work)
        with pytest.raises(ConfigurationError, match="by 'who', and three has no argument of that name"):
            stage.scheduler.task(name="three", limit=Limit("m", 2, by="who"))(module_work)
        del one

    play(scene, store=store)


@pytest.mark.parametrize("wrong", [5, "l", b"l", {"l": Limit("l", 1)}, [5], [Limit("l", 1), "m"], Limit])
def test_a_limit_is_given_as_one_or_a_list(wrong: Any) -> None:
    async def scene(stage: Scene) -> None:
        with pytest.raises(ConfigurationError, match=r"^limit is .*; write limit=Limit"):
            stage.scheduler.task(limit=wrong)(module_work)
        with pytest.raises(ConfigurationError, match=r"^limit is .*; write limit=Limit"):
            stage.scheduler.command("c", ["true"], limit=wrong)
        assert stage.scheduler.task(limit=())(module_work).name

    play(scene)


# --- larger than the pool


@pytest.mark.parametrize("is_late", [False, True])
def test_a_limit_larger_than_the_pool_is_pointed_out_once(
    store: StoreMaker, caplog: pytest.LogCaptureFixture, *, is_late: bool
) -> None:
    async def main(clock: VirtualClock) -> None:
        scheduler = make_scheduler(clock, store(clock), concurrency=4)
        is_durable = scheduler._store.is_durable
        if not is_late:
            for name, most in (("small", 4), ("large", 5)):
                scheduler.task(name=name, limit=Limit(name, most))(module_work)
        for _ in range(2):
            async with scheduler:
                if is_late and len(scheduler._definitions) == 0:
                    for name, most in (("small", 4), ("large", 5)):
                        await scheduler.task(name=name, limit=Limit(name, most))(module_work).submit()
        (record,) = [record for record in caplog.records if "concurrency=4" in record.getMessage()]
        if is_durable:
            assert record.getMessage().startswith("limit 'large' of 5 binds only together with other")
        else:
            assert record.getMessage().startswith("limit 'large' of 5 never binds: at most concurrency=4")
        assert record.levelno == (logging.INFO if is_durable else logging.WARNING)

    clock = VirtualClock()
    with caplog.at_level(logging.INFO, "betimes"):
        run_virtual(main(clock), clock=clock)


def test_a_client_points_nothing_out(caplog: pytest.LogCaptureFixture) -> None:
    async def main(clock: VirtualClock) -> None:
        scheduler = make_scheduler(clock, concurrency=4)
        scheduler.task(limit=Limit("large", 5))(module_work)
        async with scheduler.client():
            assert (await scheduler.limit("large")).max_running == 5
        assert not [record for record in caplog.records if "large" in record.getMessage()]

    clock = VirtualClock()
    with caplog.at_level(logging.INFO, "betimes"):
        run_virtual(main(clock), clock=clock)
