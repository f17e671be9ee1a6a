"""`betimes job …`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from click.testing import Result
from tests.cli.stored import Stored, fill

from betimes import JobStatus, Scheduler
from betimes.cli import changes, ids
from betimes.cli.which import STATUSES

Run = Callable[..., Result]


@pytest.fixture
def stored(folder: Path) -> Stored:
    return fill(folder / "jobs.db")


def listed(run: Run, *options: str) -> list[str]:
    result = run("job", "list", "--url", "jobs.db", "--json", *options)
    assert result.exit_code == 0, result.stderr
    return [each["id"] for each in json.loads(result.stdout)]


def test_the_statuses_are_those_of_jobs() -> None:
    assert set(STATUSES) == {status.value for status in JobStatus}


def test_jobs_are_listed_newest_first_and_by_what_they_are(run: Run, stored: Stored) -> None:
    every = [stored.blocked, stored.ready, stored.delayed, stored.failed, stored.done]
    assert listed(run) == every
    assert listed(run, "--status", "failed") == [stored.failed]
    assert listed(run, "--task", "add", "--queue", "elsewhere") == [stored.blocked, stored.ready]
    assert listed(run, "--tag", "sums", "-s", "completed") == [stored.done]
    assert listed(run, "--tag", "nothing") == []


def test_a_list_is_given_page_by_page(run: Run, stored: Stored) -> None:
    first = run("job", "list", "--url", "jobs.db", "-n", "2", "--json")
    last = json.loads(first.stdout)[-1]
    assert listed(run, "-n", "3", "--before", str(last["version"])) == [
        stored.delayed,
        stored.failed,
        stored.done,
    ]
    assert f"--before {last['version']}" in run("job", "list", "--url", "jobs.db", "-n", "2").stderr


def test_a_retry_of_what_is_found_leaves_versions_alone_that_a_newer_one_has_replaced(
    run: Run, app: Path
) -> None:
    for task in ("fail", "add 1"):
        assert run("submit", "-a", "app.py", *task.split(), "--job-id", "x").exit_code == 0
        assert run("worker", "app.py", "--burst").exit_code == 0
    for option in ("--dry-run", "--yes"):
        result = run("job", "retry", "--url", "jobs.db", "--status", "failed", option, "--json")
        assert result.exit_code == 0
        assert "newer version" in json.loads(result.stdout)[0]["outcome"]
    both = json.loads(run("job", "list", "--url", "jobs.db", "--json").stdout)
    assert [each["status"] for each in both] == ["completed", "failed"]


def test_a_cancel_of_what_is_found_ends_the_very_version(run: Run, folder: Path) -> None:
    scheduler = Scheduler(folder / "jobs.db", watchdog=None)
    begun = asyncio.Event()

    @scheduler.task(name="wait")
    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def main() -> tuple[str, str]:
        async with scheduler:
            older = await wait.using(job_id="x").submit()
            await begun.wait()
            newer = await wait.using(job_id="x", replace=True).submit()
            cancel = ("job", "cancel", "--url", "jobs.db", "--status", "running", "--yes", "--json")
            result = await asyncio.to_thread(run, *cancel)
            assert json.loads(result.stdout) == [{"id": "x", "outcome": "requested", "is_done": True}]
            await older.wait(timeout=20)
            states = (await older.status(), await newer.status())
            await scheduler.stop(cancel_running=True)
            return states

    assert asyncio.run(main())[0] == "cancelled"


def test_a_table_shows_ids_by_beginnings_that_tell_them_apart(run: Run, stored: Stored) -> None:
    result = run("job", "list", "--url", "jobs.db")
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    assert len(rows) == 5
    for row, whole in zip(
        rows, [stored.blocked, stored.ready, stored.delayed, stored.failed, stored.done], strict=True
    ):
        assert whole.startswith(row[0])
        assert json.loads(run("job", "show", row[0], "--url", "jobs.db", "--json").stdout)["id"] == whole
    assert "no luck" in result.stdout


def test_what_a_list_shows_of_an_id_no_other_job_has_either_listed_or_not(run: Run, app: Path) -> None:
    for job_id in ("019ad7c1-aaaa-1", "019ad7c1-aaab-1", "nightly", "abcdefghijklm"):
        assert run("submit", "-a", "app.py", "add", "1", "--job-id", job_id, "--tag", job_id).exit_code == 0

    def shown(*options: str) -> list[str]:
        return [
            line.split()[0]
            for line in run("job", "list", "--url", "jobs.db", *options).stdout.splitlines()[1:]
        ]

    assert shown() == ["abcdefgh", "nightly", "019ad7c1-aaab", "019ad7c1-aaaa"]
    assert shown("--tag", "019ad7c1-aaaa-1") == ["019ad7c1-aaaa"]
    assert shown("-n", "1") == ["abcdefgh"]


def test_a_table_of_more_ids_than_anybody_types_has_them_whole(
    run: Run, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ids, "MOST_SHORTENED", 4)
    assert stored.done in run("job", "list", "--url", "jobs.db").stdout
    assert stored.done not in run("job", "list", "--url", "jobs.db", "--status", "completed").stdout


@pytest.mark.parametrize(
    "command",
    [
        ("job", "list"),
        ("job", "show", "x"),
        ("queue", "list"),
        ("queue", "pause", "default"),
        ("schedule", "list"),
        ("workers", "list"),
        ("explain", "--queue", "default"),
        ("db", "prune"),
        ("job", "cancel", "--status", "ready", "-y"),
    ],
    ids=" ".join,
)
def test_a_store_that_is_not_there_is_not_made_by_asking_it(
    run: Run, folder: Path, command: tuple[str, ...]
) -> None:
    result = run(*command, "--url", "mistyped.db")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "mistyped.db is not there: is it the path that the workers use?" in result.stderr
    assert [path.name for path in folder.iterdir()] == ["pyproject.toml"]


def test_a_file_of_another_program_is_left_as_it_was_by_asking_it(run: Run, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "other.db")) as sql:
        sql.executescript("CREATE TABLE t (x)")
    before = (folder / "other.db").read_bytes()
    result = run("job", "list", "--url", "other.db")
    assert result.exit_code == 5
    assert "other.db holds no store" in result.stderr
    assert (folder / "other.db").read_bytes() == before


def test_an_application_has_no_store_until_it_is_used(run: Run, app: Path, folder: Path) -> None:
    assert run("job", "list", "-a", "app.py").exit_code == 5
    assert not (folder / "jobs.db").exists()
    assert run("submit", "-a", "app.py", "add", "1").exit_code == 0
    assert run("job", "list", "-a", "app.py").exit_code == 0


def test_a_change_that_nobody_can_be_asked_about_asks_for_yes(run: Run, stored: Stored) -> None:
    result = run("job", "cancel", "--status", "ready", "--url", "jobs.db", stdin="")
    assert result.exit_code == 2
    assert "say --yes for it; nothing was changed" in result.stderr
    assert listed(run, "--status", "ready") == [stored.ready]


def is_awake(program: subprocess.Popen[bytes]) -> bool:
    """Whether it still does something after a moment, as far as the system tells."""
    with suppress(subprocess.TimeoutExpired):
        program.wait(0.2)
    stat = Path(f"/proc/{program.pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "R"


def test_one_ctrl_c_ends_a_question(folder: Path, stored: Stored) -> None:
    main, terminal = os.openpty()
    program = subprocess.Popen(
        [sys.executable, "-m", "betimes", "job", "cancel", "--status", "ready", "--url", "jobs.db"],
        stdin=terminal,
        stderr=terminal,
        stdout=subprocess.DEVNULL,
        cwd=folder,
    )
    os.close(terminal)
    try:
        said = b""
        while b"[y/N]" not in said:
            said += os.read(main, 1000)
        while is_awake(program):  # a signal just before the system call that reads would not interrupt it
            pass
        program.send_signal(signal.SIGINT)
        assert program.wait(60) == 130
    finally:
        program.kill()
        program.wait()
        os.close(main)


def test_a_change_of_more_jobs_than_are_under_way_at_a_time_gets_through_all(
    run: Run, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "AT_ONCE", 3)
    lines = "".join(f"[{number}]\n" for number in range(8))
    made = run("submit", "-a", "app.py", "add", "--stdin", stdin=lines).stdout.split()
    done = json.loads(run("job", "cancel", "--task", "app.add", "-y", "--json", "--url", "jobs.db").stdout)
    assert [each["id"] for each in done] == made[::-1]
    assert {each["outcome"] for each in done} == {"cancelled"}


def test_a_beginning_that_several_ids_share_is_refused_with_their_names(run: Run, stored: Stored) -> None:
    result = run("job", "show", stored.done[:6], "--url", "jobs.db")
    assert result.exit_code == 4
    assert stored.done in result.stderr
    assert "write more" in result.stderr


def test_a_job_that_is_not_there_is_said_so(run: Run, stored: Stored) -> None:
    result = run("job", "show", "nonesuch", "--url", "jobs.db")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "nonesuch" in result.stderr


def test_a_job_is_shown_with_its_attempts_its_log_and_why(run: Run, stored: Stored) -> None:
    result = run("job", "show", stored.failed, "--url", "jobs.db")
    assert result.exit_code == 0
    for text in (stored.failed, "ValueError: no luck", "Traceback", "attempt 1", "It ended FAILED"):
        assert text in result.stdout
    shown = json.loads(run("job", "show", stored.failed, "--url", "jobs.db", "--json").stdout)
    assert (shown["status"], shown["error"]["message"]) == ("failed", "no luck")


def test_a_log_of_a_job_that_wrote_none_is_empty(run: Run, stored: Stored) -> None:
    for options in ((), ("--follow",), ("--json",)):
        result = run("job", "logs", stored.done, "--url", "jobs.db", *options)
        assert (result.exit_code, result.stdout) == (0, "")


def test_a_log_is_followed_until_the_job_has_ended(run: Run, app: Path) -> None:
    app.write_text(
        'from betimes import Context, Scheduler\nscheduler = Scheduler("jobs.db")\n'
        "@scheduler.task\ndef say(ctx: Context) -> None:\n"
        "    ctx.log.info('first')\n    ctx.log.info('second')\n"
    )
    job_id = run("submit", "-a", "app.py", "say").stdout.strip()
    assert run("worker", "app.py", "--burst").exit_code == 0
    result = run("job", "logs", job_id[:-2], "-u", "jobs.db", "-f")
    assert [line.split("  ")[1] for line in result.stdout.splitlines()] == ["first", "second"]
    lines = run("job", "logs", job_id, "-u", "jobs.db", "--json").stdout.splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["first", "second"]


def test_jobs_are_taken_back_by_id(run: Run, stored: Stored) -> None:
    result = run("job", "retry", stored.failed, "--url", "jobs.db")
    assert result.exit_code == 0, result.stderr
    assert stored.failed in listed(run, "--status", "ready")


def test_what_cannot_be_done_to_one_of_several_jobs_is_said_of_that_one(run: Run, stored: Stored) -> None:
    result = run("job", "retry", stored.ready, stored.failed, "--url", "jobs.db", "--json")
    assert result.exit_code == 7
    outcomes = {each["id"]: each for each in json.loads(result.stdout)}
    assert outcomes[stored.failed]["is_done"]
    assert not outcomes[stored.ready]["is_done"]
    assert "not finished" in outcomes[stored.ready]["outcome"] or "READY" in outcomes[stored.ready]["outcome"]


def test_a_change_of_many_is_shown_first_and_asked_about(run: Run, stored: Stored) -> None:
    many = ("job", "cancel", "--queue", "elsewhere", "--url", "jobs.db")
    dry = run(*many, "--dry-run", "--json")
    assert {each["id"] for each in json.loads(dry.stdout)} == {stored.ready, stored.blocked}
    assert listed(run, "--status", "ready") == [stored.ready]
    refused = run(*many, stdin="n\n")
    assert refused.exit_code == 1
    assert listed(run, "--status", "ready") == [stored.ready]
    assert run(*many, stdin="y\n").exit_code == 0
    assert listed(run, "--queue", "elsewhere", "--status", "cancelled") == [stored.blocked, stored.ready]
    assert run(*many, "--yes").stdout == "no such job\n"


def test_by_options_only_jobs_that_failed_are_taken_back(run: Run, stored: Stored) -> None:
    result = run("job", "retry", "--queue", "default", "--yes", "--url", "jobs.db", "--json")
    assert [each["id"] for each in json.loads(result.stdout)] == [stored.failed]
    again = run("job", "retry", "--queue", "default", "-s", "completed", "-y", "-u", "jobs.db", "--json")
    assert [each["id"] for each in json.loads(again.stdout)] == [stored.done]


def test_jobs_are_named_by_id_or_by_options_but_not_by_both_or_neither(run: Run, stored: Stored) -> None:
    for arguments in ((), (stored.done, "--task", "add")):
        result = run("job", "cancel", *arguments, "--url", "jobs.db", "--yes")
        assert result.exit_code == 2
    assert listed(run, "--status", "cancelled") == []


def test_a_cancel_answers_what_it_did(run: Run, stored: Stored) -> None:
    assert "cancelled" in run("job", "cancel", stored.delayed, "-u", "jobs.db").stdout
    late = run("job", "cancel", stored.done, "-u", "jobs.db")
    assert (late.exit_code, "finished" in late.stdout) == (7, True)


def test_jobs_in_the_memory_of_another_process_cannot_be_seen(run: Run, folder: Path) -> None:
    (folder / "app.py").write_text("from betimes import Scheduler\nscheduler = Scheduler()\n")
    result = run("job", "list", "--app", "app.py")
    assert result.exit_code == 3
    assert "memory" in result.stderr


def test_which_store_has_to_be_said(run: Run, folder: Path) -> None:
    result = run("job", "list")
    assert result.exit_code == 2
    assert "--url" in result.stderr
