"""How the SQLite store hears of other connections' commits: the bell, the watch, and both in a store."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
from collections.abc import Awaitable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from tests.runtime.sqlite_scene import SPEC, job

from betimes.clock import SystemClock
from betimes.core.job import Job
from betimes.ports import ClaimRequest, Hint, WorkerInfo
from betimes.stores.sqlite import SqliteStore, watch, writer
from betimes.stores.sqlite.doorbell import Doorbell, Inotify, touches_of
from betimes.stores.sqlite.watch import LATER_LOOKS_US, POLL_US, SAFETY_US, SETTLE_US, Watch

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="this system does not tell of writes to files")
PATIENCE_S = 20
REAL = SystemClock()


@pytest.fixture
def touched_path(tmp_path: Path) -> Path:
    (tmp_path / "probe").touch()
    path = tmp_path / "file"
    path.touch()
    return path


@pytest.fixture
def bell(touched_path: Path) -> Iterator[Doorbell]:
    bell = Doorbell(touches_of(touched_path, probe=touched_path.with_name("probe")))
    yield bell
    bell.close()


def never() -> bool:
    return False


# the bell


@on_linux
def test_a_touch_ends_the_sleep_of_who_waits_for_it_and_is_forgotten_by_that(
    bell: Doorbell, touched_path: Path
) -> None:
    touched_path.write_text("x")
    touched_path.write_text("y")
    assert not bell.sleep(0, is_called=never, for_touches=False)
    assert bell.sleep(PATIENCE_S, is_called=never, for_touches=True)
    assert not bell.sleep(0, is_called=never, for_touches=True)


@on_linux
def test_touches_that_were_hushed_are_not_heard(bell: Doorbell, touched_path: Path) -> None:
    touched_path.write_text("x")
    assert bell.hush()
    assert not bell.hush()
    assert not bell.sleep(0, is_called=never, for_touches=True)


def test_a_call_from_another_thread_ends_the_sleep(bell: Doorbell) -> None:
    called = threading.Event()

    def call() -> None:
        called.set()
        bell.ring()

    caller = threading.Thread(target=call)
    caller.start()
    while not called.is_set():
        assert not bell.sleep(None, is_called=called.is_set, for_touches=True)
    caller.join(PATIENCE_S)
    assert not caller.is_alive()


def test_whoever_has_been_called_before_does_not_fall_asleep(bell: Doorbell) -> None:
    bell.ring()
    assert not bell.sleep(None, is_called=lambda: True, for_touches=True)


def test_a_bell_that_is_gone_is_rung_in_vain(touched_path: Path) -> None:
    bell = Doorbell(None)
    bell._is_asleep = True  # as when the sleeper wakes up by itself, and ends, just as somebody rings
    bell.close()
    bell.ring()


@on_linux
def test_the_bell_does_without_touches_where_the_system_has_none_left(
    touched_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = touched_path.with_name("probe")
    assert touches_of(touched_path.with_name("missing"), probe=probe) is None
    monkeypatch.setattr(Inotify, "drain", lambda _: False)  # a file system that does not tell
    assert touches_of(touched_path, probe=probe) is None
    monkeypatch.setattr(sys, "platform", "darwin")
    assert touches_of(touched_path, probe=probe) is None
    with closing(Doorbell(None)) as bell:
        assert not bell.hush()
        assert not bell.sleep(0, is_called=never, for_touches=True)


# the watch


class Ear:
    """Stands for the bell: says what it was told to have heard."""

    def __init__(self, *, is_told: bool = True) -> None:
        self.touches = object() if is_told else None
        self.is_touched = False

    def hush(self) -> bool:
        was_touched, self.is_touched = self.is_touched, False
        return was_touched


class Scene:
    """A watch on a file, another connection that writes to it, and the time."""

    def __init__(self, path: Path, *, is_told: bool = True) -> None:
        self.own = sqlite3.connect(path, isolation_level=None, timeout=0)
        self.own.execute("PRAGMA journal_mode = WAL")
        self.own.execute("CREATE TABLE t (x)")
        self.other = sqlite3.connect(path, isolation_level=None)
        self.ear = Ear(is_told=is_told)
        self.now = 0
        self.watch = Watch(self.own, self.ear, now=0)  # type: ignore[arg-type]

    def commit(self, sql: sqlite3.Connection | None = None) -> None:
        (sql or self.other).execute("INSERT INTO t VALUES (1)")

    def looks(self, until_us: int) -> list[int]:
        """The instants at which the watch does something of its own accord."""
        made = []
        while self.now + self.watch.next_in_us(self.now) <= until_us:
            self.now += self.watch.next_in_us(self.now)
            made.append(self.now)
            if self.watch.has_news(self.now):
                made.append(-self.now)
        self.now = until_us
        return made

    def close(self) -> None:
        self.own.close()
        self.other.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with closing(Scene(tmp_path / "x.db")) as scene:
        scene.looks(0)
        yield scene


def test_a_watch_notices_others_commits_and_not_its_own(scene: Scene) -> None:
    scene.commit(scene.own)
    assert not scene.watch.has_changed()
    scene.commit()
    assert scene.watch.has_changed()
    assert not scene.watch.has_changed()


def test_a_watch_that_is_locked_out_counts_as_changed(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with (
        closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as own,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        own.execute("CREATE TABLE t (x)")
        watch = Watch(own, Ear(), now=0)  # type: ignore[arg-type]
        other.execute("BEGIN EXCLUSIVE")
        assert watch.has_changed()


def test_without_touches_it_is_looked_twice_a_second(scene: Scene) -> None:
    assert scene.looks(2_000_000) == [SAFETY_US, 2 * SAFETY_US, 3 * SAFETY_US, 4 * SAFETY_US]


def test_case_110_what_no_touch_told_of_is_found_all_the_same(scene: Scene) -> None:
    scene.commit()
    assert scene.looks(SAFETY_US) == [SAFETY_US, -SAFETY_US]


def test_where_nothing_tells_of_touches_it_is_looked_every_ten_milliseconds(tmp_path: Path) -> None:
    with closing(Scene(tmp_path / "x.db", is_told=False)) as scene:
        assert scene.looks(30_000) == [0, 10_000, 20_000, 30_000]
        scene.commit()
        assert scene.looks(40_000) == [40_000, -40_000]


def test_after_a_touch_it_is_looked_ever_more_rarely_until_the_commit_shows(scene: Scene) -> None:
    scene.now = 100_000
    scene.watch.touched(scene.now)
    assert not scene.watch.wants_touches(scene.now)
    steps = [100_000, 101_000, 103_000, 107_000, 115_000, 125_000, 135_000]
    assert scene.looks(140_000) == steps
    scene.commit()
    later = [145_000 + sum(LATER_LOOKS_US[:number]) for number in range(1, 4)]
    assert scene.looks(600_000) == [145_000, -145_000, *later], "three looks more, and no others"


def test_a_touch_that_nothing_comes_of_is_forgotten_after_a_second(scene: Scene) -> None:
    scene.watch.touched(scene.now)
    looks = scene.looks(SETTLE_US + POLL_US)
    assert max(later - look for look, later in pairwise(looks)) == POLL_US
    assert scene.watch.wants_touches(scene.now)
    assert len(scene.looks(scene.now + 1_000_000)) == 2


def test_touches_while_a_commit_is_awaited_have_it_awaited_longer(scene: Scene) -> None:
    scene.watch.touched(scene.now)
    scene.looks(SETTLE_US - POLL_US)
    scene.ear.is_touched = True
    looks = scene.looks(2 * SETTLE_US - 2 * POLL_US)
    assert max(later - look for look, later in pairwise(looks)) == POLL_US


def test_however_many_commit_it_is_told_every_ten_milliseconds(scene: Scene) -> None:
    told = []
    for number in range(100):
        scene.now = number * 1_000
        scene.commit()
        if scene.watch.wants_touches(scene.now):
            scene.watch.touched(scene.now)
        if scene.watch.next_in_us(scene.now) == 0 and scene.watch.has_news(scene.now):
            told.append(scene.now)
    assert told == [number * 10_000 for number in range(10)]


def test_a_touch_after_a_commit_was_found_begins_anew(scene: Scene) -> None:
    scene.watch.touched(scene.now)
    scene.commit()
    assert scene.looks(0) == [0, 0]
    assert not scene.watch.wants_touches(POLL_US - 1)
    scene.looks(POLL_US)
    assert scene.watch.wants_touches(POLL_US)
    scene.now = POLL_US + 500
    scene.watch.touched(scene.now)
    assert scene.looks(scene.now + 1_000) == [POLL_US + 500, POLL_US + 1_500]


def test_others_commits_whose_touches_go_with_one_s_own_are_found(scene: Scene) -> None:
    scene.commit()
    scene.ear.is_touched = True
    scene.commit(scene.own)
    scene.watch.committed(scene.now)
    assert not scene.ear.is_touched
    assert scene.watch.next_in_us(scene.now) == 0
    assert scene.watch.has_news(scene.now)


def test_one_s_own_commit_begins_no_looking_and_ends_what_was_in_vain(scene: Scene) -> None:
    scene.watch.touched(scene.now)
    scene.commit(scene.own)
    scene.ear.is_touched = True
    scene.watch.committed(scene.now)
    assert scene.watch.wants_touches(scene.now)
    assert scene.looks(SAFETY_US) == [SAFETY_US]


# in a store


@pytest.mark.parametrize("is_told", [True, False])
@pytest.mark.parametrize("table", ["theirs", "betimes_theirs"])
def test_a_store_hears_of_the_commits_of_any_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_told: bool, table: str
) -> None:
    path = tmp_path / "jobs.db"
    if is_told:
        monkeypatch.setattr(watch, "SAFETY_US", 10 * PATIENCE_S * 1_000_000)  # a touch must tell
    else:
        monkeypatch.setattr(writer, "touches_of", lambda *_, **__: None)

    async def main(foreign: sqlite3.Connection) -> None:
        store, neighbour = SqliteStore(path, clock=REAL), SqliteStore(path, clock=REAL)
        if table == "theirs":  # then the file is the application's, and has a rollback journal
            foreign.execute("CREATE TABLE theirs (x)")
        await store.open(strategy="priority")
        await neighbour.open(strategy="priority")
        foreign.execute("CREATE TABLE IF NOT EXISTS " + table + " (x)")
        heard = asyncio.Event()
        hints: set[Hint] = set()

        def hear(hint: Hint) -> None:
            hints.add(hint)
            heard.set()

        store.subscribe(hear)
        async with asyncio.timeout(PATIENCE_S):
            for number in range(4):
                await quiet(store, is_told=is_told)
                heard.clear()
                if number % 2:
                    await neighbour.submit([job(f"theirs-{number}")])
                else:
                    foreign.execute("INSERT INTO " + table + " VALUES (1)")
                await heard.wait()
        assert hints == {Hint.WORK, Hint.ENDED, Hint.FIRE}
        await store.close()
        await neighbour.close()

    with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
        asyncio.run(main(foreign))


def test_a_cancel_that_another_process_asks_for_is_heard_of_once(tmp_path: Path) -> None:
    async def main() -> None:
        store, neighbour = (SqliteStore(tmp_path / "jobs.db", clock=REAL) for _ in range(2))
        await store.open(strategy="priority")
        await neighbour.open(strategy="priority")
        await store.register(WorkerInfo(id="w", lease_us=10**12))
        now = REAL.now()
        await store.submit([Job(name, SPEC, submitted_at=now, run_at=now) for name in "ab"])
        request = ClaimRequest(worker="w", limit=2, lanes={"loop": 2})
        taken, other = (await store.exchange([], request)).claimed
        heard: list[Hint] = []
        rang = asyncio.Event()

        def hear(hint: Hint) -> None:
            heard.append(hint)
            rang.set()

        async def hints(change: Awaitable[object]) -> list[Hint]:
            heard.clear()
            rang.clear()
            await change
            await rang.wait()
            return list(heard)

        store.subscribe(hear)
        async with asyncio.timeout(PATIENCE_S):
            assert Hint.CANCEL in await hints(neighbour.cancel(taken, reason="by hand"))
            assert Hint.CANCEL not in await hints(neighbour.submit([job("c")])), "it has been heard of"
            assert Hint.CANCEL in await hints(neighbour.cancel(other, reason="by hand"))
        await store.close()
        await neighbour.close()

    asyncio.run(main())


def test_when_the_file_cannot_be_looked_at_a_cancel_may_have_been_asked_for(scene: Scene) -> None:
    assert scene.watch.hints(["w"]) == set(Hint), "it has no such table"
    assert scene.watch.hints([]) == set(Hint) - {Hint.CANCEL}


async def quiet(store: SqliteStore, *, is_told: bool) -> None:
    """Return once a touch alone has the store look soon."""
    assert store._writer is not None
    looks = store._writer._watch
    assert looks is not None
    while is_told and (not looks.wants_touches(now := REAL.boottime()) or looks.next_in_us(now) < SETTLE_US):
        await store.pruned()
