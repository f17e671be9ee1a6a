"""A worker that may sleep past its lease: `stale_program.py NAME STORE EVIDENCE GO`.

Under its first fence each job's code sleeps until its worker is surely stopped, and then does its worst;
under a later one it waits for the file GO, and returns the worker's name.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from tests.system import evidence
from tests.system.fault_tasks import Noted, hear, i_am
from tests.system.stale_settings import JOBS, SLEEP_S

from betimes import Context, Scheduler, Snooze

LEASE = "1500ms"

name, store, file, go = sys.argv[1:]
scheduler = Scheduler(store, lease=LEASE, grace=0.5, watchdog=None)


async def be_the_second() -> str:
    while not Path(go).exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
        await asyncio.sleep(0.02)
    return name


async def sleep_and_write(ctx: Context) -> None:
    await asyncio.sleep(SLEEP_S)
    ctx.log.info("late")
    ctx.progress(1, 1)


@scheduler.task(name="finishes")
async def finishes(ctx: Context) -> str:
    with Noted(ctx):
        if ctx.fence > 1:
            return await be_the_second()
        await sleep_and_write(ctx)
        return name


@scheduler.task(name="fails", retry=5)
async def fails(ctx: Context) -> str:
    with Noted(ctx):
        if ctx.fence > 1:
            return await be_the_second()
        await sleep_and_write(ctx)
        raise ValueError("late")


@scheduler.task(name="snoozes")
async def snoozes(ctx: Context) -> str:
    with Noted(ctx):
        if ctx.fence > 1:
            return await be_the_second()
        await sleep_and_write(ctx)
        raise Snooze("1h")


@scheduler.task(name="goes on")
async def goes_on(ctx: Context) -> str:
    with Noted(ctx):
        if ctx.fence > 1:
            return await be_the_second()
        try:
            while True:
                await sleep_and_write(ctx)
        except asyncio.CancelledError:
            evidence.note("stopped", job=ctx.job_id, fence=ctx.fence)
            raise


@scheduler.task(name="goes on in a thread")
def goes_on_in_a_thread(ctx: Context) -> str:
    with Noted(ctx):
        if ctx.fence > 1:
            while not Path(go).exists():
                time.sleep(0.02)
            return name
        while not ctx.cancelled:
            time.sleep(0.02)
        evidence.note("stopped", job=ctx.job_id, fence=ctx.fence)
        return "late"


@scheduler.task(name="afterwards")
async def afterwards(ctx: Context) -> str:
    with Noted(ctx):
        return name


TASKS = (finishes, fails, snoozes, goes_on, goes_on_in_a_thread)


async def say_what_was_refused() -> None:
    said = (0, 0)
    while True:
        metrics = await scheduler.metrics()
        counted = (metrics.stale_reports, metrics.lost_leases)
        if counted != said:
            said = counted
            evidence.note("refused", attempt=sum(counted))
        await asyncio.sleep(0.05)


async def main() -> None:
    async with scheduler:
        if name == "A":
            assert len(TASKS) == JOBS
            for task in TASKS:
                job = await task.submit()
                evidence.note("kept", job=job.id, task=task.name)
        await say_what_was_refused()


if __name__ == "__main__":
    i_am(os.getpid(), Path(file))
    scheduler.listen(hear)
    asyncio.run(main())
