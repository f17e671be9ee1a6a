"""The command line on a store on PostgreSQL."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.postgres.server import Server

from betimes.cli.exits import Exit

Run = Callable[..., Result]

SECRET = "s3cret"


@pytest.fixture
def url(postgres_url: str) -> str:
    """The URL of a schema of its own, with a password (which the server does not ask for)."""
    return postgres_url.replace("postgres@", f"postgres:{SECRET}@")


@pytest.fixture
def own(app: Path, url: str) -> str:
    """The same, and `app.py` keeps its jobs there."""
    app.write_text(app.read_text().replace('"jobs.db"', repr(url)))
    return url


def test_no_command_shows_the_password(run: Run, own: str) -> None:
    commands: list[tuple[str, ...]] = [
        ("job", "list", "--url", own),  # nothing is there yet
        ("submit", "app.add", "1"),
        ("worker", "app.py", "--burst", "--soon", "0"),
        *[("job", each, "--url", own) for each in ("list",)],
        *[(each, "list", "--url", own) for each in ("queue", "schedule", "workers")],
        ("queue", "pause", "default", "--url", own),
        ("explain", "--queue", "default", "--url", own),
        ("doctor", "--url", own),
        ("db", "status", "--url", own),
        ("db", "migrate", "--url", own),
        ("db", "prune", "--url", own, "--keep", "0"),
        ("db", "backup", "copy.db", "--url", own),
    ]
    for command in commands:
        for each in (command, (*command, "--json")):
            result = run(*each)
            assert SECRET not in result.output, each
            assert "Traceback" not in result.output, each


def test_what_is_in_the_store_is_shown_as_of_a_file(run: Run, own: str) -> None:
    job_id = run("submit", "app.add", "1").stdout.strip()
    assert json.loads(run("job", "list", "--url", own, "--json").stdout)[0]["id"] == job_id
    assert run("worker", "app.py", "--burst", "--soon", "0").exit_code == 0
    assert json.loads(run("job", "show", job_id[:8], "--url", own, "--json").stdout)["status"] == "completed"
    assert run("job", "list", env={"BETIMES_URL": own}).exit_code == 0
    Path("pyproject.toml").write_text(f'[tool.betimes]\nurl = "{own}"\n')
    assert job_id[:8] in run("job", "list").stdout


def test_who_looks_makes_no_schema(run: Run, url: str) -> None:
    for command in (("job", "list"), ("db", "status"), ("queue", "pause", "x"), ("db", "prune")):
        assert run(*command, "--url", url).exit_code == Exit.UNAVAILABLE, command
    assert "database and schema" in run("job", "list", "--url", url).stderr


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("postgresql://app:s3@cret@127.0.0.1:{port}/postgres", Exit.SETTINGS),
        ("postgresql://app:s3/cret@127.0.0.1:{port}/postgres", Exit.SETTINGS),
        ("postgresql://app:s3#cret@127.0.0.1:{port}/postgres", Exit.SETTINGS),
        ("postgresql://app:s3?cret@127.0.0.1:{port}/postgres", Exit.SETTINGS),
        ("postgresql://app:s3[cret@127.0.0.1:{port}/postgres", Exit.SETTINGS),
        ("postgresql://app:s3%cret@127.0.0.1:{port}/postgres", Exit.SETTINGS),
        ("postgresql+psycopg://app:s3cret@127.0.0.1:{port}/postgres", Exit.SETTINGS),
        ("postgres//app:s3cret@127.0.0.1:{port}/postgres", Exit.SETTINGS),
        ("mysql://app:s3cret@127.0.0.1:{port}/postgres", Exit.SETTINGS),
        ("postgresql://app:s3cret@127.0.0.1:1/postgres", Exit.UNAVAILABLE),
        ("postgresql://nonesuch:s3cret@127.0.0.1:{port}/postgres", Exit.UNAVAILABLE),
        ("postgresql://postgres:s3cret@127.0.0.1:{port}/nonesuch", Exit.UNAVAILABLE),
        ("postgresql://postgres@127.0.0.1:{port}/nonesuch?password=s3cret", Exit.UNAVAILABLE),
        ("postgresql://postgres@127.0.0.1:{port}/postgres?schema=s3cret;", Exit.SETTINGS),
    ],
)
def test_a_url_that_is_wrong_is_refused_without_its_password(
    run: Run, folder: Path, postgres: Server, text: str, code: Exit
) -> None:
    result = run("job", "list", "--url", text.format(port=postgres.port))
    assert result.exit_code == code, result.output
    if ";" not in text:
        assert "cret" not in result.output
        assert "s3" not in result.output


def test_a_url_in_the_place_of_an_application_is_not_shown(run: Run, url: str) -> None:
    result = run("db", "status", url)
    assert (result.exit_code, SECRET in result.output) == (Exit.SETTINGS, False)
    assert "--url" in result.stderr


def test_without_the_driver_the_error_says_what_to_install(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith(("psycopg", "betimes.stores.postgres"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    result = run("job", "list", "--url", "postgresql://app:s3cret@db/app")
    assert result.exit_code == Exit.SETTINGS
    assert "pip install 'betimes[postgres]'" in result.stderr
    assert SECRET not in result.output
