"""Other parts for a scheduler that is not open, for a while: a program's own scheduler, under test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from betimes.assembly import Parts
from betimes.clock import new_rng
from betimes.errors import ConfigurationError
from betimes.operating import carry_schedules, put_together
from betimes.runtime.engine import Engine
from betimes.stores.memory import MemoryStore
from betimes.testing.clock import VirtualClock
from betimes.testing.inline import InlineCommandExecutor, InlineExecutor

if TYPE_CHECKING:
    from betimes.scheduler import Scheduler

DAY_S = 86_400.0
"""There are no other processes to be heard, or to be found dead: looking for them as often as usual would
only make a year with a job that hangs take long."""


class LoneEngine(Engine):
    """An engine that has its store to itself: whatever ends there, it has ended itself."""

    looks_every_s = DAY_S


def parts_for_test(scheduler: Scheduler, store: MemoryStore, clock: VirtualClock, *, seed: int) -> Parts:
    """Return what a scheduler is made of, but in memory, on virtual time, and without threads or processes.

    Its strategy and its numbers stay, except those that are for other processes: there are none.
    """
    parts = scheduler._parts  # noqa: SLF001 - this package takes schedulers apart, and nobody else does
    concurrency = parts.settings.concurrency
    return replace(
        parts,
        store=store,
        clock=clock,
        rng=new_rng(seed),
        settings=replace(parts.settings, lease_us=round(DAY_S * 1_000_000), poll_s=DAY_S, stall_s=None),
        engine=LoneEngine,
        executors=(
            InlineExecutor(slots=min(parts.threads or concurrency, concurrency)),
            InlineExecutor("process", slots=min(parts.processes or concurrency, concurrency)),
            InlineCommandExecutor(slots=concurrency),
        ),
    )


@contextmanager
def stand_in(scheduler: Scheduler, parts: Parts) -> Iterator[None]:
    """Make a scheduler of other parts while the block runs, with the same tasks, schedules and listeners.

    Afterwards it is what it was. Tasks that were registered meanwhile stay, with their schedules, as the
    modules that registered them do; listeners that were added meanwhile do not.

    Raises:
        ConfigurationError: it is open.
    """
    before = scheduler._parts, scheduler._engine, scheduler._maker  # noqa: SLF001 - as above
    own = before[1]
    if own.loop is not None:
        raise ConfigurationError(
            f"{scheduler!r} is open, so a test cannot put other parts into it: stop it first, and have "
            "nothing start it when the program's modules are imported"
        )
    put_together(scheduler, parts)
    engine = scheduler._engine  # noqa: SLF001 - as above
    try:
        yield
    finally:
        scheduler._take_up(*before)  # noqa: SLF001 - as above
        carry_schedules(engine, own)
