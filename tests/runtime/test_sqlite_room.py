"""The reserve beside a file: made, given up, and made again; with a disk that says what the test wants."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

import pytest
from tests.runtime.sqlite_scene import CLOCK, finish_all, job, opened

from betimes.errors import ConfigurationError, StoreUnavailable
from betimes.stores.sqlite import SqliteStore
from betimes.stores.sqlite.room import RESERVE_BYTES, disk_facts, reserve_of

MIB = 1024 * 1024


class Disk:
    """What the system says of the disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, total: int = 1024 * MIB) -> None:
        self.total = self.free = total
        monkeypatch.setattr(os, "statvfs", self._look)

    def _look(self, _path: str | Path) -> os.statvfs_result:
        blocks = [each // 4096 for each in (self.total, self.free, self.free)]
        return os.statvfs_result((4096, 4096, *blocks, 0, 0, 0, 0, 255))


def size_of(path: Path) -> int:
    return reserve_of(path).stat().st_size


@pytest.mark.parametrize(("total", "size"), [(1024 * MIB, RESERVE_BYTES), (8 * MIB, MIB // 2)])
def test_the_reserve_takes_up_a_small_part_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: int, size: int
) -> None:
    Disk(monkeypatch, total=total)
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with opened(path):
            assert size_of(path) == size
            assert reserve_of(path).stat().st_blocks * 512 >= size, "it is really there"

    asyncio.run(main())


def test_without_a_reserve_nothing_is_made_and_nothing_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with opened(path, reserve_bytes=0) as store:
            disk.free = 0
            await store.submit([job("a")])
            assert not reserve_of(path).exists()
            assert not store.disk().is_full

    asyncio.run(main())
    with pytest.raises(ConfigurationError, match="reserve_bytes"):
        SqliteStore(path, clock=CLOCK, reserve_bytes=-1)


def test_p27_new_jobs_are_refused_while_the_reserve_is_gone_and_the_log_says_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk(monkeypatch)
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with opened(path, inline=True) as store:
            await store.submit([job(f"job-{number}") for number in range(10)])
            disk.free = 3 * MIB
            await store.submit([job("there-is-room")])
            os.truncate(reserve_of(path), 0)  # as another process does that finds no room
            for _ in range(3):
                with pytest.raises(StoreUnavailable, match="disk is full") as caught:
                    await store.submit([job("no-room")])
                assert caught.value.why == "full"
            assert store.disk().is_full
            assert disk_facts(path).is_full
            assert await finish_all(store) == 11
            disk.free = 5 * MIB
            await store.submit([job("room-again")])
            assert size_of(path) == RESERVE_BYTES

    with caplog.at_level(logging.WARNING, "betimes"):
        asyncio.run(main())
    assert ["full" in record.getMessage() for record in caplog.records] == [True, False]


def test_the_reserve_is_filled_again_although_nobody_submits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    disk.free = MIB
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with opened(path, inline=True) as store:
            assert not reserve_of(path).exists()
            disk.free = 10 * MIB
            await store.pause_queue("default")
            assert size_of(path) == RESERVE_BYTES

    asyncio.run(main())
