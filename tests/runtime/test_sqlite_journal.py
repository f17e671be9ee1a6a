"""The journal mode: settled when the file is made, asked for in the URL, and never changed by us."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.runtime.sqlite_scene import job, look, opened

from betimes import ConfigurationError, Scheduler
from betimes.stores.sqlite import opening


async def open_once(path: Path, journal: str | None = None) -> str:
    """Open a store there, submit a job, close it, and return the mode that the file is in."""
    async with opened(path, journal=journal) as store:
        await store.submit([job(f"one-of-{journal}")])
    (mode,) = look(path, "PRAGMA journal_mode")[0]
    return str(mode)


def make(path: Path, *commands: str) -> None:
    with closing(sqlite3.connect(path)) as sql:
        for command in commands:
            sql.execute(command)
        sql.commit()


@pytest.mark.parametrize(("journal", "mode"), [(None, "wal"), ("wal", "wal"), ("delete", "delete")])
def test_a_new_file_gets_the_journal_that_was_asked_for_and_keeps_it(
    tmp_path: Path, journal: str | None, mode: str
) -> None:
    path = tmp_path / "jobs.db"
    assert asyncio.run(open_once(path, journal)) == mode
    assert asyncio.run(open_once(path)) == mode
    assert asyncio.run(open_once(path, mode)) == mode


@pytest.mark.parametrize(("made", "asked"), [("wal", "delete"), ("delete", "wal")])
def test_another_journal_than_the_file_was_made_with_is_refused_with_the_remedy(
    tmp_path: Path, made: str, asked: str
) -> None:
    path = tmp_path / "jobs.db"
    asyncio.run(open_once(path, made))
    with pytest.raises(ConfigurationError, match=f"PRAGMA journal_mode = {asked.upper()}"):
        asyncio.run(open_once(path, asked))
    assert asyncio.run(open_once(path)) == made
    make(path, f"PRAGMA journal_mode = {asked}")
    assert asyncio.run(open_once(path, asked)) == asked


def test_an_empty_file_of_somebody_else_s_gets_the_journal_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    make(path, "PRAGMA journal_mode = WAL")
    assert asyncio.run(open_once(path, "delete")) == "delete"


def test_an_application_may_make_its_tables_later_in_a_file_without_wal(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    asyncio.run(open_once(path, "delete"))
    make(path, "CREATE TABLE customer (name TEXT)")
    assert asyncio.run(open_once(path)) == "delete"


@pytest.mark.parametrize("has_fault", [True, False])
def test_a_file_in_wal_mode_to_which_others_have_committed_depends_on_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_fault: bool
) -> None:
    path = tmp_path / "jobs.db"
    asyncio.run(open_once(path))
    make(path, "INSERT INTO betimes_meta (name, value) VALUES ('is_shared', 1)")
    monkeypatch.setattr(opening, "has_wal_reset_fault", lambda: has_fault)
    if has_fault:
        with pytest.raises(ConfigurationError, match="journal_mode = DELETE"):
            asyncio.run(open_once(path))
    else:
        assert asyncio.run(open_once(path)) == "wal"


def test_the_url_says_which_journal(tmp_path: Path) -> None:
    for number, (query, mode) in enumerate(
        [("", "wal"), ("?journal=delete", "delete"), ("?journal=wal", "wal")]
    ):

        async def main(url: str) -> None:
            scheduler = Scheduler(url)
            async with scheduler.client():
                assert (await scheduler.metrics()).submitted == 0

        path = tmp_path / f"{number}.db"
        asyncio.run(main(f"sqlite:///{path}{query}"))
        assert look(path, "PRAGMA journal_mode") == [(mode,)]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?journal=memory", "'wal', 'delete'"),
        ("?journal=", "'wal', 'delete'"),
        ("?jurnal=wal", "behind its '\\?'"),
        ("?journal=wal&journal=wal", "behind its '\\?'"),
        ("?journal=wal&mode=ro", "behind its '\\?'"),
    ],
)
def test_what_else_a_url_says_is_refused(tmp_path: Path, query: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Scheduler(f"sqlite:///{tmp_path}/jobs.db{query}")
    assert list(tmp_path.iterdir()) == []


def test_a_question_mark_in_a_file_s_name_is_written_in_the_url_s_way(tmp_path: Path) -> None:
    async def main(store: str) -> None:
        async with Scheduler(store).client():
            pass

    asyncio.run(main(f"sqlite:///{tmp_path}/which%3F.db"))
    asyncio.run(main(f"{tmp_path}/what?.db"))
    assert {"which?.db", "what?.db"} <= {each.name for each in tmp_path.iterdir()}
