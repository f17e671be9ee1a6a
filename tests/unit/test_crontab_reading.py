"""Whole crontabs: what holds at each entry, which entries are the same, and what is wrong where."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from betimes.core.crontab import Crontab, CrontabEntry, Source
from betimes.core.crontab_reading import read_crontabs
from betimes.core.restraints import Limit

DEBIAN = """\
# /etc/crontab: system-wide crontab
# Entries here name the user before the command.

SHELL=/bin/sh
# The next line would hide where cron looks.
#PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin

# m h dom mon dow user\tcommand
17 *\t* * *\troot\tcd / && run-parts --report /etc/cron.hourly
25 6\t* * *\troot\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }
47 6\t* * 7\troot\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.weekly; }
52 6\t1 * *\troot\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.monthly; }
#
"""


def read(text: str, *, system: bool = False, tz: str = "UTC") -> Crontab:
    return read_crontabs([Source(file="f", text=text)], system=system, tz=tz)


def only(text: str, *, system: bool = False) -> CrontabEntry:
    crontab = read(text, system=system)
    assert [str(problem) for problem in crontab.problems] == []
    (entry,) = crontab.entries
    return entry


def problems(text: str, *, system: bool = False) -> list[str]:
    return [str(problem) for problem in read(text, system=system).problems]


def remarks(text: str) -> list[tuple[int, str]]:
    return [(remark.line, remark.message) for remark in read(text).remarks]


def test_the_crontab_of_a_debian_machine() -> None:
    crontab = read(DEBIAN, system=True)
    assert (crontab.problems, crontab.remarks) == ((), ())
    assert [(entry.line, entry.schedule, entry.user) for entry in crontab.entries] == [
        (9, "17 * * * *", "root"),
        (10, "25 6 * * *", "root"),
        (11, "47 6 * * 7", "root"),
        (12, "52 6 1 * *", "root"),
    ]
    assert all(entry.settings == (("SHELL", "/bin/sh"),) for entry in crontab.entries)
    assert crontab.entries[0].command == "cd / && run-parts --report /etc/cron.hourly"
    assert crontab.entries[0].text.startswith("17 *")
    assert crontab.entries[0].id.startswith("cd-run-parts-")


def test_a_setting_holds_for_the_lines_below_it() -> None:
    text = "A=1\n@daily a\nA=2\nB=x\n@daily b\n"
    assert [entry.settings for entry in read(text).entries] == [(("A", "1"),), (("A", "2"), ("B", "x"))]


def test_cron_tz_is_the_zone_of_the_schedules_below_it_and_tz_of_none() -> None:
    text = '@daily a\nCRON_TZ=Europe/Berlin\nTZ=Asia/Tokyo\n@daily b\nCRON_TZ=""\n@daily c\n'
    crontab = read(text, tz="Europe/Paris")
    assert [entry.tz for entry in crontab.entries] == ["Europe/Paris", "Europe/Berlin", "Europe/Paris"]
    trigger = crontab.entries[1].trigger
    assert trigger is not None
    assert trigger.tz == "Europe/Berlin"
    assert dict(crontab.entries[1].settings) == {"CRON_TZ": "Europe/Berlin", "TZ": "Asia/Tokyo"}
    assert [line for line, message in remarks(text) if "TZ is passed to the commands" in message] == [3]


def test_entries_below_a_wrong_zone_do_not_run_until_it_is_another() -> None:
    text = "CRON_TZ=Europe/Berln\n@daily a\n# betimes: tz=UTC\n@daily b\nCRON_TZ=UTC\n@daily c\n"
    crontab = read(text)
    assert [entry.command for entry in crontab.entries] == ["b", "c"]
    first, second = problems(text)
    assert first.startswith("f:1: CRON_TZ is wrong, and no entry below it runs: ")
    assert "did you mean Europe/Berlin" in first
    assert second == "f:2: CRON_TZ in line 1 is wrong, so it does not run: correct it"


def test_random_delay_is_the_jitter_of_the_entries_below_it() -> None:
    text = "RANDOM_DELAY=45\n@daily a\n# betimes: jitter=5s\n@daily b\nRANDOM_DELAY=0\n@daily c\n"
    assert [entry.options.jitter_s for entry in read(text).entries] == [2700.0, 5.0, None]
    assert problems("RANDOM_DELAY=x\n")[0].startswith("f:1: RANDOM_DELAY is 'x'; it is a whole number")
    assert len(problems("RANDOM_DELAY=99999\n")) == 1


def test_what_the_user_is_called_cannot_be_set() -> None:
    text = "LOGNAME=root\nUSER=root\nHOME=/x\n@daily a\n"
    assert only(text).settings == (("HOME", "/x"),)
    assert [line for line, _ in remarks(text)] == [1, 2]


def test_remarks_on_settings() -> None:
    assert "no mail is sent, whatever MAILTO says" in remarks("MAILTO=root\n")[0][1]
    assert "no mail is sent, whatever MAILFROM says" in remarks("MAILFROM=root\n")[0][1]
    assert "what looks like a comment belongs to it" in remarks("A=b # c\n")[0][1]
    assert remarks('A="b # c"\n') == []
    assert "nothing expands $ or ~" in remarks("PATH=$HOME/bin\n")[0][1]
    assert "nothing expands $ or ~" in remarks("PATH=~/bin\n")[0][1]


def test_remarks_on_the_file() -> None:
    assert "the last line has no end" in remarks("@daily a")[0][1]
    assert "as on DOS" in remarks("@daily a\r\n")[0][1]
    assert read("@daily a\r\n").entries[0].command == "a"
    assert remarks("") == []


def test_remarks_on_entries() -> None:
    assert only("@daily a\n").remarks == ()
    assert "reads the rest with a new line" in only("@daily cat%x\n").remarks[0]
    assert "pass --system" in only("@daily root a\n").remarks[0]
    assert "killed at its end" in only("@reboot daemon 2>&1 & \n").remarks[0]
    assert "killed at its end" in only("@reboot cat &%x\n").remarks[1]
    assert only("@daily a && b\n").remarks == only("@daily a 2>&1\n").remarks == ()
    assert "log stays empty" in only("@daily a > /dev/null 2>&1\n").remarks[0]
    assert only("@daily root root a\n", system=True).remarks == ()


def test_lines_that_end_as_on_old_macs_are_no_single_command() -> None:
    crontab = read("* * * * * a\r0 0 * * * b\r")
    assert crontab.entries == ()
    assert "a CR that does not end it" in crontab.problems[0].message
    assert not any("DOS" in message for _, message in remarks("* * * * * a\r0 0 * * * b\r"))
    assert only("* * * * * a\r\n").command == "a"


def test_blanks_that_part_no_fields_are_not_counted_as_such() -> None:
    assert "only 5 words" in problems("*\u00a0* * * * a\n")[0]


def test_the_percent_sign_is_read() -> None:
    entry = only("@daily cat%x\\%y\n")
    assert (entry.command, entry.stdin) == ("cat", "x%y\n")
    assert "nothing stands before the first %" in problems("@daily %x\n")[0]
    odd = b"@daily cat%\xff\n".decode(errors="surrogateescape")
    assert "is not UTF-8" in problems(odd)[0]


def test_reboot_and_the_aliases() -> None:
    assert only("@ReBoot a\n").trigger is None
    for alias in ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@HOURLY"):
        assert only(f"{alias} a\n").trigger is not None
    assert problems("@reboo a\n") == ["f:1: there is no schedule '@reboo'; did you mean @reboot?"]
    assert "write one of @yearly, " in problems("@5 a\n")[0]


def test_wrong_lines_are_said_by_number_and_the_others_run() -> None:
    text = "61 * * * * a\n@daily b\n0 0 30 2 * c\n-*/5 * * * * d\n0~9 1 * * * e\n5/15 * * * * f\nnonsense\n"
    crontab = read(text)
    assert [entry.command for entry in crontab.entries] == ["b"]
    assert [problem.line for problem in crontab.problems] == [1, 3, 4, 5, 6, 7]
    said = " | ".join(str(problem) for problem in crontab.problems)
    for words in (
        "61 is not in 0-59",
        "never fires",
        "leave it out",
        "jitter=59m",
        "write 5-59/15",
        "1 word",
    ):
        assert words in said
    assert crontab.problems[0].text == "61 * * * * a"


def test_options_belong_to_the_entry_right_below_them() -> None:
    text = "# betimes: timeout=5m\n# why\n#betimes: retry=3\n@daily a\n@daily b\n"
    first, second = read(text).entries
    assert (first.options.timeout_s, first.options.retry) == (300.0, 3)
    assert (second.options.timeout_s, second.options.retry) == (None, 1)


def test_options_that_no_entry_follows_are_a_problem() -> None:
    for text in (
        "# betimes: retry=3\n\n@daily a\n",
        "# betimes: retry=3\nA=1\n@daily a\n",
        "# betimes: retry=3\n",
    ):
        (problem,) = problems(text)
        assert problem == (
            "f:1: no entry follows these options: write them right above the entry that they are for"
        )
    assert problems("# betimes: retry=3") == problems("# betimes: retry=3\n")


def test_an_entry_with_wrong_options_does_not_run() -> None:
    for options in ("# betimes: retri=3", "# betimes retry=3", "# betimes: timeout=5m\n# betimes: retri=3"):
        crontab = read(f"{options}\n@daily a\n@daily b\n")
        assert [entry.command for entry in crontab.entries] == ["b"]
        assert len(crontab.problems) == 2
        assert "the options above it are wrong" in crontab.problems[1].message
    assert "only together with missed=all" in problems("# betimes: max_catchup=3\n@daily a\n")[0]
    assert "f:2: 1 is no" not in problems("# betimes: retry=3\n61 * * * * a\n@daily b\n")[0]


def test_a_wrong_entry_takes_its_options_with_it() -> None:
    (entry,) = read("# betimes: retry=3\n61 * * * * a\n@daily b\n").entries
    assert entry.options.retry == 1


def test_an_entry_is_the_same_wherever_it_stands() -> None:
    first, second = read("0 5 * * * a\n@daily b\n").entries
    second_again, first_again = read("# moved\n@daily  b\n\n0  5 * * *   a\n").entries
    assert (first.id, second.id) == (first_again.id, second_again.id)
    assert first.id != second.id
    assert only("0 6 * * * a\n").id != first.id
    assert only("@daily x a\n", system=True).id != only("@daily y a\n", system=True).id


def test_equal_entries_are_numbered_over_all_files() -> None:
    sources = [Source(file="one", text="@daily a\n@daily a\n"), Source(file="two", text="@daily a\n")]
    ids = [entry.id for entry in read_crontabs(sources, system=False, tz="UTC").entries]
    assert ids == [ids[0], f"{ids[0]}-2", f"{ids[0]}-3"]


def test_a_name_outlives_every_change_and_is_given_once() -> None:
    assert only("# betimes: name=backup\n@daily a\n").id == "backup"
    derived = only("@daily a\n").id
    text = (
        "# betimes: name=backup\n@daily x\n# betimes: name=backup\n@daily b\n"
        f"# betimes: name={derived}\n@daily c\n@daily a\n"
    )
    crontab = read(text)
    assert [entry.id for entry in crontab.entries] == ["backup", derived, f"{derived}-2"]
    assert problems(text) == ["f:4: the name 'backup' is taken by f:2: give one of them another name"]


def test_an_id_shows_the_words_of_the_command_but_no_options_or_assignments() -> None:
    assert only("@daily PASSWORD=secret /usr/bin/dump -psecret shop\n").id.startswith("dump-shop-")
    assert len(only("@daily { [ $x ] }\n").id) == 8
    odd = b"@daily caf\xe9 x\n".decode(errors="surrogateescape")
    assert only(odd).id.startswith("x-")


def test_one_limit_has_one_number() -> None:
    first, other = "# betimes: limit=disk:2\n", "# betimes: limit=disk:3\n"
    text = f"{first}@daily a\n{other}@daily b\n{first}@daily c\n"
    assert [entry.options.limit for entry in read(text).entries] == [Limit("disk", 2)] * 2
    assert problems(text) == ["f:4: the limit 'disk' is 3 here, and 2 in f:2: one limit has one number"]


def test_a_problem_of_the_file_has_no_line() -> None:
    from betimes.core.crontab import Problem  # noqa: PLC0415 - used here only

    assert str(Problem(file="f", line=0, text="", message="it is gone")) == "f: it is gone"


LINES = st.sampled_from(
    [
        "# betimes: retry=3",
        "# betimes: x",
        "A=1",
        "A=",
        "CRON_TZ=UTC",
        "CRON_TZ=no",
        "@daily a",
        "* * * * * b%c",
        "",
        "#",
        "@reboot c",
    ]
)


@given(st.lists(LINES | st.text(max_size=20), max_size=12), st.booleans())
def test_whatever_the_text_each_entry_has_its_own_id_and_each_problem_its_line(
    lines: list[str], system: bool
) -> None:
    text = "\n".join(lines)
    crontab = read(text, system=system)
    ids = [entry.id for entry in crontab.entries]
    assert len(set(ids)) == len(ids)
    count = text.count("\n") + 1
    assert all(1 <= problem.line <= count for problem in crontab.problems)
    assert {entry.line for entry in crontab.entries}.isdisjoint(problem.line for problem in crontab.problems)
