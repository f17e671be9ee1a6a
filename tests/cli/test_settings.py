"""Settings from pyproject.toml: found, checked whole, and weaker than flags and the environment."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from betimes.cli.exits import Exit
from betimes.cli.main import COMMANDS
from betimes.cli.settings import Settings, defaults_of, read_settings

Run = Callable[..., Result]


@click.command()
@click.option("-c", "--concurrency", type=int)
@click.option("--ratio", type=float)
@click.option("--dry-run", is_flag=True)
@click.option("-q", "--queue", multiple=True)
@click.option("--kind", type=click.Choice(["a", "b"]))
@click.option("--secret", hidden=True)
@click.argument("app", required=False)
@click.argument("other", required=False)
def command(**_given: object) -> None: ...


def defaults(text: str, folder: Path, command: click.Command = command) -> dict[str, object]:
    (folder / "pyproject.toml").write_text(text)
    return defaults_of(read_settings(["go", "group"], folder), command, "go")


def test_a_commands_table_gives_its_options_by_name(tmp_path: Path) -> None:
    text = """
    [tool.betimes.go]
    concurrency = 5
    ratio = 2
    dry-run = true
    queue = ["a", "b"]
    kind = "b"
    """
    assert defaults(text, tmp_path) == {
        "concurrency": 5,
        "ratio": 2,
        "dry_run": True,
        "queue": ["a", "b"],
        "kind": "b",
    }


def test_one_text_will_do_where_several_may_stand(tmp_path: Path) -> None:
    assert defaults('[tool.betimes.go]\nqueue = "low"', tmp_path) == {"queue": ["low"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.betimes]\nap = 'x'", r"\[tool.betimes\] has an unknown key 'ap'; did you mean 'app'\?"),
        ("[tool.betimes]\nzzz = 'x'", r"unknown key 'zzz'; its keys are app, url, go, group"),
        ("[tool.betimes]\napp = 5", r"app in \[tool.betimes\] is 5; it is text"),
        ("[tool.betimes]\nurl = ' '", r"url in \[tool.betimes\] is ' '; it is text"),
        ("[tool.betimes]\ngo = 5", r"go in \[tool.betimes\] is no table: write \[tool.betimes.go\]"),
        ("[tool]\nbetimes = 5", r"tool.betimes is no table: write \[tool.betimes\]"),
        (
            "[tool.betimes.go]\nconcurency = 5",
            r"\[tool.betimes.go\] has an unknown key 'concurency'; did you mean 'concurrency'",
        ),
        ("[tool.betimes.go]\nsecret = '5'", "unknown key 'secret'"),
        ("[tool.betimes.go]\nother = '5'", "unknown key 'other'"),
        ("[tool.betimes.go]\napp = '5'", "unknown key 'app'"),
        ("[tool.betimes.go]\nconcurrency = 'many'", "concurrency in .* is 'many'; it is a whole number"),
        ("[tool.betimes.go]\nconcurrency = 2.5", r"is 2.5; it is a whole number"),
        ("[tool.betimes.go]\nconcurrency = true", "is True; it is a whole number"),
        ("[tool.betimes.go]\nratio = '1'", "is '1'; it is a number or a whole number"),
        ("[tool.betimes.go]\ndry_run = 'yes'", "is 'yes'; it is true or false"),
        ("[tool.betimes.go]\nqueue = ['a', 5]", "queue in .* is 5; it is text"),
        ("[tool.betimes.go]\nkind = 'c'", "kind in .* is 'c': .* is not one of"),
        ("[tool.betimes.go", "cannot be read"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_file_the_key_and_what_to_write(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(click.ClickException, match=message) as raised:
        defaults(text, tmp_path)
    assert raised.value.exit_code == Exit.SETTINGS
    assert str(tmp_path / "pyproject.toml") in raised.value.message


def test_a_groups_table_has_one_for_each_of_its_commands(tmp_path: Path) -> None:
    group = click.Group("group", {"go": command})
    (tmp_path / "pyproject.toml").write_text("[tool.betimes.group.go]\nconcurrency = 5")
    settings = read_settings(["group"], tmp_path)
    assert defaults_of(settings, group, "group") == {"go": {"concurrency": 5}}
    for text, message in (
        ("[tool.betimes.group]\ngo = 1", r"go in \[tool.betimes.group\] is no table"),
        ("[tool.betimes.group.og]\nx = 1", "unknown key 'og'; its keys are go"),
        ("[tool.betimes.group.go]\nx = 1", r"\[tool.betimes.group.go\] has an unknown key 'x'"),
    ):
        (tmp_path / "pyproject.toml").write_text(text)
        with pytest.raises(click.ClickException, match=message):
            defaults_of(read_settings(["group"], tmp_path), group, "group")


def test_the_nearest_file_with_a_table_counts(tmp_path: Path) -> None:
    inner = tmp_path / "one" / "two"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.betimes]\napp = 'outer'")
    (tmp_path / "one" / "pyproject.toml").write_text("[project]\nname = 'x'")
    found = read_settings(COMMANDS, inner)
    assert found == Settings({"app": "outer"}, tmp_path / "pyproject.toml")


def test_flags_go_before_the_environment_and_that_before_the_file(app: Path, run: Run) -> None:
    (app.parent / "pyproject.toml").write_text(
        "[tool.betimes]\napp = 'nowhere'\n[tool.betimes.submit]\nqueue = 'a'"
    )
    assert run("submit", "add", "1").exit_code == Exit.SETTINGS
    environment = {"BETIMES_APP": "app", "BETIMES_SUBMIT_QUEUE": "b"}
    ids = [
        run("submit", "--app", "app.py", "add", "1").stdout.strip(),
        run("submit", "add", "1", env=environment).stdout.strip(),
        run("submit", "add", "1", "--queue", "c", env=environment).stdout.strip(),
    ]
    listed = json.loads(run("job", "list", "--url", "jobs.db", "--json").stdout)
    assert {each["id"]: each["queue"] for each in listed} == dict(zip(ids, "abc", strict=True))


def test_what_is_shared_may_stand_before_the_command_or_behind_it(app: Path, run: Run) -> None:
    (app.parent / "pyproject.toml").write_text("[tool.betimes]\napp = 'nowhere'\nurl = 'none.db'")
    environment = {"BETIMES_APP": "nowhere2", "BETIMES_URL": "none2.db"}
    assert run("--app", "app.py", "submit", "add", "1", env=environment).exit_code == 0
    for arguments in (
        ("--url", "jobs.db", "job", "list"),
        ("job", "list", "--url", "jobs.db"),
        ("-u", "none3.db", "job", "list", "-u", "jobs.db"),
        ("job", "list", "--app", "app.py"),  # written here, it is nearer than a store that is not
    ):
        assert len(json.loads(run(*arguments, "--json", env=environment).stdout)) == 1
    worker = run("worker", "--app", "nowhere3", env=environment)
    assert "there is no module 'nowhere3'" in worker.stderr
    worker = run("--app", "nowhere3", "worker", "nowhere4", env=environment)
    assert "there is no module 'nowhere4'" in worker.stderr
    assert "nowhere2" in run("worker", env=environment).stderr
    assert "there is no module 'nowhere'" in run("worker").stderr


def test_a_file_that_is_named_there_counts_from_there(
    app: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (app.parent / "pyproject.toml").write_text("[tool.betimes]\napp = 'app.py'\nurl = 'jobs.db'")
    assert run("submit", "add", "1").exit_code == 0
    (app.parent / "below").mkdir()
    monkeypatch.chdir(app.parent / "below")
    assert len(json.loads(run("job", "list", "--json").stdout)) == 1
    assert run("submit", "add", "1", "--dry-run").stdout == 'app.add {"a":1}\n'


def test_a_wrong_setting_is_one_line_and_a_code(app: Path, run: Run) -> None:
    (app.parent / "pyproject.toml").write_text("[tool.betimes.worker]\nconcurency = 5")
    result = run("worker", "app.py", "--burst")
    assert result.exit_code == Exit.SETTINGS
    assert result.stderr.count("\n") == 1
    assert run("worker", "--help").exit_code == 0
    assert "did you mean 'concurrency'?" in result.stderr
    assert run("submit", "app.add", "1").exit_code == 0  # another command's table is its own affair
