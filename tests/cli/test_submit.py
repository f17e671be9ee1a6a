"""`betimes submit`: which task is meant, what its arguments are, and how the job came out."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from click.testing import Result
from tests.cli.processes import Program

from betimes.cli.calls import app_of, name_of_task, read_text
from betimes.cli.exits import Exit, Failure
from betimes.errors import UnknownTask

Run = Callable[..., Result]
Start = Callable[..., Program]


def arguments_of(result: Result) -> Any:
    """What a dry run would have submitted."""
    assert result.exit_code == 0, result.stderr
    (job,) = json.loads(result.stdout)
    return job["arguments"]


def job_of(run: Run, job_id: str) -> dict[str, Any]:
    jobs = json.loads(run("job", "list", "--url", "jobs.db", "--json").stdout)
    found: dict[str, Any] = next(each for each in jobs if each["id"] == job_id)
    return found


def test_the_whole_id_stands_alone_on_stdout(app: Path, run: Run) -> None:
    result = run("submit", "app.add", "1", "2")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert str(UUID(result.stdout.strip())) == result.stdout.strip()
    job = job_of(run, result.stdout.strip())
    assert (job["task"], job["status"]) == ("app.add", "ready")


@pytest.mark.parametrize(
    "command",
    [
        ("app.add", "1"),
        ("app:add", "1"),
        ("app.py:add", "1"),
        ("--app", "app", "add", "1"),
        ("add", "1", "--app", "app:scheduler"),
        ("-a", "app.py", "app.add", "a=1"),
    ],
)
def test_an_application_is_named_or_told_by_the_task(app: Path, run: Run, command: tuple[str, ...]) -> None:
    assert arguments_of(run("submit", *command, "--dry-run", "--json")) == {"a": 1}


def test_a_package_tells_its_application(folder: Path, app: Path, run: Run) -> None:
    (folder / "shop").mkdir()
    (folder / "shop" / "__init__.py").touch()
    app.rename(folder / "shop" / "jobs.py")
    assert arguments_of(run("submit", "shop.jobs.add", "1", "--dry-run", "--json")) == {"a": 1}
    assert app_of("nowhere.add") is None
    assert app_of("add") is None
    assert app_of(":add") is None


def test_a_task_may_be_named_by_an_end_that_no_other_has() -> None:
    names = ["shop.add", "shop.send", "mail.send", "daily"]
    assert name_of_task(names, "add") == "shop.add"
    assert name_of_task(names, "mail.send") == "mail.send"
    assert name_of_task(names, "daily") == "daily"
    with pytest.raises(
        Failure, match=r"several tasks end with 'send': mail.send, shop.send; write more of it"
    ):
        name_of_task(names, "send")
    with pytest.raises(UnknownTask, match=r"no task 'ad'; did you mean 'shop.add'\?") as raised:
        name_of_task(names, "ad")
    assert raised.value.task == "ad"
    with pytest.raises(UnknownTask, match=r"no task 'zzz'; it has none"):
        name_of_task([], "zzz")


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1", int, 1),
        ("-1.5", float, -1.5),
        ("1", float, 1.0),
        ("1", str, "1"),
        ("hello", str, "hello"),
        ('"a=b"', str, "a=b"),
        ("null", str, "null"),
        ("null", str | None, None),
        ("true", bool, True),
        ("hello", Any, "hello"),
        ("[1, 2]", Any, [1, 2]),
        ("01", Any, "01"),
        ('{"a": 1}', dict[str, int], {"a": 1}),
        ("2026-03-01T09:00:00Z", datetime, datetime(2026, 3, 1, 9, tzinfo=UTC)),
        ("1.10", Decimal, Decimal("1.10")),
        ("a/b", Path, Path("a/b")),
        ("12", Path, Path("12")),
    ],
)
def test_a_text_is_json_where_that_fits_and_else_itself(text: str, kind: Any, value: object) -> None:
    assert read_text(text, kind) == value
    assert type(read_text(text, kind)) is type(value)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("one", int, "Expected `int`, got `str`"),
        ("1.5", int, "Expected `int`, got `float`"),
        ('["a"]', list[int], r"Expected `int`, got `str` - at `\$\[0\]`"),
        ("maybe", bool, "Expected `bool`, got `str`"),
        ("2026-03-01T9", datetime, "Invalid RFC3339 encoded datetime"),
    ],
)
def test_what_fits_neither_way_says_what_was_expected(text: str, kind: Any, message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        read_text(text, kind)


@pytest.mark.parametrize(
    ("typed", "arguments"),
    [
        (("app.add", "-5", "b=-6"), {"a": -5, "b": -6}),
        (("app.add", "--priority", "-5", "-5"), {"a": -5}),
        (("app.add", "--", "-5"), {"a": -5}),
        (("app.greet", "5", "loud=true"), {"name": "5", "loud": True}),
        (("app.greet", "a b=c"), {"name": "a b=c"}),
        (("app.greet", '"a=c"'), {"name": "a=c"}),
        (("app.greet", "name=a=b"), {"name": "a=b"}),
        (("app.wait", "1"), {"seconds": 1.0}),
    ],
)
def test_arguments_are_typed_by_position_and_by_name(
    app: Path, run: Run, typed: tuple[str, ...], arguments: dict[str, object]
) -> None:
    assert arguments_of(run("submit", "--dry-run", "--json", *typed)) == arguments


@pytest.mark.parametrize(
    ("typed", "code", "message"),
    [
        (("app.add", "1", "b=x"), Exit.USAGE, "add() argument `b`: Expected `int`, got `str`"),
        (("app.add", "1", "c=1"), Exit.USAGE, "app.add has no argument 'c'; its arguments are a, b"),
        (
            ("app.greet", "1", "lod=1"),
            Exit.USAGE,
            "did you mean 'loud'? (as a text, write it in JSON: '\"lod=1\"')",
        ),
        (("app.add", "a=1", "2"), Exit.USAGE, "'2' stands behind an argument with a name: put it before"),
        (("app.add", "a=1", "a=2"), Exit.USAGE, "the argument 'a' is there twice"),
        (("app.add",), Exit.USAGE, "missing 1 required positional argument: 'a'"),
        (("app.add", "1", "2", "3"), Exit.USAGE, "takes"),
        (("app.ad", "1"), Exit.UNKNOWN, "no task 'ad'; did you mean 'app.add'?"),
        (("nowhere.add", "1"), Exit.USAGE, "which application? Name it"),
        (("--app", "nowhere", "add", "1"), Exit.SETTINGS, "there is no module 'nowhere'"),
        (("app.add", "1", "--priority", "much"), Exit.USAGE, "or one of low, medium, high, critical"),
        (("app.add", "1", "--priority", "1001"), Exit.USAGE, "priority must be within"),
        (("app.add", "1", "--timeout", "0"), Exit.USAGE, "timeout must be more than zero"),
        (("app.add", "1", "--delay", "soon"), Exit.USAGE, "is no duration"),
        (("app.add", "1", "--run-at", "2027-01-01"), Exit.USAGE, "add one, such as 2027-01-01T09:00+01:00"),
        (("app.add", "1", "--run-at", "noon"), Exit.USAGE, "is no instant"),
        (("app.add", "1", "--delay", "1s", "--run-at", "2027-01-01T00:00Z"), Exit.USAGE, "pass one of them"),
        (("app.add", "1", "--replace"), Exit.USAGE, "only together with job_id"),
        (("app.add", "1", "--depends-on", "zzz"), Exit.UNKNOWN, "there is no job 'zzz'"),
        (("app.add", "1", "--prioritty", "1"), Exit.USAGE, "No such option"),
        (("app.add", "1", "--stdin"), Exit.USAGE, "with --stdin the arguments are read from stdin"),
        (("app.add", "--stdin", "--key", "k"), Exit.USAGE, "--key is for one job"),
        (("app.add", "--stdin", "--wait"), Exit.USAGE, "--wait is for one job"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_submitted(
    app: Path, run: Run, typed: tuple[str, ...], code: Exit, message: str
) -> None:
    result = run("submit", *typed, stdin="[1]")
    assert result.exit_code == code, result.stderr
    assert message in result.stderr
    assert result.stdout == ""
    assert (
        not (app.parent / "jobs.db").exists()
        or run("job", "list", "-u", "jobs.db", "--json").stdout == "[]\n"
    )


def test_options_become_what_using_takes(app: Path, run: Run) -> None:
    first = run("submit", "app.add", "1", "--job-id", "first").stdout.strip()
    options = (
        "--priority high --queue slow --key k --key-for 1h --job-id second --depends-on fir --timeout 5s "
        "--retry 3 --expires 2h --tag a --tag b --run-at 2036-01-01T00:00Z"
    )
    result = run("submit", "app.add", "1", *options.split())
    assert result.exit_code == 0, result.stderr
    job = job_of(run, result.stdout.strip())
    assert first == "first"
    assert (job["id"], job["key"], job["queue"], job["priority"]) == ("second", "k", "slow", 2)
    assert (job["depends_on"], job["tags"], job["status"]) == (["first"], ["a", "b"], "blocked")
    assert datetime.fromisoformat(job["run_at"]) == datetime(2036, 1, 1, tzinfo=UTC)
    expires_in = datetime.fromisoformat(job["expires_at"]) - datetime.fromisoformat(job["submitted_at"])
    assert expires_in == timedelta(hours=2)
    again = run("submit", "app.add", "1", "--key", "k")
    assert again.stdout.strip() == "second"
    refused = run("submit", "app.add", "1", "--job-id", "first")
    assert refused.exit_code == Exit.REFUSED
    assert run("submit", "app.add", "1", "--job-id", "first", "--replace", "--json").exit_code == 0


def test_low_is_a_priority_too(app: Path, run: Run) -> None:
    job_id = run("submit", "app.add", "1", "--priority", "low").stdout.strip()
    assert job_of(run, job_id)["priority"] == 0


def test_jobs_in_memory_cannot_be_submitted_from_elsewhere(app: Path, run: Run) -> None:
    app.write_text(app.read_text().replace('"jobs.db"', '"memory:"'))
    result = run("submit", "app.add", "1")
    assert result.exit_code == Exit.SETTINGS
    assert "in the memory of the process" in result.stderr


LINES = '[1]\n\n{"a": 2, "b": 3}\n[4, 5]\n'


def test_each_line_of_stdin_is_a_job(app: Path, run: Run) -> None:
    result = run("submit", "app.add", "--stdin", "--tag", "t", stdin=LINES)
    assert result.exit_code == 0
    ids = result.stdout.split()
    assert len(ids) == 3
    assert all(job_of(run, job_id)["tags"] == ["t"] for job_id in ids)
    shown = json.loads(run("submit", "app.add", "--stdin", "--json", stdin=LINES).stdout)
    assert [each["task"] for each in shown] == ["app.add"] * 3


def test_a_dry_run_shows_what_would_be_submitted(app: Path, run: Run) -> None:
    result = run("submit", "app.add", "--stdin", "--dry-run", stdin=LINES)
    assert result.stdout.splitlines() == ['app.add {"a":1}', 'app.add {"a":2,"b":3}', 'app.add {"a":4,"b":5}']
    assert result.stderr == "3 to submit; nothing was submitted\n"
    assert not (app.parent / "jobs.db").exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1", "line 2 is no JSON"),
        ("7", "line 2 is neither a JSON array"),
        ('{"c": 1}', "line 2 add() got an unexpected keyword argument 'c'"),
        ('["x"]', "line 2 add() argument `a`: Expected `int`, got `str`; nothing was submitted"),
    ],
)
def test_one_wrong_line_and_nothing_is_submitted(app: Path, run: Run, line: str, message: str) -> None:
    result = run("submit", "app.add", "--stdin", stdin=f"[1]\n{line}\n")
    assert result.exit_code == Exit.USAGE
    assert message in result.stderr
    assert not (app.parent / "jobs.db").exists()


def test_no_lines_are_no_jobs(app: Path, run: Run) -> None:
    assert run("submit", "app.add", "--stdin", stdin="").stdout == ""


def test_the_result_of_a_job_is_waited_for(app: Path, run: Run, started: Start) -> None:
    worker = started("worker", "app.py")
    worker.wait_for("running until")
    good = run("submit", "app.greet", "you", "loud=true", "--wait")
    assert (good.exit_code, good.stdout) == (0, '"YOU"\n')
    assert str(UUID(good.stderr.strip())) == good.stderr.strip()
    shown = json.loads(run("submit", "app.add", "1", "--wait", "--json").stdout)
    assert (shown["status"], shown["result"]) == ("completed", 2)
    bad = run("submit", "app.fail", "--wait")
    assert (bad.exit_code, bad.stdout) == (Exit.NO, "")
    assert "ValueError: no luck" in bad.stderr
    shown = run("submit", "app.fail", "--wait", "--json")
    assert shown.exit_code == Exit.NO
    assert json.loads(shown.stdout)["status"] == "failed"


def test_a_wait_has_an_end(app: Path, run: Run) -> None:
    result = run("submit", "app.add", "1", "--wait-timeout", "10ms", "--json")
    assert result.exit_code == Exit.UNFINISHED
    assert json.loads(result.stdout)["status"] == "ready"
    assert "it goes on" in result.stderr
