"""A file with a long history: a turn, a prune or a page costs what it does, and nothing for what is kept."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from betimes.clock import SystemClock
from betimes.core.events import Errored, Succeeded
from betimes.core.job import ErrorInfo, Job, JobSpec, JobStatus
from betimes.ports import ClaimRequest, JobFilter, Report, WorkerInfo
from betimes.stores.sqlite import SqliteStore

CLOCK = SystemClock()
SPEC = JobSpec(task="work")
DAY_US = 86_400_000_000
HISTORY, FUTURE, DUE = 1_000_000, 100_000, 1_000
STEP = 100
"""The virtual machine's instructions are counted in portions of this size."""

T = TypeVar("T")


class Counting:
    """A store that counts what SQLite does for each call: the same on every machine, however busy."""

    def __init__(self, path: Path) -> None:
        self.store = SqliteStore(path, clock=CLOCK, inline=True)

    async def open(self) -> None:
        await self.store.open(strategy="priority")
        assert self.store._writer is not None
        self._sql = self.store._writer._sql
        await self.store.register(WorkerInfo(id="w", lease_us=DAY_US))

    async def cost(self, call: Awaitable[T]) -> tuple[T, int]:
        portions = 0

        def count() -> int:
            nonlocal portions
            portions += 1
            return 0

        self._sql.set_progress_handler(count, STEP)
        answer = await call
        self._sql.set_progress_handler(None, 0)
        return answer, portions * STEP

    async def turns(self) -> list[int]:
        """Run the thousand due jobs, a hundred at a time; return what each turn cost."""
        request = ClaimRequest(worker="w", limit=100, lanes={"loop": 100})
        costs = []
        turn, cost = await self.cost(self.store.exchange([], request))
        while turn.claimed:
            assert len(turn.claimed) == 100
            costs.append(cost)
            reports = [Report(each, each.fence, Succeeded(CLOCK.now(), b"1")) for each in turn.claimed]
            turn, cost = await self.cost(self.store.exchange(reports, request))
        assert len(costs) == DUE // 100
        return costs


async def due(store: SqliteStore, name: str) -> None:
    now = CLOCK.now()
    await store.submit([Job(f"{name}-{n}", SPEC, submitted_at=now, run_at=now) for n in range(DUE)])


async def future(store: SqliteStore) -> None:
    now = CLOCK.now()
    jobs = [Job(f"later-{n}", SPEC, submitted_at=now, run_at=now + DAY_US + n) for n in range(FUTURE)]
    await store.submit(jobs)


def write_history(path: Path, jobs: int = HISTORY) -> None:
    """Copy one job that has ended so many times, with other numbers; by the store it would take minutes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        columns = [name for _, name, *_ in sql.execute("PRAGMA table_info (betimes_finished)")]
        values = {"seq": "10000000 + number", "id": "'old-' || number", "finished_at": "number"}
        chosen = ", ".join(values.get(column, column) for column in columns)
        sql.execute(
            "WITH RECURSIVE numbers (number) AS "
            f"(SELECT 1 UNION ALL SELECT number + 1 FROM numbers LIMIT {jobs}) "
            f"INSERT INTO betimes_finished ({', '.join(columns)}) SELECT {chosen} "
            "FROM numbers, (SELECT * FROM betimes_finished LIMIT 1)"
        )
        assert sql.execute("SELECT max(seq) FROM betimes_finished").fetchone() == (10_000_000 + jobs,)


def test_case_120_a_turn_and_a_prune_cost_the_same_whatever_has_been_kept(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def small() -> list[int]:
        counting = Counting(path)
        await counting.open()
        await due(counting.store, "early")
        costs = await counting.turns()
        await counting.store.close()
        return costs

    async def large() -> list[int]:
        counting = Counting(path)
        await counting.open()
        await future(counting.store)
        await due(counting.store, "due")
        costs = await counting.turns()
        pruned, cost = await counting.cost(counting.store.prune(keep_us=DAY_US, limit=1_000))
        more, _ = await counting.cost(counting.store.prune(keep_us=DAY_US, limit=1_000))
        assert (pruned, more) == (1_000, 1_000), "in steps"
        costs.append(cost)
        await counting.store.close()
        return costs

    reference = asyncio.run(small())
    write_history(path)
    with closing(sqlite3.connect(path)) as idle:
        # A transaction that stands idle: no checkpoint gets past what it sees.
        idle.execute("BEGIN")
        idle.execute("SELECT count(*) FROM betimes_worker").fetchone()
        *costs, prune = asyncio.run(large())
    # Hardly more than a look or two into deeper trees; a scan would take a million steps and more.
    assert max(costs) < 1.1 * max(reference)
    assert prune < 100 * 1_000


def test_case_151_a_page_of_a_list_costs_the_same_however_many_jobs_have_failed(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def fail_one() -> None:
        counting = Counting(path)
        await counting.open()
        now = CLOCK.now()
        await counting.store.submit([Job("early", SPEC, submitted_at=now, run_at=now)])
        turn = await counting.store.exchange([], ClaimRequest(worker="w", limit=1, lanes={"loop": 1}))
        event = Errored(CLOCK.now(), ErrorInfo(type="ValueError", message="no luck"))
        await counting.store.exchange([Report(turn.claimed[0], turn.claimed[0].fence, event)], None)
        await counting.store.close()

    async def pages() -> list[int]:
        """Read the first page, one from the middle and the last; return what each cost."""
        counting = Counting(path)
        await counting.open()
        assert counting.store._reader is not None
        assert counting.store._reader._sql is not None
        counting._sql = counting.store._reader._sql
        costs = []
        for before in (None, 10_100_000, 10_000_051):
            which = JobFilter(status=JobStatus.FAILED, limit=50, before=before)
            found, cost = await counting.cost(counting.store.jobs(which))
            newest = 10_200_001 if before is None else before
            assert [job.seq for job in found] == list(range(newest - 1, newest - 51, -1))
            costs.append(cost)
        await counting.store.close()
        return costs

    asyncio.run(fail_one())
    write_history(path, 200_000)
    assert max(asyncio.run(pages())) < 200 * 50, "by keys: nothing is counted or skipped"
