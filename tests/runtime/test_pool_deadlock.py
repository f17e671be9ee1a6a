"""Jobs that wait inside a pool for jobs of the same full pool are named, and nobody else is."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.runtime.stage import (
    CANCELLED,
    COMPLETED,
    FAILED,
    READY,
    Scene,
    StoreMaker,
    make_scheduler,
    pass_time,
    play,
)

from betimes import JobHandle, Limit, Rate, ReasonCode, Scheduler, StoreUnavailable
from betimes.core.events import Succeeded
from betimes.core.queue_view import Pause
from betimes.ports import ClaimRequest, Report, WorkerInfo
from betimes.runtime import pool_watch
from betimes.runtime.pool_watch import LOOK_EVERY_S, PoolWatch
from betimes.stores.memory import MemoryStore
from betimes.testing import VirtualClock, run_virtual

Look = Callable[[Scene], Coroutine[Any, Any, None]]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "can never go on" in record.getMessage()]


def pool_of(scheduler: Scheduler) -> PoolWatch:
    pool = scheduler._engine._watches.pool
    assert pool is not None
    return pool


class Family:
    """Two tasks: parents that wait for children of the same pool."""

    def __init__(self, scheduler: Scheduler, *, wait: bool = True, **options: Any) -> None:
        self.children: list[JobHandle[None]] = []

        @scheduler.task
        async def child() -> None: ...

        @scheduler.task
        async def parent(number: int = 1) -> None:
            mine = [await child.using(**options).submit() for _ in range(number)]
            self.children += mine
            await asyncio.gather(*(handle.result() for handle in mine))

        self.parent = parent
        self.child = child


def test_parents_that_fill_the_pool_and_wait_for_children_are_named_once(
    store: StoreMaker, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(stage: Scene) -> None:
        family = Family(stage.scheduler)
        first, second = [await family.parent.submit() for _ in range(2)]
        await pass_time(10 * LOOK_EVERY_S)
        (text,) = warnings(caplog)
        assert text.startswith("2 jobs that hold a slot can never go on")
        one, two = family.children
        for parent, child in ((first, one), (second, two)):
            assert (
                f"job {parent.id} ({family.parent.name}) waits for {child.id} ({family.child.name})" in text
            )
        assert "concurrency=" in text
        assert "depends_on" in text
        assert (await stage.scheduler.metrics()).deadlocked == 2
        explanation = await one.explain()
        assert explanation.reasons[0].code is ReasonCode.SLOTS_DEADLOCKED
        assert f"{first.id} and {second.id}" in explanation.reasons[0].text

        await first.cancel()
        assert await second.wait() is COMPLETED
        assert await first.status() is CANCELLED
        await stage.scheduler.drain()
        assert (await stage.scheduler.metrics()).deadlocked == 0
        assert len(warnings(caplog)) == 1

    play(scene, store=store, concurrency=2)


def test_explain_finds_a_lock_up_before_the_next_look(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(stage: Scene) -> None:
        family = Family(stage.scheduler)
        parent = await family.parent.submit()
        await stage.settle()
        assert stage.time < LOOK_EVERY_S
        codes = (await family.children[0].explain()).codes
        assert codes == {ReasonCode.SLOTS_DEADLOCKED, ReasonCode.NO_FREE_SLOT}
        assert len(warnings(caplog)) == 1
        await parent.cancel()

    play(scene, concurrency=1)


def test_a_second_lock_up_is_news(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(stage: Scene) -> None:
        family = Family(stage.scheduler)
        for number in (1, 2):
            parent = await family.parent.submit()
            await pass_time(5)
            assert len(warnings(caplog)) == number
            await parent.cancel()
            await stage.scheduler.drain()

    play(scene, concurrency=1)


def test_a_parent_that_gathers_many_is_named_when_none_of_them_can_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(stage: Scene) -> None:
        family = Family(stage.scheduler)
        parent = await family.parent.submit(5)
        await pass_time(5)
        (text,) = warnings(caplog)
        assert text.startswith("1 jobs that hold a slot")
        assert "and 2 more. Cancel" in text
        await parent.cancel()

    play(scene, concurrency=1)


def test_more_than_one_look_can_ask_for_are_taken_as_able_to_go_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_watch, "MOST_LOOKED_UP", 4)

    async def scene(stage: Scene) -> None:
        family = Family(stage.scheduler)
        parent = await family.parent.submit(5)
        await pass_time(5)
        assert warnings(caplog) == []
        await parent.cancel()
        await stage.scheduler.drain()
        parent = await family.parent.submit(4)
        await pass_time(5)
        assert len(warnings(caplog)) == 1
        await parent.cancel()

    play(scene, concurrency=1)


def test_a_job_that_waits_for_itself_is_named_whatever_is_free(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def narcissus(own_id: str) -> None:
            await (await stage.scheduler.job(own_id)).result()

        handle = await narcissus.using(job_id="n").submit("n")
        await pass_time(5)
        (text,) = warnings(caplog)
        assert f"job n ({narcissus.name}) waits for n ({narcissus.name})" in text
        await handle.cancel()

    play(scene, concurrency=10)


def test_a_child_that_is_blocked_by_a_starved_one_is_starved_too(
    store: StoreMaker, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing() -> None: ...

        @stage.scheduler.task
        async def parent() -> None:
            first = await nothing.submit()
            last = await nothing.using(depends_on=[first]).submit()
            await last.result()

        handle = await parent.submit()
        await pass_time(5)
        assert len(warnings(caplog)) == 1
        assert len(pool_of(stage.scheduler).found.starved) == 2
        await handle.cancel()

    play(scene, store=store, concurrency=1)


def test_a_replacement_waits_for_its_own_older_version_in_vain(
    store: StoreMaker, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def again(first: bool) -> None:
            if first:
                newer = await again.using(job_id="a", replace=True).submit(False)
                await newer.result()

        handle = await again.using(job_id="a").submit(True)
        await pass_time(5)
        assert len(warnings(caplog)) == 1
        await handle.cancel()

    play(scene, store=store, concurrency=5)


# --- nobody is accused who is only slow


async def wait_free(stage: Scene) -> None:
    family = Family(stage.scheduler)
    await (await family.parent.submit(3)).result()
    await pass_time(5)


async def wait_with_a_neighbour(stage: Scene) -> None:
    @stage.scheduler.task
    async def sleep(seconds: float) -> None:
        await pass_time(seconds)

    family = Family(stage.scheduler)
    await sleep.submit(50)
    parent = await family.parent.submit()
    await pass_time(10)
    await parent.result()


async def wait_for_a_neighbour(stage: Scene) -> None:
    @stage.scheduler.task
    async def sleep(seconds: float) -> None:
        await pass_time(seconds)

    @stage.scheduler.task
    async def follow(job_id: str) -> None:
        await (await stage.scheduler.job(job_id)).result()

    slow = await sleep.submit(50)
    await (await follow.submit(slow.id)).result()


async def wait_for_a_paused_queue(stage: Scene) -> None:
    family = Family(stage.scheduler, queue="paused")
    await stage.scheduler.pause_queue("paused")
    parents = [await family.parent.submit() for _ in range(2)]
    await pass_time(10)
    assert (await family.children[0].explain()).codes == {ReasonCode.QUEUE_PAUSED}
    for handle in (*parents, *family.children):
        await handle.cancel()


async def wait_for_another_worker(stage: Scene) -> None:
    family = Family(stage.scheduler)
    # Somebody else serves the queue too: it may take the children at any time.
    store = stage.scheduler._store
    await store.register(WorkerInfo(id="other", lease_us=10**12))
    parents = [await family.parent.submit() for _ in range(2)]
    await pass_time(10)
    for parent in parents:
        await parent.cancel()
    await store.retire("other")


async def wait_and_give_up_soon(stage: Scene) -> None:
    @stage.scheduler.task
    async def child() -> None: ...

    @stage.scheduler.task
    async def parent() -> None:
        with pytest.raises(TimeoutError):
            await (await child.submit()).result(timeout=LOOK_EVERY_S / 2)

    parents = [await parent.submit() for _ in range(2)]
    for handle in parents:
        await handle.result()


@pytest.mark.parametrize(
    "look",
    [
        wait_free,
        wait_with_a_neighbour,
        wait_for_a_neighbour,
        wait_for_a_paused_queue,
        wait_for_another_worker,
        wait_and_give_up_soon,
    ],
    ids=lambda look: look.__name__,
)
def test_who_can_still_go_on_is_not_named(
    look: Look, store: StoreMaker, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(stage: Scene) -> None:
        await look(stage)
        assert warnings(caplog) == []
        assert (await stage.scheduler.metrics()).deadlocked == 0
        await stage.scheduler.drain()

    play(scene, store=store, concurrency=2)


def test_a_job_that_waits_for_a_job_of_another_scheduler_holds_up_nobody_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = VirtualClock()

    async def main() -> None:
        inner, outer = make_scheduler(clock, concurrency=1), make_scheduler(clock, concurrency=1)

        @inner.task
        async def sleep(seconds: float) -> None:
            await pass_time(seconds)

        @outer.task
        async def ask() -> None:
            await (await sleep.submit(5)).result()

        async with inner, outer:
            await (await ask.submit()).result()
            assert not pool_of(inner)._waits

    run_virtual(main(), clock=clock)
    assert warnings(caplog) == []


# --- stopping


async def child_is_delayed(scheduler: Scheduler) -> dict[str, Any]:
    return {"delay": "1h"}


async def child_is_in_a_paused_queue(scheduler: Scheduler) -> dict[str, Any]:
    await scheduler.pause_queue("paused")
    return {"queue": "paused"}


async def child_is_for_nobody_here(scheduler: Scheduler) -> dict[str, Any]:
    return {"queue": "elsewhere"}


async def child_finds_no_slot(scheduler: Scheduler) -> dict[str, Any]:
    @scheduler.task
    async def sleep() -> None:
        await pass_time(20)

    await sleep.submit()
    await pass_time(1)
    return {}


@pytest.mark.parametrize(
    "make_child",
    [child_is_delayed, child_is_in_a_paused_queue, child_is_for_nobody_here, child_finds_no_slot],
    ids=lambda make: make.__name__,
)
def test_p21_a_job_that_waits_for_what_will_not_start_any_more_does_not_hold_up_a_stop(
    make_child: Callable[[Scheduler], Coroutine[Any, Any, dict[str, Any]]],
    store: StoreMaker,
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = VirtualClock()

    async def main() -> None:
        scheduler = make_scheduler(clock, store(clock), concurrency=2, queues=["default", "paused"])
        async with scheduler:
            family = Family(scheduler, **await make_child(scheduler))
            parent = await family.parent.submit()
            await pass_time(0.5)
            await scheduler.stop()
            assert clock.monotonic() <= 25, "it waited for what ran by itself, and no longer"
        texts = [record.getMessage() for record in caplog.records if "given back" in record.getMessage()]
        assert [parent.id in text for text in texts] == [True]
        async with scheduler.client():
            info = await parent.info()
            assert (info.status, info.attempt) == (READY, 0), "no attempt was used"
            assert not (await family.children[0].status()).is_terminal

    run_virtual(main(), clock=clock)


def test_what_another_worker_may_start_is_waited_for() -> None:
    clock = VirtualClock()

    async def main() -> None:
        store = MemoryStore(clock=clock)
        scheduler = make_scheduler(clock, store, concurrency=1)
        family = Family(scheduler)
        await scheduler.start()
        await store.register(WorkerInfo(id="other", lease_us=10**12))
        parent = await family.parent.submit()
        await pass_time(1)
        stopping = asyncio.create_task(scheduler.stop())
        await pass_time(100)
        assert not stopping.done()
        exchange = await store.exchange([], ClaimRequest("other", 1, {"loop": 1}))
        (child,) = exchange.claimed
        await store.exchange([Report(child, child.fence, Succeeded(store.now(), b"null"))], None)
        await stopping
        async with scheduler.client():
            assert await parent.status() is COMPLETED

    run_virtual(main(), clock=clock)


# --- the look itself


def test_no_timer_is_left_when_nobody_waits_any_more() -> None:
    async def scene(stage: Scene) -> None:
        family = Family(stage.scheduler)
        await (await family.parent.submit()).result()
        pool = pool_of(stage.scheduler)
        assert pool._timer is not None
        await pass_time(2 * LOOK_EVERY_S)
        assert (pool._timer is None, pool._task) == (True, None)

    play(scene)


class Moody(MemoryStore):
    """A store that does something of its own when it is asked for the paused queues."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock=clock)
        self.mood: Callable[[], Coroutine[Any, Any, None]] | None = None

    async def paused_queues(self) -> dict[str, Pause]:
        if self.mood is not None:
            await self.mood()
        return await super().paused_queues()


