"""`using(…)`: every option does what it says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from tests.runtime.stage import (
    BLOCKED,
    CANCELLED,
    COMPLETED,
    DELAYED,
    FAILED,
    READY,
    RUNNING,
    TIMED_OUT,
    Scene,
    StoreMaker,
    pass_time,
    play,
)

from betimes import (
    CancelAnswer,
    ConfigurationError,
    DuplicateJob,
    JobCancelled,
    JobHandle,
    Priority,
    RetryPolicy,
)
from betimes.testing.clock import DEFAULT_START


def test_priority_orders_what_is_ready(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[str] = []

        @stage.scheduler.task
        async def note(name: str) -> None:
            ran.append(name)

        await stage.scheduler.pause_queue("default")
        for name, priority in [
            ("low", 0),
            ("normal", None),
            ("top", 1000),
            ("high", Priority.HIGH),
            ("last", -1000),
        ]:
            bound = note if priority is None else note.using(priority=priority)
            await bound.submit(name)
        await stage.scheduler.resume_queue("default")
        await stage.scheduler.drain()
        assert ran == ["top", "high", "normal", "low", "last"]

    play(scene, store=store, concurrency=1)


@pytest.mark.parametrize("delay", [90, 90.0, "90s", "1m30s", timedelta(seconds=90)])
def test_delay_is_counted_from_the_submit(delay: Any) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def when() -> float:
            return stage.time

        await pass_time(10)
        handle = await when.using(delay=delay).submit()
        assert await handle.status() is DELAYED
        assert await handle.result() == 100.0

    play(scene)


def test_run_at_is_the_earliest_instant(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def when() -> float:
            return stage.time

        east = timezone(timedelta(hours=5, minutes=45))
        handle = await when.using(run_at=(DEFAULT_START + timedelta(seconds=20)).astimezone(east)).submit()
        past = await when.using(run_at=datetime(1999, 1, 1, tzinfo=UTC)).submit()
        assert (await past.result(), await handle.result()) == (0.0, 20.0)
        assert (await handle.info()).run_at == DEFAULT_START + timedelta(seconds=20)

    play(scene, store=store)


def test_depends_on_takes_handles_and_ids_alone_or_several(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> float:
            return stage.time

        first = await work.using(delay=1).submit()
        second = await work.using(delay=2).submit()
        ways: list[Any] = [first, first.id, [first, second], (first.id, second.id), {second}]
        handles = [await work.using(depends_on=way).submit() for way in ways]
        assert [await handle.status() for handle in handles] == [BLOCKED] * 5
        assert [await handle.result() for handle in handles] == [1.0, 1.0, 2.0, 2.0, 2.0]
        assert (await handles[3].info()).depends_on == (first.id, second.id)

    play(scene, store=store)


# ---------------------------------------------------------------------------------------- ids


def test_a_live_duplicate_is_refused_and_a_finished_one_may_be_used_again(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work(number: int) -> int:
            return number

        first = await work.using(job_id="x", delay=5).submit(1)
        with pytest.raises(DuplicateJob, match="'x' is DELAYED") as caught:
            await work.using(job_id="x").submit(2)
        assert caught.value.job_id == "x"
        assert await first.result() == 1
        again = await work.using(job_id="x").submit(3)
        assert await again.result() == 3
        assert (await first.result(), again == first) == (1, False)

    play(scene, store=store)


def test_case_104_a_used_id_begins_afresh(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(timeout=50)
        async def work(*, fails: bool) -> float:
            if fails:
                raise ValueError("no")
            return stage.time

        old = await work.using(job_id="x", retry=RetryPolicy(2, base_delay=10, jitter=False)).submit(
            fails=True
        )
        assert await old.wait() is FAILED
        await pass_time(90)
        new = await work.using(job_id="x").submit(fails=False)
        assert await new.result() == 100.0
        info = await new.info()
        assert (info.attempt, len(info.attempts), info.error, info.crashes) == (1, 1, None, 0)
        assert (
            info.submitted_at == info.started_at == info.finished_at == DEFAULT_START + timedelta(seconds=100)
        )
        assert (await old.info()).attempt == 2

    play(scene, store=store)


def test_a_replacement_ends_the_versions_that_have_not_started(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[int] = []

        @stage.scheduler.task
        async def note(number: int) -> int:
            ran.append(number)
            return number

        blocker = await note.using(delay=50).submit(0)
        replacing = note.using(job_id="x", replace=True)
        options: list[dict[str, Any]] = [{"delay": 60}, {"depends_on": blocker}, {"queue": "paused"}]
        await stage.scheduler.pause_queue("paused")
        old = [
            await note.using(job_id="x", replace=True, **each).submit(number)
            for number, each in enumerate(options, start=1)
        ]
        new = await replacing.submit(9)
        assert await new.result() == 9
        for handle in old:
            assert await handle.status() is CANCELLED
            with pytest.raises(JobCancelled, match="replaced") as caught:
                await handle.result()
            assert caught.value.reason == "replaced"
        assert ran == [9]
        assert await stage.scheduler.job("x") == new
        await blocker.cancel()

    play(scene, store=store)


def test_a_replacement_of_a_running_job_waits_for_its_code_and_it_is_not_retried(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        log: list[tuple[str, float]] = []

        @stage.scheduler.task(retry=5)
        async def work(name: str) -> str:
            log.append((f"{name} begins", stage.time))
            await pass_time(10)
            log.append((f"{name} ends", stage.time))
            if name == "old":
                raise ValueError(name)
            return name

        old = await work.using(job_id="x").submit("old")
        await pass_time(1)
        middle = await work.using(job_id="x", replace=True).submit("middle")
        assert (await old.status(), await middle.status()) == (RUNNING, BLOCKED)
        new = await work.using(job_id="x", replace=True).submit("new")
        assert (await middle.status(), await new.status()) == (CANCELLED, BLOCKED)
        assert await new.result() == "new"
        assert log == [("old begins", 0.0), ("old ends", 10.0), ("new begins", 10.0), ("new ends", 20.0)]
        assert await old.status() is FAILED
        assert stage.witness.path(old) == [READY, RUNNING, FAILED]

    play(scene, store=store)


# ---------------------------------------------------------------------------------------- keys


def test_a_key_answers_with_the_first_job_also_after_it_has_finished(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[int] = []

        @stage.scheduler.task
        async def note(number: int) -> int:
            ran.append(number)
            return number

        first = await note.using(key="k").submit(1)
        same = await note.using(key="k").submit(1)
        assert same == first
        assert await same.result() == 1
        assert await note.using(key="k").submit(number=1) == first
        with pytest.raises(ConfigurationError, match="'k'"):
            await note.using(key="k").submit(2)
        assert (ran, (await first.info()).key) == ([1], "k")

    play(scene, store=store)


def test_a_key_is_remembered_for_its_time(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing() -> None: ...

        first = await nothing.using(key="k", key_for="10m").submit()
        day = await nothing.using(key="day").submit()
        stage.clock.advance(599)
        assert await nothing.using(key="k", key_for="10m").submit() == first
        stage.clock.advance(1)
        assert await nothing.using(key="k").submit() != first
        stage.clock.advance(86_400 - 601)
        assert await nothing.using(key="day").submit() == day
        stage.clock.advance(1)
        assert await nothing.using(key="day").submit() != day
        await stage.scheduler.drain()

    play(scene, store=store, lease="3d")


# ---------------------------------------------------------------------------------------- the rest


def test_a_queue_of_its_own_and_queues_that_are_not_served(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(queue="mail")
        async def nothing() -> None: ...

        mail = await nothing.submit()
        other = await nothing.using(queue="other").submit()
        assert await mail.wait(timeout=5) is COMPLETED
        await pass_time(60)
        assert (await other.status(), (await other.info()).queue) == (READY, "other")
        assert await other.cancel() is CancelAnswer.CANCELLED

    play(scene, store=store, queues=["mail", "default"])


@pytest.mark.parametrize(("own", "ends"), [(2, TIMED_OUT), (None, COMPLETED), ("20s", COMPLETED)])
def test_a_jobs_own_timeout_stands_for_the_tasks(own: Any, ends: object, store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(timeout=5)
        async def work() -> None:
            await pass_time(10)

        assert await (await work.submit()).wait() is TIMED_OUT
        before = stage.time
        assert await (await work.using(timeout=own).submit()).wait() is ends
        assert stage.time - before == (2.0 if own == 2 else 10.0)

    play(scene, store=store)


def test_expires_ends_what_has_not_started_by_then(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[str] = []

        @stage.scheduler.task(expires=20)
        async def work(name: str) -> None:
            ran.append(name)
            await pass_time(50)

        await work.submit("busy")
        await stage.settle()
        ways: dict[str, Any] = {
            "as the task says": work,
            "a duration": work.using(expires="5s"),
            "an instant": work.using(expires=DEFAULT_START + timedelta(seconds=7)),
            "never": work.using(expires=None),
            "delayed": work.using(expires=9, delay=30),
        }
        handles: dict[str, JobHandle[None]] = {name: await way.submit(name) for name, way in ways.items()}
        ends = {}
        for name in ["a duration", "an instant", "delayed", "as the task says"]:
            with pytest.raises(JobCancelled, match="expired"):
                await handles[name].result()
            ends[name] = stage.time
        assert ends == {"a duration": 5.0, "an instant": 7.0, "delayed": 9.0, "as the task says": 20.0}
        assert await handles["never"].wait() is COMPLETED
        assert ran == ["busy", "never"]

    play(scene, store=store, concurrency=1)


def test_a_started_job_does_not_expire_not_even_between_its_attempts(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(expires=3, retry=RetryPolicy(3, base_delay=10, jitter=False))
        async def work() -> float:
            await pass_time(5)
            if stage.time < 12:
                raise ValueError("again")
            return stage.time

        assert await (await work.submit()).result() == 20.0

    play(scene, store=store)


def test_tags_find_jobs_again(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(tags=["all"])
        async def nothing() -> None: ...

        plain = await nothing.submit()
        tagged = await nothing.using(tags=["b", "a", "b"]).submit()
        assert ((await plain.info()).tags, (await tagged.info()).tags) == (("all",), ("a", "b"))
        assert [job.id for job in await stage.scheduler.jobs(tag="a")] == [tagged.id]
        await stage.scheduler.drain()

    play(scene, store=store)


def test_options_hold_for_each_submit_of_the_same_using() -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def when() -> float:
            return stage.time

        later = when.using(delay=10, priority=3)
        first = await later.submit()
        await pass_time(5)
        second = await later.submit()
        assert (await first.result(), await second.result()) == (10.0, 15.0)
        assert (await second.info()).priority == 3

    play(scene)


def test_options_do_not_mix_with_the_functions_own_arguments(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work(priority: str, delay: int, *, key: str, **more: int) -> list[object]:
            return [priority, delay, key, more]

        handle = await work.using(priority=2, delay=1).submit("mine", 7, key="k", timeout=3, job_id=4)
        assert await handle.result() == ["mine", 7, "k", {"timeout": 3, "job_id": 4}]
        assert ((await handle.info()).priority, (await handle.info()).key) == (2, None)

    play(scene, store=store)
