"""`betimes crontab --check` explains each line, finds what is wrong, and runs nothing."""

from __future__ import annotations

import json
import os
import pwd
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from betimes.cli.crontab_files import MOST_BYTES, CrontabFiles, host_zone
from betimes.core.crontab_options import OPTIONS

Run = Callable[..., Result]

OWN = pwd.getpwuid(os.geteuid()).pw_name
DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "run-a-crontab.md"
IS_ROOT = os.geteuid() == 0

DEBIAN = f"""\
# The machine's own table; entries have a user column.
SHELL=/bin/sh
PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin

# m h dom mon dow user\tcommand
17 *\t* * *\t{OWN}\tcd / && run-parts --report /etc/cron.hourly
25 6\t* * *\t{OWN}\ttest -x /usr/sbin/anacron || {{ cd / && run-parts --report /etc/cron.daily; }}
52 6\t1 * *\t{OWN}\ttest -x /usr/sbin/anacron || {{ cd / && run-parts --report /etc/cron.monthly; }}
"""
PHP = f"""\
# A package's own file.
09,39 *     * * *     {OWN}   [ -x /usr/lib/php/sessionclean ] && /usr/lib/php/sessionclean
"""
CERTBOT = f"""\
MAILTO=root
0 */12 * * * {OWN} test -x /usr/bin/certbot -a \\! -d /run/systemd/system && perl -e 'sleep int(rand(43200))'
"""


