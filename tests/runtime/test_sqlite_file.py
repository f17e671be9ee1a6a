"""The SQLite store's file: made for its user alone, shared with care, refused where it cannot be used."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.sqlite_scene import CLOCK, finish_all, job, look, named, opened

from betimes.core.job import JobStatus
from betimes.errors import BetimesError, ConfigurationError, SchedulerClosed, SchemaMismatch, StoreUnavailable
from betimes.stores.sqlite import SqliteStore, opening
from betimes.stores.sqlite.mounts import refuse_network, refuse_other_names
from betimes.stores.sqlite.opening import SCHEMA_VERSION, has_wal_reset_fault
from betimes.testing import VirtualClock


async def open_and_close(path: Path, **settings: Any) -> None:
    async with opened(path, **settings):
        pass


def refused(path: Path, kind: type[BetimesError], **settings: Any) -> str:
    """What the store says when it will not open; the file must stay as it was, byte for byte."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(kind) as caught:
        asyncio.run(open_and_close(path, **settings))
    assert (path.read_bytes() if path.is_file() else None) == before
    return str(caught.value)


def make(path: Path, *commands: str) -> None:
    with closing(sqlite3.connect(path)) as sql:
        for command in commands:
            sql.execute(command)
        sql.commit()


def test_a_new_file_and_what_goes_with_it_belong_to_their_user_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db") as store:
            await store.submit([job("a")])
            beside = {"jobs.db-wal", "jobs.db-shm", "jobs.db-betimes-lock", "jobs.db-betimes-reserve"}
            names = {"jobs.db", *beside}
            assert modes(tmp_path) == dict.fromkeys(names, 0o600)

    asyncio.run(main())


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_nothing_is_opened_before_open(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "jobs.db", clock=CLOCK)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SchedulerClosed, match="not open"):
        asyncio.run(store.find("a"))


