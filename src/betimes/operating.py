"""Schedulers for an operator: one that looks at any store, and one with other numbers than its program's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from betimes.assembly import Parts, assemble
from betimes.errors import ConfigurationError
from betimes.ports import Store
from betimes.runtime.bursting import until_idle as wait_until_idle
from betimes.runtime.engine import Engine
from betimes.scheduler import Scheduler


class OperatorEngine(Engine):
    """An engine that opens a store whatever its order; it is for looking, so it never gives a job its key."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "strategy": None})


def scheduler_of(store: str | Path | Store) -> Scheduler:
    """Return a scheduler without tasks that opens any store, to look at it and to steer what is there.

    It is for `async with scheduler.client():`. What has to know a task, or the order of the jobs, needs the
    program's own scheduler: submitting, and firing a schedule by hand.

    Raises:
        ConfigurationError: it names no store.
    """
    scheduler = Scheduler(store)
    put_together(scheduler, replace(scheduler._parts, engine=OperatorEngine))  # noqa: SLF001 - as above
    return scheduler


def with_settings(scheduler: Scheduler, **changes: Any) -> None:
    """Have a scheduler that is not open go by other numbers than its program gave it.

    Args:
        scheduler: the program's own.
        changes: fields of `Settings`.

    Raises:
        ConfigurationError: it is open.
    """
    parts = scheduler._parts  # noqa: SLF001 - this module and `testing` take schedulers apart, nobody else
    put_together(scheduler, replace(parts, settings=replace(parts.settings, **changes)))


async def until_idle(scheduler: Scheduler, *, soon_s: float) -> None:
    """Return when a scheduler that runs has nothing left to do here, now and for `soon_s` seconds.

    What waits for something else than time does not count: jobs of a paused queue, of a task unknown here,
    behind a limit that other workers hold, or blocked by a job that is due later.
    """
    engine = scheduler._engine  # noqa: SLF001 - as above
    worker, firing = engine.worker, engine._firing  # noqa: SLF001 - as above
    assert worker is not None
    assert firing is not None
    await wait_until_idle(worker, firing, engine.store, engine.journal.counters, soon_s=soon_s)


def put_together(scheduler: Scheduler, parts: Parts) -> None:
    """Make a scheduler of other parts, with the same tasks, schedules and listeners.

    Raises:
        ConfigurationError: it is open.
    """
    own = scheduler._engine  # noqa: SLF001 - as above
    if own.loop is not None:
        raise ConfigurationError(f"{scheduler!r} is open: it can be given other parts only before it starts")
    engine, maker = assemble(parts, scheduler._definitions)  # noqa: SLF001 - as above
    carry_schedules(own, engine)
    for listener in own.journal.listeners:
        engine.journal.listeners.add(listener)
    scheduler._take_up(parts, engine, maker)  # noqa: SLF001 - as above


def carry_schedules(old: Engine, new: Engine) -> None:
    """Have an engine know the schedules that the tasks of another have declared."""
    for asked in old.timetable.declared():
        new.timetable.declare(asked)
