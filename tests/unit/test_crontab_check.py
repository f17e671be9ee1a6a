"""What is said of an entry: in English, with what comes next and what may surprise."""

from __future__ import annotations

from datetime import UTC, datetime

from betimes.core.crontab import Source
from betimes.core.crontab_check import EntryReport, report_on
from betimes.core.crontab_reading import read_crontabs
from betimes.core.durations import from_us, instant_us
from betimes.core.triggers.reckoned import LAST_US

NOW = instant_us(datetime(2027, 3, 27, 12, tzinfo=UTC), name="now")


def report(text: str, *, now: int = NOW) -> EntryReport:
    crontab = read_crontabs([Source(file="f", text=text)], system=False, tz="UTC")
    (found,) = report_on(crontab.entries, now)
    return found


def test_an_entry_is_explained_with_its_next_fires() -> None:
    said = report("30 6 * * mon-fri backup\n")
    assert said.sentence == "At 06:30 on Monday through Friday, UTC."
    assert [f"{from_us(fire.at):%a %d %H:%M}" for fire in said.fires] == [
        "Mon 29 06:30",
        "Tue 30 06:30",
        "Wed 31 06:30",
    ]
    assert said.policies == "overlap=skip, missed=latest, no timeout"
    assert said.hints == ()


def test_changes_of_the_clock_are_the_next_ones() -> None:
    said = report("CRON_TZ=Europe/Berlin\n30 2 * * * backup\n")
    assert said.fires[0].stands_for == "2027-03-28T02:30[Europe/Berlin]"
    assert said.fires[1].stands_for is None
    gap, overlap = said.hints
    assert "skips 02:00–03:00 on 2027-03-28" in gap
    assert "twice on 2027-10-31" in overlap
    after = report("CRON_TZ=Europe/Berlin\n30 2 * * * backup\n", now=said.fires[0].at)
    assert "on 2028-03-26" in after.hints[0]


def test_what_may_surprise_is_said() -> None:
    assert "either is enough" in report("0 0 1,15 * mon a\n").hints[0]
    assert "both" in report("0 0 */2 * mon a\n").hints[-1]
    assert "the last step is shorter" in report("*/45 * * * * a\n").hints[0]
    assert "log stays empty" in report("0 0 * * * a >/dev/null 2>&1\n").hints[0]


def test_policies_are_said_in_words() -> None:
    options = (
        "timeout=5m grace=10s overlap=allow missed=all max_catchup=3 retry=4 limit=disk:2 jitter=90s keep=30d"
    )
    assert report(f"# betimes: {options}\n@daily a\n").policies == (
        "overlap=allow, missed=all, timeout=5m, grace=10s, jitter=1m 30s, keep=30d, up to 4 attempts, "
        "limit=disk:2, max_catchup=3"
    )


def test_what_runs_at_most_once_says_so() -> None:
    assert report("# betimes: delivery=at_most_once\n@daily a\n").policies.endswith(
        "no timeout, at most once"
    )


def test_reboot_has_no_instants() -> None:
    said = report("@reboot a\n")
    assert said.sentence == "Once in each boot of the machine, when the crontab is first run in it."
    assert (said.fires, said.policies, said.hints) == ((), "no timeout", ())
    assert "say nothing about it" in report("# betimes: jitter=5m\n@reboot a\n").hints[0]
    assert "say nothing" in report("# betimes: missed=all max_catchup=5\n@reboot a\n").hints[0]


def test_what_has_no_more_instants_shows_those_it_has() -> None:
    assert report("0 0 1 1 * a\n", now=LAST_US).fires == ()
