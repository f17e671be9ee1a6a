"""A file looked at without using it: what can be said of it, and that nothing is made or changed."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.sqlite_scene import CLOCK, job, opened

from betimes.core.job import JobStatus
from betimes.core.vitals import Trouble, Vitals
from betimes.errors import ConfigurationError, SchedulerClosed, SchemaMismatch, StoreUnavailable
from betimes.stores.sqlite import SqliteStore, mounts
from betimes.stores.sqlite.opening import SCHEMA_VERSION, _commands, location
from betimes.stores.sqlite.statements import migrations
from betimes.stores.sqlite.survey import survey

Spoil = Callable[[Path], None]


def make(path: Path, *commands: str) -> None:
    """Make or change a file past the store."""
    with closing(sqlite3.connect(path)) as sql:
        for command in commands:
            sql.execute(command)
        sql.commit()


def fill(path: Path, **settings: Any) -> None:
    """A store with one job, closed again."""

    async def main() -> None:
        async with opened(path, **settings) as store:
            await store.submit([job("a")])

    asyncio.run(main())


def looked_at(path: Path, *, full: bool = False) -> Vitals:
    """The vitals, from a store that is not open."""
    store = SqliteStore(path, clock=CLOCK, busy_timeout_s=0.2)
    return asyncio.run(store.vitals(full=full))


def everything(folder: Path) -> dict[str, tuple[bytes, int]]:
    """What lies in a folder, with the time of its last change."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("full", [False, True])
