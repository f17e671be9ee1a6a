"""Putting a scheduler together: from its parts to an engine and a maker of jobs that fit each other."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any

from betimes.clock import IdMaker
from betimes.core.recycle import Recycle
from betimes.core.strategy import SchedulingStrategy
from betimes.core.task import Registry
from betimes.ports import Clock, Executor, Store
from betimes.runtime.engine import Engine
from betimes.runtime.settings import Settings
from betimes.submission import JobMaker
from betimes.wiring import describe_worker, make_executors


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a scheduler is made of.

    Attributes:
        store: where its jobs are.
        clock: where time comes from.
        rng: for jitter and ids.
        strategy: orders what is ready.
        settings: the numbers.
        threads: the most attempts in threads; None: as many as run at once.
        processes: the most attempts in processes; None: as many as there are cores.
        recycle: when a process is replaced.
        executors: take the place of the usual ones of their lanes.
        engine: the class of its engine.
        run_here: runs a coroutine on the scheduler's loop for code without one, where that loop runs in no
            thread of its own; None: it does.
    """

    store: Store
    clock: Clock
    rng: Random
    strategy: SchedulingStrategy
    settings: Settings
    threads: int | None = None
    processes: int | None = None
    recycle: Recycle = field(default_factory=Recycle)
    executors: tuple[Executor, ...] = ()
    engine: type[Engine] = Engine
    run_here: Callable[[Coroutine[Any, Any, Any]], Any] | None = None


def assemble(parts: Parts, tasks: Registry) -> tuple[Engine, JobMaker]:
    """Make an engine for these tasks, and the maker of its jobs; nothing is opened."""
    settings = parts.settings
    new_id = IdMaker(parts.clock, parts.rng)
    maker = JobMaker(parts.store.now, new_id.at, parts.strategy, parts.rng, tasks)
    given = {executor.lane: executor for executor in parts.executors}
    engine = parts.engine(
        parts.store,
        tasks,
        settings,
        strategy=parts.strategy.name,
        new_id=new_id,
        describe=lambda: describe_worker(new_id(), settings),
        new_executors=lambda: (
            make_executors(
                settings,
                threads=parts.threads,
                processes=parts.processes,
                recycle=parts.recycle,
                new_token=new_id,
            )
            | given
        ),
        new_run=maker.make_run,
        on_jump=parts.clock.on_jump,
        rng=parts.rng,
    )
    return engine, maker
