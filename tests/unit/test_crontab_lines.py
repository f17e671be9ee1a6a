"""Each line of a crontab is read as Debian's cron reads it, and what is wrong is said."""

from __future__ import annotations

import pytest

from betimes.core.crontab_lines import (
    Blank,
    Comment,
    EntryLine,
    LineError,
    OptionsLine,
    Setting,
    read_line,
    split_percent,
)


def refusal(text: str, *, system: bool = False) -> str:
    with pytest.raises(LineError) as error:
        read_line(text, system=system)
    return str(error.value)


@pytest.mark.parametrize("text", ["", " ", "\t  "])
def test_blank_lines_are_nothing(text: str) -> None:
    assert read_line(text, system=False) == Blank()


@pytest.mark.parametrize("text", ["#", "# text", "  \t# text", "# betimeser: x=1", "#@daily a"])
def test_a_line_whose_first_sign_is_a_hash_is_a_comment(text: str) -> None:
    assert read_line(text, system=False) == Comment()


@pytest.mark.parametrize(
    "text", ["# betimes: timeout=5m ", "#betimes: timeout=5m", "  ## \tbetimes: timeout=5m"]
)
def test_a_comment_may_hold_options(text: str) -> None:
    assert read_line(text, system=False) == OptionsLine(text=" timeout=5m")


def test_options_without_the_colon_are_not_passed_over_as_a_comment() -> None:
    assert "with the colon" in refusal("# betimes timeout=5m")
    assert "with the colon" in refusal("# Betimes: timeout=5m")


@pytest.mark.parametrize(
    ("text", "name", "value", "was_quoted"),
    [
        ("A=b", "A", "b", False),
        ("  A = b c  ", "A", "b c", False),
        ("A=b=c", "A", "b=c", False),
        ("A\t=\tb # c", "A", "b # c", False),
        ('A=" b "', "A", " b ", True),
        ("A=' b\" '", "A", ' b" ', True),
        ('A=""', "A", "", True),
        ('"A" = b', "A", "b", False),
        ("'A'=b", "A", "b", False),
        ("PATH=/usr/bin:$HOME", "PATH", "/usr/bin:$HOME", False),
        ("A=it's", "A", "it's", False),
    ],
)
def test_settings(text: str, name: str, value: str, was_quoted: bool) -> None:
    assert read_line(text, system=False) == Setting(name=name, value=value, was_quoted=was_quoted)


def test_wrong_settings_say_what_to_write() -> None:
    assert refusal("A=") == 'A has no value: write A="" for an empty one'
    assert "close the quotes" in refusal('A="b')
    assert "a comment on a line of its own" in refusal('A="b" # c')
    assert "'A-B' is no name of a variable" in refusal("A-B=c")
    assert "'1A' is no name" in refusal("1A=c")
    assert "'A B' is no name" in refusal('"A B"=c')


@pytest.mark.parametrize(
    ("text", "schedule", "command"),
    [
        ("0 5 * * 1 tar -zcf /b.tgz /etc/", "0 5 * * 1", "tar -zcf /b.tgz /etc/"),
        ("  */5\t*  * *\t* \t true ", "*/5\t*  * *\t*", "true "),
        ("@daily  true", "@daily", "true"),
        ("@reboot A=b c", "@reboot", "A=b c"),
        ("* * * * * A=b c # d", "* * * * *", "A=b c # d"),
    ],
)
def test_entries_of_a_user(text: str, schedule: str, command: str) -> None:
    assert read_line(text, system=False) == EntryLine(schedule=schedule, user=None, command=command)


def test_entries_of_the_system_have_a_user() -> None:
    line = read_line("17 *\t* * *\troot    cd / && run-parts /etc/cron.hourly", system=True)
    assert line == EntryLine(
        schedule="17 *\t* * *", user="root", command="cd / && run-parts /etc/cron.hourly"
    )
    line = read_line("@hourly www-data true", system=True)
    assert line == EntryLine(schedule="@hourly", user="www-data", command="true")


def test_wrong_entries_say_what_is_missing() -> None:
    assert refusal("1").endswith("the line has only 1 word")
    assert refusal("1 2 3 4").endswith("the line has only 4 words")
    assert refusal("1 2 3 4 5") == "a command is missing after '1 2 3 4 5'"
    assert refusal("@daily ", system=True) == "a user and a command are missing after '@daily'"
    assert "no command after the user '/usr/bin/true'" in refusal("1 2 3 4 5 /usr/bin/true", system=True)
    assert "without --system" in refusal("@daily true ", system=True)
    assert "NUL" in refusal("@daily a\0b")


@pytest.mark.parametrize(
    ("text", "command", "stdin"),
    [
        ("true", "true", None),
        ("date +\\%F", "date +%F", None),
        ("mail joe%Hi,%%bye", "mail joe", "Hi,\n\nbye\n"),
        ("cat%a%", "cat", "a\n"),
        ("cat%", "cat", "\n"),
        ("cat%a\\%b\\n", "cat", "a%b\\n\n"),
        ("echo a\\\\%b", "echo a\\\\", "b\n"),
        ("echo a\\", "echo a\\", None),
        ("echo %a\\", "echo ", "a\\\n"),
    ],
)
def test_a_percent_sign_begins_what_the_command_reads(text: str, command: str, stdin: str | None) -> None:
    assert split_percent(text) == (command, stdin)
