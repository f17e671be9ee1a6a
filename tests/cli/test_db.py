"""`betimes db …`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest
from click.testing import Result
from tests.cli.stored import Stored, fill

Run = Callable[..., Result]
URL = ("--url", "jobs.db")


@pytest.fixture
def stored(folder: Path) -> Stored:
    return fill(folder / "jobs.db")


def test_the_status_says_what_the_store_is_and_holds(run: Run, stored: Stored, folder: Path) -> None:
    shown = json.loads(run("db", "status", *URL, "--json").stdout)
    assert shown["store"]["kind"] == "sqlite"
    assert shown["store"]["file"]["schema"] == shown["store"]["file"]["newest_schema"]
    assert shown["store"]["file"]["mode"] == "0600"
    assert datetime.fromisoformat(shown["store"]["latest"]).tzinfo is not None
    assert shown["jobs"] == {"default": {"delayed": 1}, "elsewhere": {"ready": 1, "blocked": 1}}
    text = run("db", "status", *URL).stdout
    assert str(folder / "jobs.db") in text
    assert "permissions      600" in text


def test_a_store_is_named_by_its_application_too(run: Run, app: Path) -> None:
    assert run("worker", "app.py", "--burst").exit_code == 0
    assert run("db", "status", "app.py").exit_code == 0
    assert run("db", "status", env={"BETIMES_APP": "app.py"}).exit_code == 0
    (app.parent / "pyproject.toml").write_text('[tool.betimes]\napp = "app.py"\n')
    assert run("db", "status").exit_code == 0


def test_a_file_that_is_not_there_is_not_made_by_looking(run: Run, folder: Path) -> None:
    assert run("db", "status", *URL).exit_code != 0
    assert not (folder / "jobs.db").exists()


@pytest.mark.parametrize(
    ("change", "code"),
    [("UPDATE betimes_meta SET value = 99 WHERE name = 'schema_version'", 6), ("", 3)],
    ids=["newer", "no database"],
)
def test_a_store_that_cannot_be_used_ends_every_command_with_one_code(
    run: Run, stored: Stored, folder: Path, change: str, code: int
) -> None:
    if change:
        with closing(sqlite3.connect(folder / "jobs.db")) as sql:
            sql.execute(change)
            sql.commit()
    else:
        (folder / "jobs.db").write_text("a diary, and no database\n" * 100)
    before = (folder / "jobs.db").read_bytes()
    for command in (("job", "list"), ("queue", "pause", "x"), ("db", "status"), ("db", "migrate")):
        assert run(*command, *URL).exit_code == code, command
    assert (folder / "jobs.db").read_bytes() == before


def test_an_empty_place_gets_the_schema(run: Run, folder: Path) -> None:
    plan = json.loads(run("db", "migrate", *URL, "--plan", "--json").stdout)
    assert (plan["from"], plan["done"]) == (0, False)
    assert not (folder / "jobs.db").exists()
    assert run("db", "migrate", *URL).exit_code == 0
    assert (folder / "jobs.db").stat().st_mode & 0o777 == 0o600
    assert "nothing to do" in run("db", "migrate", *URL).stdout


def test_an_older_schema_is_carried_over_only_when_asked(run: Run, stored: Stored, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "old.db")) as sql:
        steps = run("db", "sql").stdout.split("-- schema version ")
        sql.executescript(steps[1].partition("\n")[2])
    assert json.loads(run("db", "migrate", "-u", "old.db", "--plan", "--json").stdout)["from"] == 1
    looked = run("job", "list", "-u", "old.db")
    assert (looked.exit_code, "db migrate" in looked.stderr) == (6, True)
    assert json.loads(run("db", "migrate", "-u", "old.db", "--plan", "--json").stdout)["from"] == 1
    assert json.loads(run("db", "migrate", "-u", "old.db", "--json").stdout)["done"]
    assert json.loads(run("db", "migrate", "-u", "old.db", "--plan", "--json").stdout)["done"]
    assert run("job", "list", "-u", "old.db").exit_code == 0


def test_a_newer_schema_is_left_alone(run: Run, stored: Stored, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "jobs.db")) as sql:
        sql.execute("UPDATE betimes_meta SET value = 999 WHERE name = 'schema_version'")
        sql.commit()
    for command in (("db", "migrate"), ("job", "list")):
        result = run(*command, *URL)
        assert result.exit_code == 6, result.stderr
        assert "999" in result.stderr


def test_the_sql_of_the_schema_makes_the_schema(run: Run, folder: Path) -> None:
    run("db", "migrate", *URL)
    with closing(sqlite3.connect(":memory:")) as made, closing(sqlite3.connect(folder / "jobs.db")) as ours:
        made.executescript(run("db", "sql").stdout)
        wanted = "SELECT type, name, sql FROM sqlite_schema ORDER BY name"
        assert made.execute(wanted).fetchall() == ours.execute(wanted).fetchall()
    assert "schema version 1" not in run("db", "sql", "--from", "1").stdout


def test_finished_jobs_are_forgotten_when_asked(run: Run, stored: Stored) -> None:
    assert "would forget 2" in run("db", "prune", *URL, "--keep", "0", "--dry-run").stdout
    assert "forgot 0" in run("db", "prune", *URL, "--keep", "1d").stdout
    assert json.loads(run("db", "prune", *URL, "--keep", "0", "--json").stdout) == {"jobs": 2, "done": True}
    assert len(json.loads(run("job", "list", *URL, "--json").stdout)) == 3


def test_a_backup_is_a_whole_store(run: Run, stored: Stored, folder: Path) -> None:
    result = run("db", "backup", "copy.db", *URL)
    assert result.exit_code == 0, result.stderr
    assert (folder / "copy.db").stat().st_mode & 0o777 == 0o600
    lists = [run("job", "list", "--url", name, "--json").stdout for name in ("jobs.db", "copy.db")]
    assert lists[0] == lists[1]


def test_a_backup_takes_the_place_of_nothing(run: Run, stored: Stored, folder: Path) -> None:
    (folder / "there.db").write_text("mine")
    result = run("db", "backup", "there.db", *URL)
    assert (result.exit_code, (folder / "there.db").read_text()) == (3, "mine")
    assert run("db", "backup", "nowhere/copy.db", *URL).exit_code == 3
    assert run("db", "backup", "copy.db", "--url", "nonesuch.db").exit_code == 3
    (folder / "other.db").write_bytes(b"")
    assert run("db", "backup", "copy.db", "--url", "other.db").exit_code == 3
    assert not (folder / "copy.db").exists()
    assert not (folder / "nonesuch.db").exists()


def test_a_backup_of_an_applications_store_is_named_after_it(run: Run, app: Path) -> None:
    assert run("worker", "app.py", "--burst").exit_code == 0
    assert run("db", "backup", "app.py", "copy.db").exit_code == 0
    assert run("db", "backup", "app.py", "copy.db", "more").exit_code == 2
