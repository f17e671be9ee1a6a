"""A scheduler on a file, on virtual time: the store's calls are carried out at once, so time can jump."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.runtime.stage import pass_time

from betimes import Context, Scheduler, every
from betimes.testing import VirtualClock, run_virtual

START = datetime(2025, 1, 1, tzinfo=UTC)


def test_a_scheduler_on_a_file_runs_on_virtual_time_over_a_restart(tmp_path: Path) -> None:
    clock = VirtualClock(START)
    ran: list[datetime | None] = []

    async def live(hours: float) -> None:
        scheduler = Scheduler(tmp_path / "jobs.db", clock=clock, lease="1d", poll="1h")

        @scheduler.task(name="note", schedule=every("6h"))
        async def note(ctx: Context) -> None:
            ran.append(ctx.scheduled_for)

        async with scheduler:
            await pass_time(hours * 3600)

    async def main() -> None:
        await live(4)
        await asyncio.gather(live(9), live(9))

    run_virtual(main(), clock=clock)
    assert ran == [START + timedelta(hours=6), START + timedelta(hours=12)]