@pytest.fixture
def system(folder: Path) -> Path:
    """A folder with `crontab` and `cron.d`, as a Debian machine has them under /etc."""
    (folder / "cron.d").mkdir()
    files = {
        "crontab": DEBIAN,
        "cron.d/php": PHP,
        "cron.d/certbot": CERTBOT,
        "cron.d/php.dpkg-old": "nonsense\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o644)
    return folder


def check(run: Run, *arguments: str) -> tuple[int, str]:
    result = run("crontab", "--check", "--tz", "Europe/Berlin", *arguments)
    return result.exit_code, result.stdout


def test_the_crontabs_of_a_debian_machine_are_explained(system: Path, run: Run) -> None:
    code, said = check(run, "--system", "crontab", "cron.d")
    assert code == 0
    assert "crontab:6  17 * * * *" in said
    assert "    At minute 17 of every hour, Europe/Berlin time." in said
    assert said.count("next: ") == 5
    assert said.splitlines()[-1] == (
        "5 entries and 0 problems; where no CRON_TZ holds, times are Europe/Berlin time"
    )
    assert "note: cron.d/certbot:1: no mail is sent" in said
    assert "dpkg-old" not in said


@pytest.mark.skipif(not Path("/etc/cron.d").is_dir(), reason="this machine has no /etc/cron.d")
def test_the_files_of_this_machine_are_read(folder: Path, run: Run) -> None:
    code, said = check(run, "--system", "/etc/cron.d")
    assert code in {0, 1}
    assert "where no CRON_TZ holds" in said


def test_a_problem_is_said_with_its_line_and_makes_the_exit_code_1(folder: Path, run: Run) -> None:
    (folder / "mine").write_text("@daily true\n0 0 30 2 * false\n5/15 * * * * x\n")
    code, said = check(run, "mine")
    assert code == 1
    assert "problem: mine:2: " in said
    assert "never fires" in said
    assert "problem: mine:3: " in said
    assert "write 5-59/15" in said
    assert "1 entry and 2 problems" in said


def test_what_may_surprise_is_said(folder: Path, run: Run) -> None:
    (folder / "mine").write_text("30 2 1,15 * sun date +%F\n")
    code, said = check(run, "mine")
    assert code == 0
    for words in ("the clock skips 02:00–03:00", "twice on", "either is enough", "before its first %"):
        assert words in said


def test_machines_get_json(folder: Path, run: Run) -> None:
    (folder / "mine").write_bytes(b"# betimes: name=b timeout=5m\n@daily caf\xe9%in\n@dayly x\nMAILTO=a\n")
    code, said = check(run, "--json", "mine")
    data = json.loads(said)
    assert code == 1
    (entry,) = data["entries"]
    assert (entry["id"], entry["line"], entry["schedule"], entry["timeout_s"]) == ("b", 2, "@daily", 300.0)
    assert (entry["command"], entry["reads"], entry["user"]) == ("caf\\udce9", "in\n", None)
    assert len(entry["next"]) == 3
    assert [(each["line"], each["text"]) for each in data["problems"]] == [(3, "@dayly x")]
    assert [each["line"] for each in data["notes"]] == [4]
    assert data["tz"] == "Europe/Berlin"


def test_users_are_looked_up(folder: Path, run: Run) -> None:
    other = "root" if not IS_ROOT else "nobody"
    text = f"@daily {OWN} true\n@daily no-such-user true\n@daily {other} true\n"
    (folder / "table").write_text(text)
    code, said = check(run, "--system", "table")
    assert code == 1
    assert "problem: table:2: there is no user 'no-such-user' on this machine" in said
    assert ("table:3: only root can run a command as" in said) is not IS_ROOT


def test_what_no_command_can_be_made_of_is_a_problem(folder: Path, run: Run) -> None:
    (folder / "mine").write_text("HOME=~/x\n@daily a\nHOME=/\n@daily b\n")
    code, said = check(run, "mine")
    assert code == 1
    assert "problem: mine:2: cwd is '~/x', and nothing expands '~' here" in said
    assert "1 entry and 1 problem" in said


def test_what_is_missing_is_said(folder: Path, run: Run) -> None:
    assert run("crontab").exit_code == 2
    assert "which crontab?" in run("crontab").stderr
    (folder / "mine").write_text("@daily true\n")
    assert "--json goes with --check" in run("crontab", "--json", "mine").stderr
    result = run("crontab", "")
    assert result.exit_code == 2
    assert "the name is empty" in result.stderr
    code, said = check(run, "nowhere")
    assert code == 1
    assert "problem: nowhere: it cannot be read (No such file or directory)" in said
    result = run("crontab", "nowhere")
    assert result.exit_code == 3
    assert (
        result.stderr == "Error: nowhere: it cannot be read (No such file or directory): nothing of it runs\n"
    )
    assert "did you mean Europe/Berlin" in run("crontab", "--check", "--tz", "Berlin", "mine").stderr


def test_a_store_that_cannot_be_made_is_said(folder: Path, run: Run) -> None:
    (folder / "mine").write_text("@daily true\n")
    result = run("crontab", "mine", "--store", "mine/jobs.db")
    assert result.exit_code == 3
    assert "say where with --store" in result.stderr


def test_the_crontab_of_the_documents_is_right(folder: Path, run: Run) -> None:
    text = (DOCUMENT.read_text("utf-8")).split("```text crontab\n")[1].split("```")[0]
    (folder / "shop.crontab").write_text(text)
    code, said = check(run, "shop.crontab")
    assert code == 0
    assert "    backup: overlap=skip, missed=latest, timeout=1h, up to 3 attempts\n" in said
    assert "4 entries and 0 problems" in said


def test_the_documents_name_every_option() -> None:
    rows = re.findall(r"^\| `(\w+)=", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(OPTIONS)


# --- files


def files(*paths: Path, system: bool = False) -> CrontabFiles:
    return CrontabFiles(paths, system=system, tz="UTC")


def test_a_glance_shows_every_change(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("@daily true\n")
    found = files(tmp_path)
    first = found.look()
    assert found.look() == first
    (tmp_path / "b").write_text("")
    second = found.look()
    assert second != first
    (tmp_path / "a").write_text("@daily false\n")
    assert found.look() != second
    assert files(tmp_path / "nowhere").look()[0][2] == -1


def test_each_file_counts_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("@daily true\n")
    assert len(files(tmp_path, tmp_path / "a").read().lines) == 1


def test_a_file_that_cannot_be_read_any_more_goes_on_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("@daily true\n")
    found = files(path)
    assert len(found.read().lines) == 1
    path.unlink()
    for _ in range(2):
        again = found.read()
        assert len(again.lines) == 1
        assert "it goes on as it was read last" in again.problems[0].message
    path.write_text("")
    assert found.read().lines == ()


def test_a_folder_that_is_gone_or_cannot_be_read_goes_on_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cron"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_text(f"@daily {name}\n")
    found = files(folder)
    before = found.look()
    assert len(found.read().lines) == 2
    folder.rename(tmp_path / "away")
    assert found.look() != before
    again = found.read()
    assert len(again.lines) == 2
    assert "it goes on with the files that it had" in again.problems[0].message
    (tmp_path / "away").rename(folder)
    assert found.look() == before
    assert found.read().problems == ()

    def refuse(path: Path) -> list[str]:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as here:
        here.setattr(os, "listdir", refuse)
        again = found.read()
        assert (len(again.lines), len(again.problems)) == (2, 1)
        assert "Permission denied" in again.problems[0].message
        assert "nothing of it runs" in files(folder).read().problems[0].message
    (folder / "a").unlink()
    assert len(found.read().lines) == 1


def test_a_folder_that_became_a_file_is_one(tmp_path: Path) -> None:
    place = tmp_path / "cron"
    place.mkdir()
    (place / "a").write_text("@daily a\n")
    found = files(place)
    assert len(found.read().lines) == 1
    (place / "a").unlink()
    place.rmdir()
    place.write_text("@daily b\n@daily c\n")
    assert len(found.read().lines) == 2


def test_what_is_no_file_or_too_large_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    assert "is no file" in files(tmp_path / "pipe").read().problems[0].message
    assert "is no file" in files(Path("/dev/null")).read().problems[0].message
    assert "larger than" in files(tmp_path / "large").read().problems[0].message
    assert files(tmp_path).read().lines == ()


def test_root_runs_no_system_crontab_that_others_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table"
    path.write_text("@daily root true\n")
    monkeypatch.setattr("betimes.cli.crontab_files.os.geteuid", lambda: 0)
    if IS_ROOT:
        path.chmod(0o664)
        assert "others than root may write to it" in files(path, system=True).read().problems[0].message
        path.chmod(0o644)
        assert len(files(path, system=True).read().lines) == 1
        os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
    assert "does not belong to root" in files(path, system=True).read().problems[0].message
    assert len(files(path).read().lines) == 1  # one's own file may be anybody's


def test_the_zone_of_the_host_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", ":Asia/Tokyo")
    assert host_zone() == "Asia/Tokyo"
    monkeypatch.setenv("TZ", "Etc/UTC")
    assert host_zone() == "UTC"
    monkeypatch.setenv("TZ", "CET-1CEST")
    first = host_zone()
    monkeypatch.delenv("TZ")
    assert host_zone() == first