def test_a_look_at_a_closed_file_changes_nothing_and_leaves_nothing_behind(
    tmp_path: Path, journal: str, full: bool
) -> None:
    path = tmp_path / "jobs.db"
    fill(path, journal=journal)
    before = everything(tmp_path)
    vitals = looked_at(path, full=full)
    file = vitals.file
    assert file is not None
    assert (vitals.trouble, vitals.place, vitals.strategy) == (None, str(path), "priority")
    assert vitals.latest == CLOCK.now()
    assert (file.journal_mode, file.schema, file.newest_schema) == (journal, SCHEMA_VERSION, SCHEMA_VERSION)
    assert (file.mode, file.is_writable, file.is_shared, file.is_full) == (0o600, True, False, False)
    assert file.size == path.stat().st_size
    assert file.damage == (() if full else None)
    assert file.free is not None
    assert vitals.can_be_looked_at
    assert everything(tmp_path) == before


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_store_can_be_opened_for_looking_only(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "jobs.db"
    fill(path, journal=journal)
    before = everything(tmp_path)

    async def main() -> None:
        store = SqliteStore(path, clock=CLOCK)
        await store.look()
        assert await store.counts() == {"default": {JobStatus.READY: 1}}
        with pytest.raises(ConfigurationError, match="for looking only"):
            await store.submit([job("b")])
        with pytest.raises(ConfigurationError, match="open already"):
            await store.look()
        with pytest.raises(ConfigurationError, match="open already"):
            await store.open(strategy="priority")
        await store.close()
        await store.close()
        with pytest.raises(SchedulerClosed):
            await store.counts()

    asyncio.run(main())
    assert everything(tmp_path) == before


def test_a_look_beside_a_worker_sees_what_it_has_committed_and_leaves_its_log_alone(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with opened(path) as store:
            await store.submit([job("a")])
            onlooker = SqliteStore(path, clock=CLOCK)
            await onlooker.look()
            await store.submit([job("b")])
            assert await onlooker.counts() == {"default": {JobStatus.READY: 2}}
            assert (await store.vitals()).latest == (await onlooker.vitals(full=True)).latest == CLOCK.now()
            await onlooker.close()
            assert path.with_name("jobs.db-wal").exists()
            await store.submit([job("c")])
            assert await store.counts() == {"default": {JobStatus.READY: 3}}

    asyncio.run(main())


def not_a_database(path: Path) -> None:
    path.write_bytes(b"certainly no database " * 100)


def a_few_bytes(path: Path) -> None:
    path.write_bytes(b"hello")


def a_folder(path: Path) -> None:
    path.mkdir()


def without_a_folder(path: Path) -> None:
    path.parent.rmdir()


def of_another_making(path: Path) -> None:
    make(path, "CREATE TABLE betimes_meta (other TEXT)")


def without_a_version(path: Path) -> None:
    make(path, "CREATE TABLE betimes_meta (name TEXT, value ANY)")


def newer(path: Path) -> None:
    fill(path)
    make(path, "UPDATE betimes_meta SET value = 99 WHERE name = 'schema_version'")


def nothing(path: Path) -> None:
    del path


@pytest.mark.parametrize(
    ("spoil", "trouble", "words"),
    [
        (nothing, Trouble.MISSING, "is not there"),
        (not_a_database, Trouble.REFUSED, "is not an SQLite database"),
        (a_few_bytes, Trouble.REFUSED, "is not an SQLite database"),
        (a_folder, Trouble.REFUSED, "is not a file"),
        (without_a_folder, Trouble.REFUSED, "does not exist; create it first"),
        (of_another_making, Trouble.REFUSED, "of another making"),
        (without_a_version, Trouble.REFUSED, "of another making"),
        (newer, Trouble.NEWER, "has schema version 99"),
    ],
)
def test_case_118_what_cannot_be_used_is_said_and_not_raised(
    tmp_path: Path, spoil: Spoil, trouble: Trouble, words: str
) -> None:
    path = tmp_path / "jobs.db"
    spoil(path)
    vitals = looked_at(path)
    assert vitals.trouble is trouble
    assert words in vitals.problem
    assert not vitals.problem.endswith(".")
    assert not vitals.can_be_looked_at
    assert path.exists() is (spoil not in {nothing, without_a_folder})
    with pytest.raises(StoreUnavailable, match=words):
        asyncio.run(SqliteStore(path, clock=CLOCK).look())


def test_a_file_that_another_program_has_locked_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    fill(path, journal="delete")
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        sql.execute("BEGIN EXCLUSIVE")
        vitals = looked_at(path)
    assert vitals.trouble is Trouble.UNAVAILABLE
    assert "locked" in vitals.problem
    assert vitals.file is not None
    assert vitals.file.schema is None


def test_a_file_whose_lock_of_ours_is_held_is_said_to_be_held(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with opened(path, inline=True) as store:
            await store.submit([job("a")])
            with store._writer._committer._lock:  # type: ignore[union-attr]
                vitals = survey(location(path, busy_timeout_s=0.05), full=False)
            assert vitals.trouble is Trouble.UNAVAILABLE
            assert "held by another process" in vitals.problem

    asyncio.run(main())


def test_a_network_file_system_is_said_to_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "jobs.db"
    fill(path)

    def refuse(where: Path) -> None:
        mounts.refuse_network(where, mounts=tmp_path / "mountinfo")

    (tmp_path / "mountinfo").write_text(f"1 1 0:1 / {tmp_path} rw - nfs4 host:/x rw\n")
    monkeypatch.setattr("betimes.stores.sqlite.survey.refuse_network", refuse)
    vitals = looked_at(path)
    assert vitals.trouble is Trouble.REFUSED
    assert "nfs4" in vitals.problem


def test_damage_is_found_when_all_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    fill(path)
    make(
        path,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, '(id)', '(task)') WHERE name = 'betimes_job_id'",
    )
    vitals = looked_at(path, full=True)
    assert vitals.file is not None
    assert vitals.file.damage
    assert any("betimes_job_id" in finding for finding in vitals.file.damage)


def test_case_118_a_garbled_file_is_found_without_asking(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    fill(path)
    content = bytearray(path.read_bytes())
    content[8192:12288] = b"\xff" * 4096
    path.write_bytes(content)
    vitals = looked_at(path)
    assert vitals.file is not None
    assert vitals.file.damage or vitals.trouble is Trouble.REFUSED


def test_an_older_schema_is_said_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    make(path, *_commands(migrations()[0][1]))
    before = everything(tmp_path)
    vitals = looked_at(path)
    assert vitals.file is not None
    assert (vitals.trouble, vitals.file.schema, vitals.can_be_looked_at) == (None, 1, False)
    with pytest.raises(SchemaMismatch) as caught:
        asyncio.run(SqliteStore(path, clock=CLOCK).look())
    assert (caught.value.found, caught.value.expected) == (1, SCHEMA_VERSION)
    assert everything(tmp_path) == before


def test_other_tables_and_an_empty_file_are_said(tmp_path: Path) -> None:
    shared, empty = tmp_path / "shared.db", tmp_path / "empty.db"
    make(shared, "CREATE TABLE customer (name TEXT)")
    fill(shared)
    file = looked_at(shared).file
    assert file is not None
    assert (file.is_shared, file.journal_mode, file.schema) == (True, "delete", SCHEMA_VERSION)
    empty.touch()
    file = looked_at(empty).file
    assert file is not None
    assert (file.is_shared, file.schema) == (False, 0)


def test_a_file_that_may_only_be_read_can_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "jobs.db"
    fill(path, journal="delete")
    path.chmod(0o400)
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs the tests may write to anything
    vitals = looked_at(path)
    assert vitals.trouble is None
    assert vitals.file is not None
    assert (vitals.file.is_writable, vitals.file.mode) == (False, 0o400)


def test_a_transaction_that_a_crash_has_left_is_said_and_left_alone(tmp_path: Path) -> None:
    path, copy = tmp_path / "jobs.db", tmp_path / "copy.db"
    fill(path, journal="delete")
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        sql.execute("PRAGMA cache_size = 1")
        sql.execute("BEGIN IMMEDIATE")
        sql.execute("CREATE TABLE betimes_half (a)")
        sql.execute("INSERT INTO betimes_half SELECT zeroblob(100000)")
        copy.write_bytes(path.read_bytes())
        copy.with_name("copy.db-journal").write_bytes(path.with_name("jobs.db-journal").read_bytes())
        sql.execute("ROLLBACK")
    before = everything(tmp_path)
    vitals = looked_at(copy)
    assert vitals.trouble is Trouble.LEFT_OPEN
    assert "half done" in vitals.problem
    assert everything(tmp_path) == before
    with pytest.raises(StoreUnavailable, match="half done"):
        asyncio.run(SqliteStore(copy, clock=CLOCK).look())


def test_a_file_that_was_replaced_while_it_is_open_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with opened(path) as store:
            await store.submit([job("a")])
            path.rename(tmp_path / "elsewhere.db")
            vitals = await store.vitals()
            assert vitals.trouble is Trouble.REPLACED
            (tmp_path / "elsewhere.db").rename(path)

    asyncio.run(main())
