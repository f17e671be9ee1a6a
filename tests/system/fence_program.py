"""A worker whose jobs say all the time that they are alive: `fence_program.py STORE EVIDENCE`.

Under its first fence, the code of each task goes on until it is stopped (`brief` ends once it is cut off);
under a later one it ends at once. As `fence_program.py alive` it is the program of the command.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from tests.system import evidence
from tests.system.fault_tasks import Noted, hear, i_am
from tests.system.fence_settings import LEASE, cut_off_beside

from betimes import Context, Scheduler, StoreUnavailable

STEP_S = 0.02


def alive(ctx: Context) -> None:
    evidence.note("alive", job=ctx.job_id, task=ctx.task, fence=ctx.fence)


async def on_loop(ctx: Context) -> None:
    with Noted(ctx):
        while ctx.fence == 1:
            alive(ctx)
            await asyncio.sleep(STEP_S)


def in_thread(ctx: Context) -> None:
    with Noted(ctx):
        while ctx.fence == 1 and not ctx.cancelled:
            alive(ctx)
            time.sleep(STEP_S)


def in_process(ctx: Context) -> None:
    with Noted(ctx):
        while ctx.fence == 1:
            alive(ctx)
            time.sleep(STEP_S)


async def brief(ctx: Context) -> None:
    with Noted(ctx):
        while ctx.fence == 1 and not CUT_OFF.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(STEP_S)


def as_command() -> None:
    job, attempt, fence = (os.environ[f"BETIMES_{name}"] for name in ("JOB_ID", "ATTEMPT", "FENCE"))
    which = {"job": job, "task": "command", "fence": int(fence)}
    evidence.note("begin", **which, attempt=int(attempt))  # type: ignore[arg-type]
    while fence == "1":
        evidence.note("alive", **which)  # type: ignore[arg-type]
        time.sleep(STEP_S)
    evidence.note("end", **which, attempt=int(attempt))  # type: ignore[arg-type]


async def say_what_was_lost(scheduler: Scheduler) -> None:
    said = (-1, -1)
    while True:
        try:
            metrics = await scheduler.metrics()
        except StoreUnavailable:
            await asyncio.sleep(0.05)
            continue
        counted = (metrics.lost_leases, metrics.stale_reports)
        if counted != said:
            said = counted
            evidence.note("lost", attempt=metrics.lost_leases, fence=metrics.stale_reports)
        await asyncio.sleep(0.05)


async def main(store: str) -> None:
    scheduler = Scheduler(store, lease=LEASE, grace=0.3, poll=0.5, watchdog=None, processes=2, concurrency=8)
    scheduler.task(name="loop")(on_loop)
    scheduler.task(name="once", delivery="at_most_once")(on_loop)
    scheduler.task(name="thread")(in_thread)
    scheduler.task(name="process", executor="process")(in_process)
    scheduler.task(name="brief")(brief)
    scheduler.command("command", [sys.executable, __file__, "alive"])
    scheduler.listen(hear)
    async with scheduler:
        os.write(1, b"begun\n")
        await say_what_was_lost(scheduler)


if __name__ == "__main__":
    if sys.argv[1] == "alive":
        as_command()
    else:
        CUT_OFF = cut_off_beside(Path(sys.argv[2]))
        i_am(os.getpid(), Path(sys.argv[2]))
        asyncio.run(main(sys.argv[1]))