def test_an_empty_file_is_taken_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    path.touch(mode=0o640)
    asyncio.run(open_and_close(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert look(path, "SELECT value FROM betimes_meta WHERE name = 'schema_version'") == [(SCHEMA_VERSION,)]


def test_p28_case_116_a_later_schema_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    asyncio.run(open_and_close(path))
    make(path, "UPDATE betimes_meta SET value = 99 WHERE name = 'schema_version'")
    text = refused(path, SchemaMismatch)
    assert "99" in text
    assert str(path) in text
    with pytest.raises(SchemaMismatch) as caught:
        asyncio.run(open_and_close(path))
    assert (caught.value.found, caught.value.expected) == (99, SCHEMA_VERSION)


@pytest.mark.parametrize(
    "table",
    [
        "CREATE TABLE betimes_meta (something TEXT)",
        "CREATE TABLE betimes_meta (name TEXT, value ANY)",
        "CREATE TABLE betimes_other (something TEXT)",
    ],
)
def test_tables_of_our_name_that_are_not_ours_are_refused(tmp_path: Path, table: str) -> None:
    path = tmp_path / "jobs.db"
    make(path, table)
    assert "another file" in refused(path, SchemaMismatch)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    path.write_text("These are my notes.\n" * 100)
    text = refused(path, ConfigurationError)
    assert "not an SQLite database" in text
    assert str(path) in text


def test_case_118_a_garbled_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def fill() -> None:
        async with opened(path) as store:
            await store.submit(
                [job(f"job-{number}", payload=b'"%s"' % (b"x" * 500)) for number in range(200)]
            )

    asyncio.run(fill())
    content = bytearray(path.read_bytes())
    content[8192 : len(content) // 2] = b"garbled!" * (len(content) // 16 - 1024)
    path.write_bytes(content)
    text = refused(path, ConfigurationError)
    assert "damaged" in text
    assert ".recover" in text
    assert str(path) in text


def test_case_118_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    asyncio.run(open_and_close(path))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 3])
    assert "damaged" in refused(path, ConfigurationError)


@pytest.mark.parametrize(
    ("path", "says"),
    [(".", "is a folder"), ("missing/jobs.db", "does not exist")],
)
def test_a_path_that_cannot_be_a_file_is_refused(tmp_path: Path, path: str, says: str) -> None:
    assert says in refused(tmp_path / path, ConfigurationError)


def test_what_is_no_file_is_refused_and_nothing_is_made_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert "is not a file" in refused(path, ConfigurationError)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("path", ["", ":memory:"])
def test_a_path_that_names_no_file_is_refused_at_once(path: str) -> None:
    with pytest.raises(ConfigurationError, match="names no file"):
        SqliteStore(path, clock=CLOCK)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system does not list open files")
def test_where_no_more_files_may_be_opened_that_is_said_and_nothing_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_many(_touches: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def opened_here() -> set[tuple[str, str]]:
        paths = [
            (entry.name, entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()
        ]
        return {(fd, str(path)) for fd, path in paths if tmp_path in path.parents or "inotify" in str(path)}

    asyncio.run(open_and_close(tmp_path / "jobs.db"))
    before = opened_here()  # a store of another test may still be on its way out
    monkeypatch.setattr("betimes.stores.sqlite.writer.Doorbell", too_many)
    assert "Too many open files" in refused(tmp_path / "jobs.db", StoreUnavailable)
    assert opened_here() <= before


def test_a_path_that_leads_nowhere_is_refused_at_once(tmp_path: Path) -> None:
    loop = tmp_path / "loop.db"
    loop.symlink_to(loop)
    for path in (loop, loop / "jobs.db", Path("jobs\0.db")):
        with pytest.raises(ConfigurationError, match="names no file"):
            SqliteStore(path, clock=CLOCK)


def test_another_strategy_is_refused_while_there_are_jobs(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "jobs.db"
        await open_and_close(path, strategy="priority")
        await open_and_close(path, strategy="aging:0.1")  # nobody minds as long as it is empty
        async with opened(path, strategy="earliest_due") as store:
            await store.submit([job("a")])
            await finish_all(store)
        with pytest.raises(ConfigurationError, match=r"'earliest_due'.*'priority'"):
            await open_and_close(path, strategy="priority")
        await open_and_close(path, strategy="earliest_due")

    asyncio.run(main())


def test_opening_twice_is_refused_and_closing_twice_is_fine(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db") as store:
            with pytest.raises(ConfigurationError, match="open already"):
                await store.open(strategy="priority")
        await store.close()
        with pytest.raises(SchedulerClosed, match="not open"):
            await store.submit([job("a")])
        await store.open(strategy="priority")
        await store.close()

    asyncio.run(main())


def test_the_application_s_file_can_be_shared_and_keeps_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    make(path, "CREATE TABLE customer (name TEXT)", "INSERT INTO customer VALUES ('Ada')")

    async def main() -> None:
        async with opened(path) as store:
            await store.submit([job(f"job-{number}") for number in range(10)])
            assert await finish_all(store) == 10
            assert await store.find("job-3") is not None

    asyncio.run(main())
    asyncio.run(main_again(path))
    assert look(path, "PRAGMA journal_mode") == [("delete",)]
    assert look(path, "PRAGMA application_id") == [(0,)]
    assert look(path, "SELECT name FROM customer") == [("Ada",)]


async def main_again(path: Path) -> None:
    async with opened(path) as store:
        found = await store.find("job-3")
        assert found is not None
        assert found.status is JobStatus.COMPLETED


@pytest.mark.parametrize("has_fault", [True, False])
def test_the_application_s_file_in_wal_mode_depends_on_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_fault: bool
) -> None:
    path = tmp_path / "app.db"
    make(path, "PRAGMA journal_mode = WAL", "CREATE TABLE customer (name TEXT)")
    monkeypatch.setattr(opening, "has_wal_reset_fault", lambda: has_fault)
    if has_fault:
        assert "journal_mode = DELETE" in refused(path, ConfigurationError)
    else:
        asyncio.run(open_and_close(path))
        assert look(path, "SELECT value FROM betimes_meta WHERE name = 'schema_version'") == [
            (SCHEMA_VERSION,)
        ]


@pytest.mark.parametrize(
    ("version", "has_fault"),
    [
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 53, 0), False),
    ],
)
def test_versions_with_the_wal_reset_fault_are_known(version: tuple[int, ...], has_fault: bool) -> None:
    assert has_wal_reset_fault(version) is has_fault


def test_no_connection_checkpoints_by_itself(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db", inline=True) as store:
            assert store._writer is not None
            assert store._reader is not None
            reader = store._reader._sql
            assert reader is not None
            for sql in (store._writer._sql, reader):
                assert sql.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
                assert sql.execute("PRAGMA synchronous").fetchone() == (2,)
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.execute("DELETE FROM betimes_job")

    asyncio.run(main())


def test_a_reader_that_closes_last_leaves_the_log_alone(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with opened(path, inline=True) as store:
            await store.submit([job("a")])
            store._writer._sql.close()  # type: ignore[union-attr]
            before = contents(path)
            await store._reader.close()  # type: ignore[union-attr]
            assert contents(path) == before
            assert len(before[1]) > 0
        async with opened(path) as store:
            assert await store.find("a") is not None

    asyncio.run(main())


def contents(path: Path) -> tuple[bytes, bytes]:
    """The database and its log."""
    return path.read_bytes(), Path(f"{path}-wal").read_bytes()


def test_whoever_is_locked_out_for_too_long_hears_that_it_may_be_retried(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with opened(path, busy_timeout_s=0.01) as store:
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                waiting = job("a")
                with pytest.raises(StoreUnavailable, match="locked") as caught:
                    await store.submit([waiting])
                assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
                assert waiting.seq == 0
                assert await store.find("a") is None
                other.execute("ROLLBACK")
            await store.submit([waiting])
            assert waiting.seq == 1

    asyncio.run(main())


def test_commits_of_all_processes_are_kept_apart_by_one_lock(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with opened(path, busy_timeout_s=0.01) as store:
            other = os.open(f"{path}-betimes-lock", os.O_RDWR)
            fcntl.flock(other, fcntl.LOCK_EX)
            with pytest.raises(StoreUnavailable, match="held by another process"):
                await store.submit([job("a")])
            with pytest.raises(StoreUnavailable, match="held by another process"):
                await open_and_close(path, busy_timeout_s=0.01)
            assert await store.find("a") is None, "looking waits for nobody"
            os.close(other)
            await store.submit([job("a")])

    asyncio.run(main())


def test_a_link_to_the_file_goes_by_the_same_lock(tmp_path: Path) -> None:
    path, link = tmp_path / "jobs.db", tmp_path / "link.db"
    link.symlink_to(path)

    async def main() -> None:
        async with opened(path) as store, opened(link) as other:
            await store.submit([job("a")])
            assert await other.find("a") is not None

    asyncio.run(main())
    assert not (tmp_path / "link.db-betimes-lock").exists()


def test_two_stores_on_one_file_hear_of_each_other(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "jobs.db"
        heard = asyncio.Event()
        async with opened(path) as store, opened(path) as other:
            other.subscribe(lambda hint: heard.set())
            other._writer._clock = TickingClock()  # type: ignore[union-attr]
            await store.submit([named("a")])
            async with asyncio.timeout(30):
                await heard.wait()
            assert await finish_all(other) == 1
            found = await store.find("a")
            assert found is not None
            assert found.status is JobStatus.COMPLETED

    asyncio.run(main())


class TickingClock(VirtualClock):
    """Each look at it takes a second: so every wait is over at the next look."""

    def boottime(self) -> int:
        self.advance(1)
        return super().boottime()


def test_a_full_disk_fails_the_call_and_nothing_else(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db", inline=True) as store:
            await store.submit([job("small")])
            sql = store._writer._sql  # type: ignore[union-attr]
            pages = sql.execute("PRAGMA page_count").fetchone()[0]
            sql.execute(f"PRAGMA max_page_count = {pages}")
            large = [job(f"large-{number}", payload=b'"%s"' % (b"x" * 4000)) for number in range(50)]
            with pytest.raises(StoreUnavailable, match="disk is full"):
                await store.submit(large)
            assert [each.seq for each in large] == [0] * 50
            assert await store.find("large-0") is None
            assert await finish_all(store) == 1, "what is there goes on"
            sql.execute("PRAGMA max_page_count = 100000")
            await store.submit(large)
            assert large[-1].seq == 51

    asyncio.run(main())


MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /net/share rw,relatime - nfs4 server:/share rw
31 22 0:41 / /net/with\040blank rw,relatime - cifs //server/share rw
32 30 8:2 / /net/share/local rw,relatime - xfs /dev/sdb1 rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/jobs/jobs.db", None),
        ("/net/share/jobs.db", "nfs4"),
        ("/net/with blank/jobs.db", "cifs"),
        ("/net/share/local/jobs.db", None),
        ("/net/shares/jobs.db", None),
    ],
)
def test_a_network_file_system_is_refused(tmp_path: Path, path: str, kind: str | None) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS.lstrip())
    if kind is None:
        refuse_network(Path(path), mounts=mounts)
    else:
        with pytest.raises(ConfigurationError, match=kind):
            refuse_network(Path(path), mounts=mounts)


def test_where_mounts_are_not_told_nothing_is_refused(tmp_path: Path) -> None:
    refuse_network(Path("/net/share/jobs.db"), mounts=tmp_path / "none")
    refuse_other_names(tmp_path / "jobs.db", mounts=tmp_path / "none")


def test_p01_a_file_with_two_names_is_refused_since_it_would_have_two_logs(tmp_path: Path) -> None:
    path, other = tmp_path / "jobs.db", tmp_path / "other.db"
    asyncio.run(open_and_close(path))
    os.link(path, other)
    assert "hard links" in refused(path, ConfigurationError)
    assert "hard links" in refused(other, ConfigurationError)
    assert "hard links" in (asyncio.run(SqliteStore(path, clock=VirtualClock()).vitals()).problem or "")
    other.unlink()
    asyncio.run(open_and_close(path))


def test_p01_a_file_that_is_mounted_without_its_folder_is_refused(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "36 25 8:1 / /data rw - ext4 /dev/sda1 rw\n"
        "37 25 8:1 /vol/my\\040jobs.db /app/my\\040jobs.db rw - ext4 /dev/sda1 rw\n"
    )
    with pytest.raises(ConfigurationError, match="mount its folder"):
        refuse_other_names(Path("/app/my jobs.db"), mounts=mounts)
    refuse_other_names(Path("/data/jobs.db"), mounts=mounts)


def test_files_beside_one_that_a_group_shares_are_shared_too_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    make(path, "CREATE TABLE of_the_application (x)")
    path.chmod(0o660)
    before = os.umask(0o077)
    try:
        asyncio.run(open_and_close(path))
    finally:
        os.umask(before)
    for what in ("lock", "reserve"):
        assert stat.S_IMODE(path.with_name(f"jobs.db-betimes-{what}").stat().st_mode) == 0o660


@pytest.mark.skipif(os.geteuid() != 0, reason="only the administrator may give files away")
def test_an_administrator_leaves_no_files_that_lock_the_owner_out(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    asyncio.run(open_and_close(path))
    for what in ("lock", "reserve"):
        path.with_name(f"jobs.db-betimes-{what}").unlink()
    os.chown(path, 65534, 65534)
    asyncio.run(open_and_close(path))
    for what in ("lock", "reserve"):
        made = path.with_name(f"jobs.db-betimes-{what}").stat()
        assert (made.st_uid, made.st_gid, stat.S_IMODE(made.st_mode)) == (65534, 65534, 0o600)
