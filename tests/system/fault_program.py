"""The program of the fault tests: one process that submits, works, or does both, and leaves evidence.

Usage: fault_program.py ROLE STORE EVIDENCE OPTIONS, where the options are JSON (`Options`).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from tests.system.boundaries import Boundaries
from tests.system.fault_tasks import GRID, After, OverlapPolicy, Tasks, i_am, names

from betimes import Scheduler

CHAIN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a process is to do.

    Attributes:
        fatal: the number of the boundary at which it dies; 0: at none.
        into_s: how much later.
        for_s: how long the schedule goes on, in seconds; 0: there is none.
        tick_s, overlap, after: how long its runs take, and the options of the same names.
        jobs: how many jobs to submit.
        pace_s: how long to wait between them.
        pause_s: how long each of them takes.
        name: what the keys of a submitter begin with.
        stubborn: how many jobs to submit that do not stop when they are told to.
        drain: how long a worker's running jobs may take after a signal.
        lease: how long a worker's lease is.
    """

    fatal: int = 0
    into_s: float = 0.0
    for_s: float = 0.0
    tick_s: float = 0.0
    overlap: OverlapPolicy = "allow"
    after: After = "start"
    jobs: int = 8
    pace_s: float = 0.0
    pause_s: float = 0.01
    name: str = ""
    stubborn: int = 0
    drain: str = "5s"
    lease: str = "30s"


async def keep_grid(tasks: Tasks, options: Options) -> None:
    await tasks.keep_grid(options.for_s, pause_s=options.tick_s, overlap=options.overlap, after=options.after)


def say(word: str) -> None:
    os.write(1, f"{word}\n".encode())


async def submit_all(tasks: Tasks, options: Options) -> None:
    """Submit everything, again after a crash: what was acknowledged before is found, and not made twice."""
    before = await tasks.submit("loop", f"{options.name}chain-0", options.pause_s)
    for number in range(1, CHAIN):
        before = await tasks.submit(
            "loop", f"{options.name}chain-{number}", options.pause_s, depends_on=[before]
        )
    for kind, key in names(options.jobs):
        await tasks.submit(kind, f"{options.name}{key}", options.pause_s)
        await asyncio.sleep(options.pace_s)


async def work_to_the_end(scheduler: Scheduler, tasks: Tasks, options: Options) -> None:
    """Submit what there is to submit, keep the schedule, and end when everything has ended."""
    async with scheduler:
        if options.jobs:
            await submit_all(tasks, options)
        await keep_grid(tasks, options)
        await scheduler.drain()
        while (await scheduler.schedule(GRID)).next_fire_at is not None:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
        await scheduler.drain()


async def submit_only(scheduler: Scheduler, tasks: Tasks, options: Options) -> None:
    async with scheduler.client():
        if options.for_s:
            await keep_grid(tasks, options)
        say("begun")
        if options.jobs:
            await submit_all(tasks, options)
        for number in range(options.stubborn):
            await tasks.submit("stubborn", f"{options.name}stubborn-{number}", 0.0)


def main() -> None:
    role, store, file, text = sys.argv[1:]
    options = Options(**json.loads(text))
    i_am(os.getpid(), Path(file))
    boundaries = Boundaries(options.fatal, options.into_s)
    if options.fatal >= 0:
        boundaries.watch()
    scheduler = Scheduler(store, lease=options.lease, grace=0.5, watchdog=None, concurrency=8, processes=2)
    tasks = Tasks(scheduler)
    if role == "all":
        asyncio.run(work_to_the_end(scheduler, tasks, options))
        for name in sorted(boundaries.names):
            say(f"passed {name}")
    elif role == "submit":
        asyncio.run(submit_only(scheduler, tasks, options))
    else:
        if role == "tick":
            asyncio.run(submit_only(scheduler, tasks, replace(options, jobs=0)))
        else:
            say("begun")
        scheduler.run(drain=options.drain)
    say("over")


if __name__ == "__main__":
    main()
