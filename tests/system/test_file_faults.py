"""A file that is damaged, moved away, mixed up with another one, or not to be written to."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from betimes import Scheduler, StoreUnavailable
from betimes.clock import SystemClock
from betimes.core.job import Job, JobSpec
from betimes.errors import BetimesError, ConfigurationError
from betimes.stores.sqlite import SqliteStore

CLOCK = SystemClock()
SPEC = JobSpec(task="work")
PATIENCE_S = 60.0


def job(job_id: str, size: int = 2) -> Job:
    payload = b'"%s"' % (b"x" * size)
    return Job(job_id, SPEC, payload, submitted_at=CLOCK.now(), run_at=CLOCK.now())


@asynccontextmanager
async def opened(path: Path, journal: str | None = None) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, clock=CLOCK, journal=journal)
    await store.open(strategy="priority")
    try:
        yield store
    finally:
        await store.close()


async def fill(path: Path, name: str, count: int, *, size: int = 500, journal: str | None = None) -> None:
    async with opened(path, journal) as store:
        await store.submit([job(f"{name}-{number}", size) for number in range(count)])


def contents(folder: Path) -> dict[str, bytes]:
    """All that lies in a folder but what tells nothing: the lock, the reserve and the index of the log."""
    skipped = ("-betimes-lock", "-betimes-reserve", "-shm")
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(skipped)}


def refused(path: Path, kind: type[BetimesError] = ConfigurationError) -> str:
    """What is said of a file that is not taken; nothing beside it or in it has changed."""
    before = contents(path.parent)
    said = set()
    for _ in range(2):
        with pytest.raises(kind) as caught:
            asyncio.run(fill(path, "more", 1))
        assert contents(path.parent) == before
        said.add(str(caught.value))
    (text,) = said
    assert str(path) in text
    return text


def put_beside(path: Path, name: str, content: bytes) -> None:
    path.with_name(f"{path.name}-{name}").write_bytes(content)


def log_of(path: Path, count: int, *, is_whole: bool) -> bytes:
    """The log that a file like ours leaves when its process is killed; whole: it holds all of the tables."""

    async def main() -> bytes:
        if not is_whole:
            await fill(path, "early", 1000, size=1)
        async with opened(path) as store:
            await store.submit([job(f"other-{number}", 3000) for number in range(count)])
            return path.with_name(f"{path.name}-wal").read_bytes()

    return asyncio.run(main())


def journal_of(path: Path) -> bytes:
    """The rollback journal that a process leaves which is killed within a large transaction."""
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        sql.execute("PRAGMA cache_size = 1")
        sql.execute("CREATE TABLE t (x)")
        sql.executemany("INSERT INTO t VALUES (?)", [("y" * 1000,) for _ in range(200)])
        sql.execute("BEGIN")
        sql.execute("UPDATE t SET x = x || 1")
        content = path.with_name(f"{path.name}-journal").read_bytes()
        sql.execute("ROLLBACK")
    return content


@pytest.mark.parametrize("is_whole", [True, False])
def test_case_118_a_log_that_another_file_has_left_is_not_copied_into_this_one(
    tmp_path: Path, is_whole: bool
) -> None:
    (tmp_path / "ours").mkdir()
    path = tmp_path / "ours" / "jobs.db"
    asyncio.run(fill(path, "job", 300))
    put_beside(path, "wal", log_of(tmp_path / "other.db", 20, is_whole=is_whole))
    text = refused(path)
    assert "damaged" in text
    path.with_name("jobs.db-wal").unlink()
    asyncio.run(fill(path, "more", 1))
    with closing(sqlite3.connect(path)) as sql:
        assert sql.execute("SELECT count(*) FROM betimes_job").fetchone() == (301,)


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_case_118_a_journal_that_another_file_has_left_is_not_rolled_back(
    tmp_path: Path, journal: str
) -> None:
    (tmp_path / "ours").mkdir()
    path = tmp_path / "ours" / "jobs.db"
    asyncio.run(fill(path, "job", 300, journal=journal))
    put_beside(path, "journal", journal_of(tmp_path / "other.db"))
    text = refused(path)
    assert "damaged" in text
    path.with_name("jobs.db-journal").unlink()
    asyncio.run(fill(path, "more", 1))


KILLED_WITHIN = """
import os, signal, sqlite3, sys
sql = sqlite3.connect(sys.argv[1], isolation_level=None)
sql.execute("PRAGMA cache_size = 1")
sql.execute("BEGIN IMMEDIATE")
sql.execute("UPDATE betimes_job SET payload = payload || ' '")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_case_118_what_a_killed_writer_left_of_its_transaction_is_rolled_back(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    asyncio.run(fill(path, "job", 500, journal="delete"))
    subprocess.run([sys.executable, "-c", KILLED_WITHIN, str(path)], check=False)
    assert (tmp_path / "jobs.db-journal").stat().st_size > 0
    asyncio.run(fill(path, "more", 1))
    with closing(sqlite3.connect(path)) as sql:
        assert sql.execute("SELECT count(*) FROM betimes_job WHERE payload LIKE '% '").fetchone() == (0,)
        assert sql.execute("SELECT count(*) FROM betimes_job").fetchone() == (501,)


@pytest.mark.parametrize("content", [b"x", b"SQLite format 3\0", b"\0" * 600, os.urandom(5000)])
def test_case_118_what_is_no_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ours").mkdir()
    path = tmp_path / "ours" / "jobs.db"
    path.write_bytes(content)
    refused(path)


AS_NOBODY = """
import asyncio, os, sys
from betimes import Scheduler, StoreUnavailable

async def look(path):
    async with Scheduler(path, watchdog=None).client():
        return "opened"

asyncio.run(look(sys.argv[2]))  # whatever has to be imported is imported by that
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
try:
    print(asyncio.run(look(sys.argv[1])))
except StoreUnavailable as error:
    print(error.why, error)
"""


def as_nobody(path: Path, warm_up: Path) -> str:
    """What somebody hears who has no more rights to the file than its modes give; root has all."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", AS_NOBODY, str(path), str(warm_up)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "says"),
    [
        (0o444, 0o777, "read_only {path} is read-only"),
        (
            0o666,
            0o555,
            "read_only {path} cannot be opened: Permission denied; this process needs write access",
        ),
        (0o444, 0o555, "read_only {path} is read-only"),
    ],
)
def test_case_118_a_file_or_folder_that_must_not_be_written_to_is_refused(
    tmp_path: Path, file_mode: int, folder_mode: int, says: str
) -> None:
    with TemporaryDirectory() as name:  # the folders of tests are closed to others
        folder = Path(name) / "ours"
        folder.mkdir()
        Path(name).chmod(0o755)
        path = folder / "jobs.db"
        asyncio.run(fill(path, "job", 1))
        for beside in folder.iterdir():
            beside.unlink() if beside != path else beside.chmod(file_mode)
        folder.chmod(folder_mode)
        before = contents(folder)
        assert says.format(path=path) in as_nobody(path, tmp_path / "warm-up.db")
        assert contents(folder) == before
        folder.chmod(0o777)


def move(path: Path, to: Path) -> None:
    for beside in ("", "-wal", "-shm"):
        path.with_name(path.name + beside).rename(to.with_name(to.name + beside))


def delete(path: Path) -> None:
    path.unlink()


def put_another_in_place(path: Path) -> None:
    path.unlink()
    asyncio.run(asyncio.to_thread(fill_anew, path))


def fill_anew(path: Path) -> None:
    asyncio.run(fill(path, "new", 3))


@pytest.mark.parametrize(
    ("fault", "says"), [(delete, "moved or deleted"), (put_another_in_place, "replaced by another file")]
)
def test_nothing_is_written_to_a_file_that_has_lost_its_name(
    tmp_path: Path, fault: Callable[[Path], None], says: str
) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with opened(path) as store:
            await store.submit([job("a")])
            assert not store.is_replaced
            await asyncio.to_thread(fault, path)
            assert store.is_replaced
            for _ in range(2):
                with pytest.raises(StoreUnavailable, match=says) as caught:
                    await store.submit([job("b")])
                assert caught.value.why == "replaced"

    asyncio.run(main())


def test_a_close_leaves_the_log_alone_of_a_file_that_has_taken_the_name(tmp_path: Path) -> None:
    path, other = tmp_path / "jobs.db", tmp_path / "other.db"

    async def main() -> None:
        async with opened(other) as new:
            async with opened(path) as store:
                await store.submit([job("a")])
                await new.submit([job("new")])
                move(path, tmp_path / "old.db")
                move(other, path)
                log = path.with_name("jobs.db-wal").read_bytes()
                assert log
            assert path.with_name("jobs.db-wal").read_bytes() == log
            move(path, other)
        async with opened(other) as new:
            assert await new.find("new") is not None
        async with opened(tmp_path / "old.db") as old:
            assert await old.find("a") is not None

    asyncio.run(main())


def test_a_worker_whose_file_was_moved_goes_on_when_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, away = tmp_path / "jobs.db", tmp_path / "away.db"
    scheduler, runs, go = Scheduler(path, poll="0.2s", watchdog=None), list[int](), asyncio.Event()

    @scheduler.task(name="work")
    async def work(number: int) -> int:
        runs.append(number)
        await go.wait()
        return number

    async def main() -> None:
        async with scheduler:
            first = await work.submit(1)
            async with asyncio.timeout(PATIENCE_S):
                while not runs:  # noqa: ASYNC110 - the list tells nobody that it changes
                    await asyncio.sleep(0.01)
            move(path, away)
            go.set()
            async with asyncio.timeout(PATIENCE_S):
                while (await scheduler.metrics()).store_errors < 3:  # noqa: ASYNC110 - likewise
                    await asyncio.sleep(0.05)
            with pytest.raises(StoreUnavailable, match="moved or deleted"):
                await work.submit(2)
            move(away, path)
            assert await first.result(timeout=PATIENCE_S) == 1
            assert await (await work.submit(3)).result(timeout=PATIENCE_S) == 3

    with caplog.at_level(logging.WARNING, "betimes"):
        asyncio.run(main())
    assert runs == [1, 3]
    messages = [record.getMessage() for record in caplog.records]
    assert sum("the store failed" in text for text in messages) == 1, messages
    assert sum("the store answers again" in text for text in messages) == 1, messages
