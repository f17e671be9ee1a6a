"""The suite's own PostgreSQL: it answers, its schemas are apart, and it never outlives the test run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.postgres import server as servers
from tests.postgres.server import NoServer, Server, all_programs, fresh_schema, server_account, start_server
from tests.processes import is_running

ROOT = Path(__file__).parents[2]
WAIT_S = 30.0
OWNER = """
import sys
from tests.postgres.server import start_server
server = start_server()
print(server.pid, server.folder, flush=True)
sys.stdin.read()
"""


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that happens elsewhere."""
    give_up = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < give_up, "it did not come to pass"
        time.sleep(0.02)


def ask(url: str, question: str) -> object:
    with psycopg.connect(url, autocommit=True) as conn:
        row = conn.execute(question.encode()).fetchone()
    return None if row is None else row[0]


def do(url: str, order: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(order.encode())


def test_the_server_answers_and_is_of_the_version_that_it_says(postgres: Server) -> None:
    assert str(ask(postgres.url(), "SELECT version()")).startswith(f"PostgreSQL {postgres.major}.")
    socket = f"host={postgres.folder} port={postgres.port} user=postgres dbname=postgres"
    assert ask(socket, "SHOW server_encoding") == "UTF8"
    assert ask(postgres.url(application_name="two words"), "SHOW application_name") == "two words"


def test_it_runs_as_somebody_who_may_not_do_everything(postgres: Server) -> None:
    owner = postgres.data.stat().st_uid
    assert owner != 0
    assert owner == (os.geteuid() if os.geteuid() != 0 else server_account().uid)


def test_fresh_schemas_are_apart_and_gone_afterwards(postgres: Server) -> None:
    def schema(url: str) -> str:
        return url.partition("?schema=")[2]

    def schemas() -> set[str]:
        found = ask(postgres.url(), "SELECT string_agg(nspname, ' ') FROM pg_namespace")
        return set(str(found).split())

    with fresh_schema(postgres) as first, fresh_schema(postgres) as second, fresh_schema(postgres):
        names = {schema(first), schema(second)}
        assert len(names) == 2
        for name in names:
            do(postgres.url(), f"CREATE SCHEMA {name}; CREATE TABLE {name}.t (a int)")
        assert names <= schemas()
    assert not names & schemas()


def test_a_schema_that_is_still_used_does_not_hang_the_run(
    postgres: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(servers, "PATIENCE", "50ms")
    with psycopg.connect(postgres.url(), autocommit=False) as conn:
        with fresh_schema(postgres) as url:
            name = url.partition("?schema=")[2]
            conn.execute(f"CREATE SCHEMA {name}; CREATE TABLE {name}.t (a int)".encode())
            conn.commit()
            conn.execute(f"SELECT * FROM {name}.t".encode())
        assert f"somebody still uses {name}" in capsys.readouterr().out
        conn.execute(f"DROP SCHEMA {name} CASCADE".encode())


def test_a_server_of_one_s_own_keeps_what_was_committed_over_every_restart() -> None:
    with start_server(settings={"work_mem": "7MB"}) as server:
        assert ask(server.url(), "SHOW work_mem") == "7MB"
        assert [ask(server.url(), f"SHOW {name}") for name in ("fsync", "synchronous_commit")] == ["on", "on"]
        do(server.url(), "CREATE TABLE t AS SELECT 1 AS a")
        first = server.pid
        server.restart()
        assert server.pid != first
        server.restart("immediate")
        assert "was not properly shut down" in server.log()
        killed = server.pid
        os.kill(killed, signal.SIGKILL)
        until(lambda: not is_running(killed))
        with pytest.raises(psycopg.OperationalError):
            ask(server.url(), "SELECT 1")
        server.start()
        server.shut_down()
        with pytest.raises(psycopg.OperationalError):
            ask(server.url(), "SELECT 1")
        server.start()
        assert ask(server.url(), "SELECT count(*) FROM t") == 1
    server.close()
    assert not server.folder.exists()
    with pytest.raises(ValueError, match="closed"):
        server.start()


def test_a_setting_that_is_none_is_told_by_the_server_s_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []
    start_keeper = servers._start_keeper

    def watched(folder: Path, account: servers.Account) -> subprocess.Popen[bytes]:
        folders.append(folder)
        return start_keeper(folder, account)

    monkeypatch.setattr(servers, "_start_keeper", watched)
    with pytest.raises(NoServer, match="no_such_setting"):
        start_server(settings={"no_such_setting": "1"})
    (folder,) = folders
    assert not folder.exists()


def test_when_the_run_is_killed_the_server_and_its_folder_are_gone() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        pid, folder = owner.stdout.readline().split()
        assert is_running(int(pid))
        owner.kill()
    until(lambda: not is_running(int(pid)))
    until(lambda: not Path(folder).exists())


def test_when_its_keeper_is_ended_the_server_is_too() -> None:
    with start_server() as server:
        pid = server.pid
        keeper, _ = servers._ask(server.keeper, ["pid"])
        os.kill(keeper, signal.SIGTERM)
        until(lambda: not is_running(pid))
        with pytest.raises((NoServer, BrokenPipeError)):
            server.restart()


def test_without_programs_the_tests_fail_and_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(servers.ASKED_FOR, raising=False)
    monkeypatch.setattr(servers, "_known_places", list)
    with pytest.raises(NoServer, match=r"need the programs of a PostgreSQL server.*BETIMES_TEST_PG_BIN"):
        start_server()


def test_the_programs_that_are_asked_for_are_taken_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(servers.ASKED_FOR, str(tmp_path))
    with pytest.raises(NoServer, match=r"BETIMES_TEST_PG_BIN=.*no `postgres`"):
        all_programs()
    for name in ("initdb", "postgres"):
        (tmp_path / name).touch()
    assert all_programs()[0] == tmp_path
    monkeypatch.delenv(servers.ASKED_FOR)
    assert tmp_path not in all_programs()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's files are closed to the server's user")
def test_programs_out_of_the_server_user_s_reach_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    programs = all_programs()[0]
    (tmp_path / "all").symlink_to(programs.parents[2], target_is_directory=True)
    hidden = tmp_path / "all" / programs.relative_to(programs.parents[2])
    with start_server(programs=hidden) as server:
        assert server.programs != hidden
        assert ask(server.url(), "SELECT 1") == 1
    assert hidden.exists()
