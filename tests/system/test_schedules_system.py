"""Schedules across real processes: one that was stopped over a fire, and several that start together."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from betimes import FireInfo, Scheduler

SOURCE = Path(__file__).parents[2] / "src"
WAIT_S = 20

PROGRAM = """
import asyncio, os, sys, time
from betimes import Context, Scheduler, every

path, period_s, for_s = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
scheduler = Scheduler(path, watchdog=None)

@scheduler.task(name="tick")
async def tick(ctx: Context) -> None:
    os.write(1, f"ran {ctx.scheduled_for.timestamp():.3f} {time.time():.3f}\\n".encode())

async def main():
    async with scheduler:
        await scheduler.add_schedule("s", tick.bind(), every(period_s))
        os.write(1, b"begun\\n")
        await asyncio.sleep(for_s)

asyncio.run(main())
"""


@contextmanager
def running(path: Path, period_s: float, for_s: float) -> Iterator[subprocess.Popen[str]]:
    """A process that adds the schedule and works for a while."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path), str(period_s), str(for_s)],
        stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(SOURCE)},
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def lines(process: subprocess.Popen[str]) -> Iterator[list[str]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield line.split()


async def history(path: Path) -> list[FireInfo]:
    """What became of the instants of the only schedule there is."""
    async with Scheduler(path).client() as client:
        assert [info.id for info in await client.schedules()] == ["s"]
        return await client.schedule_history("s")


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system cannot stop a process")
def test_case_027_a_process_that_was_stopped_over_its_instants_fires_soon_after_it_goes_on(
    tmp_path: Path,
) -> None:
    with running(tmp_path / "jobs.db", 1.0, WAIT_S) as process:
        told = lines(process)
        assert next(told) == ["begun"]
        assert next(told)[0] == "ran"
        process.send_signal(signal.SIGSTOP)
        time.sleep(3.5)
        process.send_signal(signal.SIGCONT)
        resumed_at = time.time()
        # One that was on its way when it was stopped may still come; then one run stands for all missed.
        planned: list[float] = []
        while not planned or planned[-1] < resumed_at - 1.1:
            _, at, began = next(told)
            planned.append(float(at))
            assert float(began) < resumed_at + 2
        assert len(planned) <= 2
        following = float(next(told)[1])
        assert following > planned[-1]
    outcomes = [fire.outcome for fire in asyncio.run(history(tmp_path / "jobs.db"))]
    assert "merged" in outcomes, "what was missed is on record"


def test_p16_case_100_eight_processes_that_start_together_keep_one_schedule_and_fire_each_instant_once(
    tmp_path: Path,
) -> None:
    path = tmp_path / "jobs.db"
    with ExitStack() as stack:
        processes = [stack.enter_context(running(path, 0.5, 6.0)) for _ in range(8)]
        ran = [line for process in processes for line in lines(process)]
        assert [process.wait(WAIT_S) for process in processes] == [0] * 8
    assert ran.count(["begun"]) == 8
    planned = sorted(float(line[1]) for line in ran if line[0] == "ran")
    assert len(planned) == len(set(planned))
    grid = {round((at - planned[0]) / 0.5, 3) for at in planned}
    assert all(step == int(step) for step in grid), "they fired on different grids"
    fires = asyncio.run(history(path))
    assert len(fires) == len({fire.at for fire in fires})
    # The run of the last instant may wait for whoever comes next.
    assert 0 <= sum(fire.outcome == "fired" for fire in fires) - len(planned) <= 1
    # Nobody was away for long, so hardly an instant is missing between the first and the last.
    assert 8 <= len(planned) <= (planned[-1] - planned[0]) / 0.5 + 1
