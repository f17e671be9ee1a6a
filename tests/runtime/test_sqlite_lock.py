"""The lock around commits and checkpoints: nothing of ours is written to the file without it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.sqlite_scene import finish_all, job, opened

from betimes.errors import StoreUnavailable
from betimes.stores.sqlite import writer
from betimes.stores.sqlite.commit_lock import CommitLock

WRITES = re.compile(
    r"\s*(BEGIN|COMMIT|END|ROLLBACK(?! TO)|INSERT|UPDATE|DELETE|REPLACE|CREATE"
    r"|PRAGMA (wal_checkpoint|journal_mode ?=))",
    re.IGNORECASE,
)
"""What can take the write lock, commit, or copy the log into the database."""


def is_held(database: Path) -> bool:
    """Whether somebody holds the lock: this descriptor is another one, and would have to wait."""
    file = os.open(f"{database}-betimes-lock", os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)


class Spy:
    """Notes what every connection does that needs the lock, and whether it was held."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self.seen: list[tuple[str, bool]] = []
        self.read_only = 0

    def connect(self, real: Any, target: Any, *args: Any, **kwargs: Any) -> sqlite3.Connection:
        is_reader = "?mode=" in str(target)
        if not is_reader:
            self.note("connect")
        kind = self.connection_class(kwargs.pop("factory", sqlite3.Connection), is_reader=is_reader)
        sql: sqlite3.Connection = real(target, *args, factory=kind, **kwargs)
        if is_reader:
            self.read_only += 1
        sql.set_trace_callback(lambda text: self.trace(text, is_reader))
        return sql

    def trace(self, text: str, is_reader: bool) -> None:
        if not WRITES.match(text):
            return
        if not is_reader:
            self.note(text.split("(", maxsplit=1)[0])
        elif text not in {"BEGIN", "COMMIT"}:  # around looks that belong together
            self.note(f"reader: {text}")

    def connection_class(
        self, asked_for: type[sqlite3.Connection], *, is_reader: bool
    ) -> type[sqlite3.Connection]:
        def close(connection: sqlite3.Connection) -> None:
            if not is_reader:
                self.note("close")
            asked_for.close(connection)

        return type("Connection", (asked_for,), {"close": close})

    def note(self, what: str) -> None:
        self.seen.append((what, is_held(self.database)))

    @property
    def kinds(self) -> set[str]:
        return {what.split()[0] for what, _ in self.seen}


@pytest.fixture
def spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spy:
    spy = Spy(tmp_path / "jobs.db")
    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kwargs: spy.connect(real, *args, **kwargs))
    return spy


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("is_shared", [False, True])
def test_every_commit_checkpoint_open_and_close_of_ours_holds_the_lock(
    tmp_path: Path, spy: Spy, monkeypatch: pytest.MonkeyPatch, inline: bool, is_shared: bool
) -> None:
    monkeypatch.setattr(writer, "WRITES_TO_CHECKPOINT", 1)
    path = tmp_path / "jobs.db"
    if is_shared:
        make_shared(path)

    async def live() -> None:
        async with opened(path, inline=inline) as store:
            await asyncio.gather(*(store.submit([job(f"job-{number}")]) for number in range(5)))
            assert await finish_all(store) == 5
            await store.retire("w")
            await store.prune(keep_us=0)
            await store.rekey(strategy="aging:0.1", assign=lambda _: None)
            await store.counts()

    asyncio.run(live())
    asyncio.run(reopen(path))
    assert {"connect", "BEGIN", "COMMIT", "INSERT", "PRAGMA", "close"} <= spy.kinds, "there is nothing to see"
    assert spy.read_only >= 2
    assert [what for what, held in spy.seen if not held] == []
    assert [what for what, _ in spy.seen if what.startswith("reader")] == []


async def reopen(path: Path) -> None:
    async with opened(path, strategy="aging:0.1") as store:
        await store.submit([job("again")])


def make_shared(path: Path) -> None:
    with closing(sqlite3.Connection(path)) as sql:
        sql.execute("CREATE TABLE theirs (x)")
        sql.commit()


def test_recovery_after_a_crash_holds_the_lock(tmp_path: Path, spy: Spy) -> None:
    path = tmp_path / "jobs.db"

    async def crash() -> None:
        async with opened(path) as store:
            await store.submit([job("kept")])
            copy(tmp_path)

    asyncio.run(crash())
    left = tmp_path / "left-jobs.db"
    assert left.with_name("left-jobs.db-wal").stat().st_size > 0
    spy.database, spy.seen = left, []

    async def recover() -> None:
        async with opened(left) as store:
            assert await store.find("kept") is not None

    asyncio.run(recover())
    assert {"connect", "BEGIN", "close"} <= spy.kinds
    assert [what for what, held in spy.seen if not held] == []


def copy(folder: Path) -> None:
    """Make what a crash would leave: the files as they are, the log not yet copied into the database.

    By another process, since SQLite's locks go with the first descriptor that this one closes.
    """
    for name in ("jobs.db", "jobs.db-wal", "jobs.db-betimes-lock"):
        subprocess.run(["cp", folder / name, folder / f"left-{name}"], check=True)


def test_a_checkpoint_does_not_happen_while_somebody_else_holds_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with opened(path, inline=True, busy_timeout_s=0.01) as store:
            await store.submit([job("a")])
            size = path.stat().st_size
            committer = store._writer._committer  # type: ignore[union-attr]
            other = CommitLock(path, patience_s=0)
            other.open()
            with other:
                committer.checkpoint()
                assert path.stat().st_size == size
                with pytest.raises(StoreUnavailable, match="held by another process"):
                    await store.submit([job("b")])
            other.close()
            committer.checkpoint()
            assert path.stat().st_size > size
            assert await store.find("b") is None

    asyncio.run(main())


def test_whoever_closes_without_the_lock_does_not_checkpoint_while_another_has_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with opened(path) as stays:
            async with opened(path, busy_timeout_s=0.01) as leaves:
                await leaves.submit([job("a")])
                size = path.stat().st_size
                lock = stays._writer._lock  # type: ignore[union-attr]
                lock.__enter__()
            lock.__exit__(None, None, None)
            assert path.stat().st_size == size
            assert await stays.find("a") is not None

    asyncio.run(main())
