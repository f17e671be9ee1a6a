"""The command line on a store on PostgreSQL."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from click.testing import Result
from tests.postgres.server import Server

from betimes.cli.exits import Exit
from betimes.stores.postgres import opening
from betimes.stores.postgres.target import target_of

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


@pytest.fixture
def second_version(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Have the code here be of a version with one step more, once this is called."""
    steps = [
        *opening.migrations(),
        (2, "-- Notes of tenants.\nALTER TABLE betimes_tenant ADD COLUMN note text;"),
    ]
    return lambda: monkeypatch.setattr(opening, "migrations", lambda: steps)


def test_a_plan_changes_nothing_and_says_what_would_be_run(
    run: Run, url: str, second_version: Callable[[], None]
) -> None:
    plan = json.loads(run("db", "migrate", "--url", url, "--plan", "--json").stdout)
    assert (plan["from"], plan["to"], plan["done"]) == (0, 1, False)
    assert run("db", "status", "--url", url).exit_code == Exit.UNAVAILABLE, "nothing was made"
    assert json.loads(run("db", "migrate", "--url", url, "--json").stdout)["done"]
    second_version()
    text = run("db", "migrate", "--url", url, "--dry-run").stdout
    assert "would go from schema version 1 to 2\n  2: Notes of tenants\n" in text
    assert "betimes db sql --from 1" in text
    shown = json.loads(run("db", "status", "--url", url, "--json").stdout)
    assert (shown["store"]["server"]["schema"], shown["store"]["server"]["newest_schema"]) == (1, 2)
    assert shown["jobs"] is None


def test_an_older_schema_is_carried_over_only_when_asked(
    run: Run, own: str, second_version: Callable[[], None]
) -> None:
    run("submit", "app.add", "1")
    second_version()
    for command in (
        ("job", "list", "--url", own),
        ("submit", "app.add", "1"),
        ("worker", "app.py", "--burst"),
    ):
        result = run(*command)
        assert (result.exit_code, "betimes db migrate" in result.stderr) == (Exit.SCHEMA, True), command
    checkup = json.loads(run("doctor", "--url", own, "--json").stdout)["checkup"]
    assert [each["severity"] for each in checkup["findings"] if each["code"] == "schema"] == ["error"]
    assert "went from schema version 1 to 2" in run("db", "migrate", "--url", own).stdout
    assert "nothing to do" in run("db", "migrate", "--url", own).stdout
    assert run("worker", "app.py", "--burst", "--soon", "0").exit_code == 0
    assert len(json.loads(run("job", "list", "--url", own, "--json").stdout)) == 1


def test_migrating_an_application_s_store_settles_its_order_too(run: Run, own: str) -> None:
    assert run("db", "migrate", "app.py").exit_code == 0
    assert json.loads(run("db", "status", "--url", own, "--json").stdout)["store"]["strategy"] == "priority"


def test_the_sql_that_is_printed_makes_the_schema_and_its_roles(
    run: Run, url: str, postgres: Server, second_version: Callable[[], None]
) -> None:
    schema = target_of(url).schema
    text = run("db", "sql", "--url", url).stdout
    assert "-- schema version 1" in text
    with psycopg.connect(postgres.url(), autocommit=True) as conn:
        conn.execute(text.encode())
        assert "nothing to do" in run("db", "migrate", "--url", url).stdout
        second_version()
        step = run("db", "sql", "--url", url, "--from", "1").stdout
        assert "-- schema version 1" not in step
        conn.execute(step.encode())
        assert "version 2 already: nothing to do" in run("db", "migrate", "--url", url).stdout
        conn.execute(run("db", "sql", "--url", url, "--roles").stdout.encode())
        names = conn.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE %s", (f"{schema}\\_%",))
        assert {name for (name,) in names} == {
            f"{schema}_{role}" for role in ("owner", "worker", "submitter", "viewer")
        }
        assert run("job", "list", "--url", url).exit_code == 0
        conn.execute(f"DROP SCHEMA {schema} CASCADE".encode())
        for role in ("owner", "worker", "submitter", "viewer"):
            conn.execute(f"DROP OWNED BY {schema}_{role}; DROP ROLE {schema}_{role}".encode())


def test_a_file_has_no_roles(run: Run, folder: Path) -> None:
    result = run("db", "sql", "--url", "jobs.db", "--roles")
    assert (result.exit_code, "no roles" in result.stderr) == (Exit.SETTINGS, True)
    assert "Notes" not in run("db", "sql", "--url", "jobs.db").stdout
    assert not (folder / "jobs.db").exists()


def test_the_status_shows_the_server_and_the_tables(run: Run, own: str) -> None:
    run("submit", "app.add", "1")
    text = run("db", "status", "--url", own).stdout
    assert "synchronous commit" in text
    assert "betimes_job" in text
    server = json.loads(run("db", "status", "--url", own, "--json").stdout)["store"]["server"]
    assert (server["fits"], server["schema"]) == ("owner", 1)


def test_a_backup_names_the_tool_of_the_database(run: Run, own: str) -> None:
    result = run("db", "backup", "copy.dump", "--url", own)
    assert (result.exit_code, "pg_dump --schema=test_" in result.stderr) == (Exit.SETTINGS, True)


def test_old_jobs_are_forgotten_when_asked(run: Run, own: str) -> None:
    run("submit", "app.add", "1")
    run("worker", "app.py", "--burst", "--soon", "0")
    assert "would forget 1" in run("db", "prune", "--url", own, "--keep", "0", "--dry-run").stdout
    assert json.loads(run("db", "prune", "--url", own, "--keep", "0", "--json").stdout)["jobs"] == 1
    assert json.loads(run("job", "list", "--url", own, "--json").stdout) == []


def test_a_role_without_rights_is_a_matter_of_settings(run: Run, own: str, postgres: Server) -> None:
    run("submit", "app.add", "1")
    schema = target_of(own).schema
    with psycopg.connect(postgres.url(), autocommit=True) as conn:
        conn.execute(run("db", "sql", "--url", own, "--roles").stdout.encode())
        conn.execute(f"CREATE ROLE {schema}_login LOGIN IN ROLE {schema}_viewer".encode())
        theirs = own.replace("postgres:", f"{schema}_login:")
        try:
            assert json.loads(run("job", "list", "--url", theirs, "--json").stdout)
            assert run("queue", "list", "--url", theirs).exit_code == 0
            assert run("explain", "--queue", "default", "--url", theirs).exit_code == 0
            for command in (("queue", "pause", "x"), ("db", "prune", "--keep", "0")):
                result = run(*command, "--url", theirs)
                assert (result.exit_code, "betimes db sql --roles" in result.stderr) == (Exit.SETTINGS, True)
        finally:
            conn.execute(f"DROP SCHEMA {schema} CASCADE; DROP ROLE {schema}_login".encode())
            for role in ("owner", "worker", "submitter", "viewer"):
                conn.execute(f"DROP OWNED BY {schema}_{role}; DROP ROLE {schema}_{role}".encode())
