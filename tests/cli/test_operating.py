"""`betimes schedule | workers | queue | explain | doctor …`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.cli.stored import Stored, fill

Run = Callable[..., Result]
URL = ("--url", "jobs.db")


@pytest.fixture
def stored(folder: Path) -> Stored:
    return fill(folder / "jobs.db")


def test_schedules_are_listed_with_what_they_are(run: Run, stored: Stored) -> None:
    (shown,) = json.loads(run("schedule", "list", *URL, "--json").stdout)
    assert (shown["id"], shown["tz"], shown["paused"]) == ("nightly", "Europe/Berlin", False)
    table = run("schedule", "list", *URL).stdout
    assert "At 02:30 every day" in table


def test_the_next_fires_of_all_schedules_are_listed_in_order(run: Run, stored: Stored) -> None:
    fires = json.loads(run("schedule", "next", *URL, "-n", "4", "--json").stdout)
    assert [fire["schedule"] for fire in fires] == ["nightly"] * 4
    assert sorted(fire["at"] for fire in fires) == [fire["at"] for fire in fires]
    assert all("T02:30:00" in fire["local"] for fire in fires)
    run("schedule", "pause", "nightly", *URL)
    assert json.loads(run("schedule", "next", *URL, "--json").stdout) == []


def test_a_schedule_is_previewed(run: Run, stored: Stored) -> None:
    shown = json.loads(run("schedule", "preview", "nightly", *URL, "-n", "3", "--json").stdout)
    assert len(shown["next_fires"]) == 3
    assert run("schedule", "preview", "nonesuch", *URL).exit_code == 4


def test_a_cron_expression_is_previewed_without_a_store(run: Run, folder: Path) -> None:
    result = run("schedule", "preview", "30 2 * * *", "--tz", "Europe/Berlin", "-n", "2")
    assert result.exit_code == 0
    assert "the clock skips 02:00" in result.stdout
    assert result.stdout.count("02:30:00") == 2
    assert not list(folder.glob("*.db"))
    wrong = run("schedule", "preview", "61 2 * * *")
    assert (wrong.exit_code, "minute" in wrong.stderr) == (2, True)


def test_a_schedule_is_paused_and_resumed(run: Run, stored: Stored) -> None:
    assert "paused" in run("schedule", "pause", "nightly", *URL).stdout
    assert json.loads(run("schedule", "list", *URL, "--json").stdout)[0]["paused"]
    assert "next fire: 20" in run("schedule", "resume", "nightly", *URL).stdout
    assert not json.loads(run("schedule", "list", *URL, "--json").stdout)[0]["paused"]
    assert run("schedule", "pause", "nonesuch", *URL).exit_code == 4


def test_a_schedule_is_run_now_by_its_application(run: Run, folder: Path) -> None:
    (folder / "app.py").write_text(
        "from betimes import Scheduler, every\nscheduler = Scheduler('jobs.db')\n"
        "@scheduler.task(schedule=every('1d'))\nasync def tick() -> None: ...\n"
    )
    assert run("worker", "app.py", "--burst").exit_code == 0
    job_id = run("schedule", "trigger", "app.tick", "--app", "app.py").stdout.strip()
    assert run("worker", "app.py", "--burst").exit_code == 0
    shown = json.loads(run("job", "show", job_id, *URL, "--json").stdout)
    assert (shown["status"], shown["schedule"]) == ("completed", "app.tick")
    without = run("schedule", "trigger", "app.tick")
    assert (without.exit_code, "application" in without.stderr) == (2, True)


def test_workers_are_listed_while_they_run(run: Run, app: Path, started: Callable[..., object]) -> None:
    assert run("worker", "app.py", "--burst").exit_code == 0
    assert json.loads(run("workers", "list", *URL, "--json").stdout) == []
    program = started("worker", "app.py", "-q", "mail", "--concurrency", "3")
    program.wait_for("mail")  # type: ignore[attr-defined]
    (row,) = json.loads(run("workers", "list", *URL, "--json").stdout)
    assert (row["is_alive"], row["queues"], row["concurrency"], row["running"]) == (True, ["mail"], 3, 0)
    assert row["pid"] == program.process.pid  # type: ignore[attr-defined]
    assert "0 of 3" in run("workers", "list", *URL).stdout
    program.kill()  # type: ignore[attr-defined]
    (row,) = json.loads(run("workers", "list", *URL, "--json").stdout)
    assert not row["is_alive"], "its lease holds on, but its process is gone"


def test_queues_are_listed_with_why_they_wait(run: Run, stored: Stored) -> None:
    queues = {each["queue"]: each for each in json.loads(run("queue", "list", *URL, "--json").stdout)}
    assert set(queues) == {"default", "elsewhere"}
    assert (queues["elsewhere"]["ready"], queues["elsewhere"]["blocked"]) == (1, 1)
    assert queues["default"]["delayed"] == 1
    assert "elsewhere" in run("queue", "list", *URL).stdout


def test_a_queue_is_paused_and_resumed(run: Run, stored: Stored) -> None:
    assert run("queue", "pause", "elsewhere", "other", *URL).exit_code == 0
    assert "Queue 'elsewhere' is paused" in run("explain", stored.ready, *URL).stdout
    assert "other" in run("queue", "list", *URL).stdout
    assert run("queue", "resume", "elsewhere", "other", *URL).exit_code == 0
    assert "is paused" not in run("explain", stored.ready, *URL).stdout


def test_a_job_a_schedule_and_a_queue_are_explained(run: Run, stored: Stored) -> None:
    assert "It is not due before" in run("explain", stored.delayed, *URL).stdout
    assert "Nobody runs jobs" in run("explain", "--schedule", "nightly", *URL).stdout
    at = run("explain", "--schedule", "nightly", "--at", "2020-01-01T00:00Z", *URL)
    assert "added later" in at.stdout or "was added" in at.stdout
    assert "elsewhere" in run("explain", "--queue", "elsewhere", *URL).stdout
    codes = [
        reason["code"]
        for reason in json.loads(run("explain", stored.delayed, *URL, "--json").stdout)["reasons"]
    ]
    assert "not_due" in codes


def test_one_thing_is_explained_at_a_time(run: Run, stored: Stored) -> None:
    for wrong in (
        (),
        (stored.done, "--queue", "default"),
        ("--at", "2020-01-01T00:00Z", "--queue", "default"),
    ):
        assert run("explain", *wrong, *URL).exit_code == 2
    assert run("explain", "nonesuch", *URL).exit_code == 4
    assert run("explain", "--schedule", "nonesuch", *URL).exit_code == 4


def test_a_doctor_says_what_is_wrong_and_how_bad(run: Run, stored: Stored, folder: Path) -> None:
    result = run("doctor", *URL, "--json")
    checkup = json.loads(result.stdout)
    assert result.exit_code == {"ok": 0, "note": 0, "warning": 1, "error": 2}[checkup["worst"]]
    codes = {finding["code"] for finding in checkup["checkup"]["findings"]}
    assert {"python", "sqlite", "journal", "schema", "permissions", "workers"} <= codes
    (folder / "broken.db").write_bytes(b"nothing of this is a database" * 100)
    broken = run("doctor", "--url", "broken.db")
    assert broken.exit_code == 2
    assert (folder / "broken.db").read_bytes().startswith(b"nothing of this")
