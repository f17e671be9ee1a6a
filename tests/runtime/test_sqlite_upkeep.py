"""What the SQLite store's writer does by its own timer: leases and checkpoints."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.runtime.sqlite_scene import job, opened

from betimes.stores.relational.upkeep import Renewals
from betimes.stores.sqlite import watch, writer
from betimes.testing import VirtualClock

LEASE_US = 30_000_000


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def renewals(clock: VirtualClock) -> Renewals:
    """The leases of one worker, which may go without a beat for a minute."""
    renewals = Renewals(clock=clock, max_stall_us=60_000_000)
    renewals.begin("w", LEASE_US)
    return renewals


def test_p25_a_lease_is_prolonged_every_third_of_its_term_without_a_beat(
    clock: VirtualClock, renewals: Renewals
) -> None:
    prolonged = []
    for second in range(1, 61):
        clock.advance(1)
        prolonged += [second for _ in renewals.due()]
    assert prolonged == [10, 20, 30, 40, 50, 60]


def test_p25_a_stall_beyond_its_limit_gives_the_lease_up(clock: VirtualClock, renewals: Renewals) -> None:
    clock.advance(61)
    assert renewals.due() == []
    renewals.beaten("w")
    clock.advance(10)
    assert renewals.due() == ["w"], "whoever beats again is looked after again"


def test_a_beat_puts_the_next_prolongation_off(clock: VirtualClock, renewals: Renewals) -> None:
    clock.advance(9)
    renewals.beaten("w")
    clock.advance(9)
    assert renewals.due() == []
    assert renewals.next_due_in_us() == 1_000_000
    clock.advance(5)
    assert renewals.next_due_in_us() == 0


def test_a_lease_that_was_ended_is_left_alone(clock: VirtualClock, renewals: Renewals) -> None:
    renewals.end("w")
    renewals.beaten("w")
    clock.advance(20)
    assert renewals.due() == []
    assert renewals.next_due_in_us() is None


def test_a_checkpoint_is_made_once_enough_has_been_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "WRITES_TO_CHECKPOINT", 100)
    made: list[None] = []

    async def main() -> None:
        async with opened(tmp_path / "jobs.db", inline=True) as store:
            committer = store._writer._committer  # type: ignore[union-attr]
            real = committer.checkpoint
            committer.checkpoint = lambda: made.append(real())  # type: ignore[method-assign]
            before = size(tmp_path / "jobs.db")
            await store.submit([job(f"job-{number}") for number in range(90)])
            assert (len(made), size(tmp_path / "jobs.db")) == (0, before)
            await store.submit([job(f"more-{number}") for number in range(90)])
            assert len(made) == 1
            assert size(tmp_path / "jobs.db") > before

    asyncio.run(main())


def size(path: Path) -> int:
    return path.stat().st_size


def test_the_log_is_begun_anew_after_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "WRITES_TO_CHECKPOINT", 200)
    sizes = []

    async def main() -> None:
        async with opened(tmp_path / "jobs.db", inline=True) as store:
            for start in range(0, 4000, 100):
                await store.submit([job(f"job-{start + number}") for number in range(100)])
                sizes.append(size(tmp_path / "jobs.db-wal"))

    asyncio.run(main())
    assert sizes[-1] == sizes[len(sizes) // 2], "a log that is never begun anew grows with every commit"


def test_the_timer_stands_still_when_nobody_listens_and_nothing_is_to_be_done(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db") as store:
            timer = store._writer
            assert timer is not None
            assert timer._pause_s() is None
            stop = store.subscribe(lambda _: None)
            pause_s = timer._pause_s()
            assert pause_s is not None
            assert pause_s <= watch.SAFETY_US / 1_000_000
            stop()
            assert timer._pause_s() is None
            await store.submit([job("a")])
            assert timer._pause_s() == writer.IDLE_CHECKPOINT_US / 1_000_000

    asyncio.run(main())