def with_mood(mood: Callable[[Scene], Coroutine[Any, Any, None]], check: Look) -> None:
    """Play a lock-up on a moody store."""

    async def scene(stage: Scene) -> None:
        store = stage.scheduler._store
        assert isinstance(store, Moody)
        store.mood = lambda: mood(stage)
        family = Family(stage.scheduler)
        parent = await family.parent.submit()
        await check(stage)
        store.mood = None
        await parent.cancel()

    play(scene, store=Moody, concurrency=1)


def test_a_store_that_cannot_be_asked_now_is_asked_again_later(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(stage: Scene) -> None:
        if stage.time < 5:
            raise StoreUnavailable("not now")

    async def check(stage: Scene) -> None:
        await pass_time(4)
        assert warnings(caplog) == []
        await pass_time(4)
        assert len(warnings(caplog)) == 1

    with_mood(fail, check)


def test_what_moved_during_the_look_is_looked_at_again(caplog: pytest.LogCaptureFixture) -> None:
    looks: list[float] = []

    async def move(stage: Scene) -> None:
        looks.append(stage.time)
        if len(looks) < 3:
            pool = pool_of(stage.scheduler)
            (waits,) = pool._waits.values()
            waits.append(waits[0])

    async def check(stage: Scene) -> None:
        await pass_time(2.5 * LOOK_EVERY_S)
        assert (len(looks), warnings(caplog)) == (2, [])
        await pass_time(LOOK_EVERY_S)
        assert len(warnings(caplog)) == 1

    with_mood(move, check)


def test_a_slow_look_is_not_begun_twice_and_ends_with_the_scheduler() -> None:
    looks: list[float] = []

    async def hang(stage: Scene) -> None:
        looks.append(stage.time)
        await asyncio.Event().wait()

    clock = VirtualClock()

    async def main() -> None:
        store = Moody(clock)
        scheduler = make_scheduler(clock, store, concurrency=1)
        family = Family(scheduler)
        await scheduler.start()
        store.mood = lambda: hang(Scene(clock, scheduler))
        await family.parent.submit()
        await pass_time(10 * LOOK_EVERY_S)
        assert len(looks) == 1
        await scheduler.stop(cancel_running=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main(), clock=clock)


# --- threads


class Caught(logging.Handler):
    """Sets an event when a lock-up is logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        self.logged = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "can never go on" in record.getMessage():
            self.texts.append(record.getMessage())
            self.logged.set()


def test_a_thread_job_that_blocks_for_a_job_of_its_full_pool_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool_watch, "LOOK_EVERY_S", 0.01)
    children: list[str] = []

    async def main() -> None:
        scheduler = Scheduler(concurrency=2, threads=1)

        @scheduler.task
        def child() -> None: ...

        @scheduler.task
        def parent() -> None:
            job = child.submit_blocking()
            children.append(job.id)
            job.result()

        caught = Caught()
        logging.getLogger("betimes").addHandler(caught)
        try:
            async with scheduler:
                handle = await parent.submit()
                async with asyncio.timeout(30):
                    await caught.logged.wait()
                (text,), (child_id,) = caught.texts, children
                assert f"job {handle.id} ({parent.name}) waits for {child_id} ({child.name})" in text
                codes = (await scheduler.explain(child_id)).codes
                assert codes == {ReasonCode.SLOTS_DEADLOCKED, ReasonCode.NO_FREE_SLOT}
                await scheduler.cancel(child_id)
                assert await handle.wait(timeout=30) is FAILED
        finally:
            logging.getLogger("betimes").removeHandler(caught)

    before = threading.active_count()
    asyncio.run(main())
    assert len(children) == 1
    assert threading.active_count() <= before + 1, "the pool's thread may still be on its way out"


# --- with limits


class LimitedFamily:
    """Parents that wait for children, and the limits that both are held to."""

    def __init__(self, scheduler: Scheduler, limit: Limit, child_limit: Limit | None, **options: Any) -> None:
        self.children: list[JobHandle[None]] = []

        @scheduler.task(limit=child_limit, **options)
        async def child() -> None: ...

        @scheduler.task(limit=limit)
        async def parent() -> None:
            self.children.append(await child.submit())
            await self.children[-1].result()

        self.parent = parent
        self.child = child


def test_a_parent_that_holds_the_limit_of_its_child_is_named_though_slots_are_free(
    store: StoreMaker, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(stage: Scene) -> None:
        shared = Limit("l", 2)
        family = LimitedFamily(stage.scheduler, shared, shared)
        parents = [await family.parent.submit() for _ in range(2)]
        await pass_time(10 * LOOK_EVERY_S)
        (text,) = warnings(caplog)
        assert text.startswith("2 jobs that hold a slot can never go on")
        assert f"waits for {family.children[0].id}" in text
        assert "or the limit more places" in text
        assert (await stage.scheduler.metrics()).deadlocked == 2
        await stage.scheduler.set_limit("l", 3)
        assert [await parent.wait() for parent in parents] == [COMPLETED, COMPLETED]
        await pass_time(5 * LOOK_EVERY_S)
        assert (await stage.scheduler.metrics()).deadlocked == 0

    play(scene, store=store)


@pytest.mark.parametrize(
    ("limit", "child_limit", "options"),
    [
        (Limit("l", 2), Limit("other", 1), {}),
        (Limit("l", 2), None, {"rate": Rate("1/h")}),
        (Limit("l", 9), Limit("l", 9), {}),
    ],
)
def test_a_parent_whose_child_waits_at_another_gate_is_not_named(
    store: StoreMaker,
    caplog: pytest.LogCaptureFixture,
    limit: Limit,
    child_limit: Limit | None,
    options: dict[str, Any],
) -> None:
    async def scene(stage: Scene) -> None:
        family = LimitedFamily(stage.scheduler, limit, child_limit, **options)

        @stage.scheduler.task(limit=child_limit)
        async def neighbour() -> None:
            await pass_time(60)

        await neighbour.submit()
        await stage.settle()
        parents = [await family.parent.submit() for _ in range(2)]
        assert [await parent.wait() for parent in parents] == [COMPLETED, COMPLETED]
        assert warnings(caplog) == []

    play(scene, store=store, concurrency=20)


def test_parents_that_fill_the_pool_are_named_though_their_children_wait_at_a_limit(
    store: StoreMaker, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(stage: Scene) -> None:
        family = LimitedFamily(stage.scheduler, Limit("l", 2), Limit("other", 1))
        parents = [await family.parent.submit() for _ in range(2)]
        await pass_time(10 * LOOK_EVERY_S)
        assert len(warnings(caplog)) == 1
        await parents[0].cancel()
        assert [await parent.wait() for parent in parents] == [CANCELLED, COMPLETED]

    play(scene, store=store, concurrency=2)
