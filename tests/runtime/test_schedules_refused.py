"""Wrong arguments of schedules: each is refused by its name, and nothing is half kept."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from tests.runtime.schedule_scene import World, when
from tests.runtime.stage import StoreMaker, pass_time

from betimes import ConfigurationError, InvalidTrigger, SchedulerClosed, UnknownSchedule, cron, every
from betimes.core.triggers import IntervalTrigger
from betimes.stores.memory import MemoryStore
from betimes.testing import VirtualClock


def in_memory(clock: VirtualClock) -> MemoryStore:
    return MemoryStore(clock=clock)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"trigger": "0 9 * * *"}, r"is '0 9 \* \* \*'; it is a trigger: write cron\('0 9 \* \* \*'\)"),
    ({"trigger": None}, "it is a trigger"),
    ({"trigger": IntervalTrigger}, "it is a trigger"),
    ({"bound": "work"}, r"a bound call, made with task\.bind"),
    ({"schedule_id": ""}, "schedule id must be text"),
    ({"schedule_id": 7}, "schedule id must be text"),
    ({"schedule_id": "two\nlines"}, "schedule id must be text"),
    ({"overlap": "queue-one"}, "overlap is 'queue-one'; .* did you mean 'queue_one'"),
    ({"overlap": None}, "overlap is None; it is one of 'skip'"),
    ({"missed": "newest"}, "missed is 'newest'; it is one of 'latest', 'skip', 'all'"),
    ({"missed": "all", "max_catchup": 0}, "max_catchup is 0; .* from 1 to 1,000"),
    ({"missed": "all", "max_catchup": 1001}, "max_catchup is 1001"),
    ({"missed": "all", "max_catchup": True}, "max_catchup is True"),
    ({"missed": "all", "max_catchup": 1.5}, "max_catchup is 1.5"),
    ({"max_catchup": 5}, "max_catchup counts only together with missed='all'"),
    ({"jitter": -1}, "jitter must not be negative"),
    ({"jitter": "soon"}, "jitter='soon' is no duration"),
    ({"jitter": float("inf")}, "jitter must be finite"),
    ({"start": datetime(2030, 1, 1)}, "start must be an aware datetime"),  # noqa: DTZ001
    ({"start": "today"}, "start must be an aware datetime"),
    ({"end": datetime(2030, 1, 1)}, "end must be an aware datetime"),  # noqa: DTZ001
    ({"start": when(2), "end": when(1)}, "end lies before start"),
    ({"on_conflict": "replace"}, "on_conflict is 'replace'; it is one of 'update', 'keep', 'error'"),
]


@pytest.mark.parametrize(("wrong", "words"), WRONG, ids=lambda each: str(each)[:50])
def test_a_wrong_argument_is_refused_by_name_and_nothing_is_kept(wrong: dict[str, Any], words: str) -> None:
    world = World(in_memory)

    async def main() -> None:
        async with world.working() as work:
            given = {"schedule_id": "s", "bound": work.task.bind(), "trigger": every("1m"), **wrong}
            args = [given.pop(name) for name in ("schedule_id", "bound", "trigger")]
            with pytest.raises(ConfigurationError, match=words):
                await work.scheduler.add_schedule(*args, **given)
            assert await work.scheduler.schedules() == []

    world.play(main)


@pytest.mark.parametrize(
    "options",
    [{"job_id": "x"}, {"key": "k"}, {"depends_on": "x"}, {"delay": 1}, {"run_at": when(5)},
     {"expires": when(5)}],
    ids=str,
)  # fmt: skip
def test_options_that_hold_for_one_job_are_refused(options: dict[str, Any]) -> None:
    world = World(in_memory)

    async def main() -> None:
        async with world.working() as work:
            bound = work.task.using(**options).bind()
            with pytest.raises(ConfigurationError, match="a schedule makes many jobs"):
                await work.scheduler.add_schedule("s", bound, every("1m"))
            assert await work.scheduler.schedules() == []

    world.play(main)


def test_a_wrong_trigger_is_refused_where_it_is_written() -> None:
    with pytest.raises(InvalidTrigger, match="minute"):
        cron("61 * * * *")
    with pytest.raises(InvalidTrigger, match="period"):
        every(0)


CALLS = [
    ("schedule", ["s"]),
    ("schedules", []),
    ("pause_schedule", ["s"]),
    ("resume_schedule", ["s"]),
    ("remove_schedule", ["s"]),
    ("trigger_now", ["s"]),
    ("schedule_history", ["s"]),
    ("explain_schedule", ["s"]),
]


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_a_scheduler_that_is_not_open_refuses(name: str, args: list[Any], store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        scheduler = world.scheduler()
        task = world.task(scheduler)
        with pytest.raises(SchedulerClosed):
            await getattr(scheduler, name)(*args)
        with pytest.raises(SchedulerClosed):
            await scheduler.add_schedule("s", task.bind(), every("1m"))

    world.play(main)


@pytest.mark.parametrize(("name", "args"), [call for call in CALLS if call[1]])
def test_an_unknown_schedule_is_named(name: str, args: list[Any], store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            with pytest.raises(UnknownSchedule, match="there is no schedule 's'") as caught:
                await getattr(work.scheduler, name)(*args)
            assert caught.value.schedule_id == "s"
            for wrong in ("", 7, None):
                with pytest.raises(ConfigurationError, match="schedule_id must be text"):
                    await getattr(work.scheduler, name)(wrong)

    world.play(main)


def test_listings_refuse_wrong_bounds() -> None:
    world = World(in_memory)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"))
            for limit in (0, 1001, True, 1.5):
                with pytest.raises(ConfigurationError, match="limit is"):
                    await work.scheduler.schedules(limit=limit)  # type: ignore[arg-type]
                with pytest.raises(ConfigurationError, match="limit is"):
                    await work.scheduler.schedule_history("s", limit=limit)  # type: ignore[arg-type]
            naive = datetime(2030, 1, 1)  # noqa: DTZ001
            with pytest.raises(ConfigurationError, match="before must be an aware datetime"):
                await work.scheduler.schedule_history("s", before=naive)
            with pytest.raises(ConfigurationError, match="at must be an aware datetime"):
                await work.scheduler.explain_schedule("s", at=naive)
            with pytest.raises(ConfigurationError, match="after must be text"):
                await work.scheduler.schedules(after="")

    world.play(main)


def test_a_task_of_another_scheduler_is_refused() -> None:
    world = World(in_memory)

    async def main() -> None:
        other = world.task(world.scheduler())
        async with world.working() as work:
            with pytest.raises(ConfigurationError, match="a task of another scheduler"):
                await work.scheduler.add_schedule("s", other.bind(), every("1m"))

    world.play(main)


async def nothing() -> None: ...


async def needs(name: str) -> None: ...


DECLARED: list[tuple[Any, dict[str, Any], str]] = [
    (nothing, {"schedule": "0 9 * * *"}, r"write cron\('0 9"),
    (nothing, {"overlap": "skip"}, "overlap says how a schedule runs: pass schedule="),
    (nothing, {"jitter": 1}, "jitter says how"),
    (nothing, {"schedule": every(1), "missed": "never"}, "missed is 'never'"),
    (nothing, {"schedule": every(1), "max_catchup": 3}, "only together with missed='all'"),
    (needs, {"schedule": every(1)}, "runs it without arguments"),
]


@pytest.mark.parametrize(("fn", "options", "words"), DECLARED)
def test_case_160_a_wrong_declaration_registers_nothing(fn: Any, options: dict[str, Any], words: str) -> None:
    world = World(in_memory)
    scheduler = world.scheduler()
    with pytest.raises(ConfigurationError, match=words):
        scheduler.task(**options)(fn)
    scheduler.task(fn)  # so its name is free

    async def main() -> None:
        async with scheduler:
            await pass_time(2)
            assert await scheduler.schedules() == []

    world.play(main)


def test_case_160_an_unknown_option_names_the_nearest() -> None:
    world = World(in_memory)
    scheduler = world.scheduler()
    with pytest.raises(TypeError, match="schedule"):
        scheduler.task(shedule=every(1))(nothing)  # type: ignore[call-overload]

    async def main() -> None:
        async with world.working() as work:
            with pytest.raises(TypeError, match="overlaps"):
                await work.scheduler.add_schedule(
                    "s",
                    work.task.bind(),
                    every("1m"),
                    overlaps="skip",  # type: ignore[call-arg]
                )

    world.play(main)


def test_case_160_a_schedule_without_jitter_start_or_end_says_so_with_none() -> None:
    world = World(in_memory)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"), jitter=None, start=None, end=None, max_catchup=None)
            info = await work.scheduler.schedule("s")
            assert (info.jitter_s, info.start, info.end, info.max_catchup) == (0.0, None, None, 100)

    world.play(main)
