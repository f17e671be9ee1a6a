"""One bad row among good ones (case 96): the others are handled, and it is set aside with what is wrong."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from betimes import JobFailed, JobStatus, Limit, Scheduler, every
from betimes.errors import ConfigurationError
from betimes.tasks import Task

PATIENCE_S = 60.0
ROWS = 20


def damage(path: Path, command: str, *values: object) -> None:
    """Write past the store, as a slip of the hand or of the disk does."""
    with closing(sqlite3.connect(path)) as sql:
        assert sql.execute(command, values).rowcount == 1
        sql.commit()


def scheduler_on(path: Path, runs: list[int]) -> tuple[Scheduler, dict[str, Task[[int], int]]]:
    scheduler = Scheduler(path, poll="0.1s", watchdog=None)

    @scheduler.task(name="plain", keep="1h")
    async def plain(number: int) -> int:
        runs.append(number)
        return number

    @scheduler.task(name="limited", limit=Limit("few", max_running=2))
    async def limited(number: int) -> int:
        runs.append(number)
        return number

    return scheduler, {"plain": plain, "limited": limited}


async def submit(path: Path, task: str, *, delay: str = "0s") -> list[str]:
    scheduler, tasks = scheduler_on(path, [])
    async with scheduler.client():
        return [(await tasks[task].using(delay=delay).submit(number)).id for number in range(ROWS)]


@pytest.mark.parametrize("column", ["options", "rare"])
@pytest.mark.parametrize("task", ["plain", "limited"])
@pytest.mark.parametrize("delay", ["0s", "1s"])
def test_case_096_a_job_whose_row_is_broken_is_set_aside_and_the_others_run(
    tmp_path: Path, task: str, column: str, delay: str
) -> None:
    path = tmp_path / "jobs.db"
    bad = asyncio.run(submit(path, task, delay=delay))[3]
    damage(path, f"UPDATE betimes_job SET {column} = ? WHERE id = ?", '{"crashes": ', bad)

    async def main() -> None:
        runs: list[int] = []
        async with scheduler_on(path, runs)[0] as scheduler:
            async with asyncio.timeout(PATIENCE_S):
                while (await scheduler.metrics()).completed < ROWS - 1:  # noqa: ASYNC110 - others end it
                    await asyncio.sleep(0.05)
                job = await scheduler.job(bad)
                while "damaged" not in (why := str(await job.explain())):  # noqa: ASYNC110 - likewise
                    await asyncio.sleep(0.05)
            assert column in why
            assert '{"crashes": ' in why, "nothing of it is lost"
            assert await job.status() is JobStatus.READY
            assert bad in {each.id for each in await scheduler.jobs()}
            await job.cancel()
            assert await job.status() is JobStatus.CANCELLED
        assert sorted(runs) == [number for number in range(ROWS) if number != 3]

    asyncio.run(main())


def test_case_096_a_job_whose_arguments_are_broken_fails_alone(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    ids = asyncio.run(submit(path, "plain"))
    damage(path, "UPDATE betimes_job SET payload = ? WHERE id = ?", '{"number": ', ids[3])

    async def main() -> None:
        async with scheduler_on(path, [])[0] as scheduler:
            handles = [await scheduler.job(each) for each in ids]
            ends = await asyncio.gather(
                *(handle.result(timeout=PATIENCE_S) for handle in handles), return_exceptions=True
            )
        assert isinstance(ends[3], JobFailed)
        assert [end for end in ends if not isinstance(end, JobFailed)] == [
            number for number in range(ROWS) if number != 3
        ]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("options", "{broken"),
        ("jobs", "[1, "),
        ("definition", "{broken"),
        ("definition", '{"trigger": {"kind": "cron", "tz": "Mars/Olympus"}}'),
    ],
)
def test_case_096_a_schedule_whose_row_is_broken_is_paused_and_the_others_fire(
    tmp_path: Path, column: str, text: str
) -> None:
    path = tmp_path / "jobs.db"

    async def add() -> None:
        scheduler, tasks = scheduler_on(path, [])
        async with scheduler.client():
            for number in range(ROWS):
                bound = tasks["plain"].bind(number)
                await scheduler.add_schedule(f"schedule-{number}", bound, every("1s"))

    asyncio.run(add())
    damage(path, f"UPDATE betimes_schedule SET {column} = ? WHERE id = 'schedule-3'", text)

    async def main() -> None:
        runs: list[int] = []
        async with scheduler_on(path, runs)[0] as scheduler:
            async with asyncio.timeout(PATIENCE_S):
                while not (await scheduler.schedule("schedule-3")).paused:  # noqa: ASYNC110 - likewise
                    await asyncio.sleep(0.05)
                while len(set(runs)) < ROWS - 1:  # noqa: ASYNC110 - likewise
                    await asyncio.sleep(0.05)
            broken = await scheduler.schedule("schedule-3")
            assert broken.error
            assert len(await scheduler.schedules()) == ROWS
        assert 3 not in runs
        with closing(sqlite3.connect(path)) as sql:
            kept = f"SELECT {column} FROM betimes_schedule WHERE id = 'schedule-3'"
            if column != "jobs":
                assert sql.execute(kept).fetchone() == (text,), "nothing of it is lost"

    asyncio.run(main())


def test_case_096_what_a_missing_row_was_to_do_holds_up_nobody(tmp_path: Path) -> None:
    """A schedule waits for a job that is gone; a job's end is to release one that is gone."""
    path = tmp_path / "jobs.db"

    async def prepare() -> tuple[str, str]:
        scheduler, tasks = scheduler_on(path, [])
        plain = tasks["plain"]
        async with scheduler.client():
            await scheduler.add_schedule("waits", plain.bind(1), every("1s"), overlap="skip")
            parent = await plain.submit(2)
            gone = await plain.using(depends_on=[parent]).submit(3)
            child = await plain.using(depends_on=[parent]).submit(4)
            return gone.id, child.id

    gone, child = asyncio.run(prepare())
    damage(path, "DELETE FROM betimes_job WHERE id = ?", gone)
    damage(path, "UPDATE betimes_schedule SET jobs = '[\"gone\"]' WHERE id = 'waits'")

    async def main() -> None:
        runs: list[int] = []
        async with scheduler_on(path, runs)[0] as scheduler:
            await (await scheduler.job(child)).wait(timeout=PATIENCE_S)
            async with asyncio.timeout(PATIENCE_S):
                while 1 not in runs:  # noqa: ASYNC110 - the list tells nobody that it changes
                    await asyncio.sleep(0.05)
        assert set(runs) == {1, 2, 4}

    asyncio.run(main())


def test_a_whole_table_that_is_gone_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    asyncio.run(submit(path, "plain"))
    with closing(sqlite3.connect(path)) as sql:
        sql.execute("DROP TABLE betimes_worker")

    async def main() -> None:
        async with scheduler_on(path, [])[0]:
            pass

    with pytest.raises(ConfigurationError, match="not what they should be"):
        asyncio.run(main())
