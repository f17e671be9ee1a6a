"""croniter as a second opinion: the same instants, but for three differences, each of which is explained.

croniter finds the days as we do when told to (`implement_cron_bug`: day-of-month and day-of-week both,
where one of them begins with `*`). Around changes of the clock it keeps to other rules:

- it fires in both passes also at fixed times, where Debian's cron(8) and we fire in the first only;
- it fires once after a gap also for what follows the clock, where Debian's cron(8) and we do nothing;
- it misses some of what follows the clock in a second pass of half an hour (Australia/Lord_Howe).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter  # type: ignore[import-untyped]
from hypothesis import assume, given, settings
from tests.property.wall_clocks import Written, around_changes, expressions, wall_at

from betimes.core.triggers import cron
from betimes.errors import InvalidTrigger

NUMBER = 6


def by_croniter(expr: str, tz: str, start: datetime) -> list[datetime]:
    steps = croniter(expr, start.astimezone(ZoneInfo(tz)), implement_cron_bug=True)
    return [steps.get_next(datetime).astimezone(UTC) for _ in range(NUMBER)]


def by_us(expr: str, tz: str, start: datetime) -> list[datetime]:
    trigger, found = cron(expr, tz=tz), [start]
    while len(found) <= NUMBER and (after := trigger.next(found[-1])) is not None:
        found.append(after)
    return found[1:]


def explained(written: Written, at: datetime, info: ZoneInfo, *, is_ours: bool) -> bool:
    """Whether this instant, which only one of the two has, is one of the three differences."""
    is_second_pass = at.astimezone(info).fold == 1
    is_after_gap = wall_at(at, info) - wall_at(at - timedelta(seconds=1), info) > timedelta(seconds=1)
    if is_ours:
        return written.follows_clock and is_second_pass and written.matches(wall_at(at, info))
    if written.follows_clock:
        return is_after_gap and not written.matches(wall_at(at, info))
    return is_second_pass and written.matches(wall_at(at, info))


@settings(max_examples=100)
@given(expressions(), around_changes())
def test_croniter_agrees_but_for_differences_that_are_explained(
    written: Written, place: tuple[str, datetime]
) -> None:
    tz, start = place[0], place[1].replace(microsecond=0)
    try:
        ours = by_us(str(written), tz, start)
    except InvalidTrigger:
        assume(False)
        raise
    theirs = by_croniter(str(written), tz, start)
    until = min(ours[-1], theirs[-1]) if len(ours) == NUMBER else datetime.max.replace(tzinfo=UTC)
    differences = [(at, at in ours) for at in sorted(set(ours).symmetric_difference(theirs)) if at <= until]
    unexplained = [
        at for at, is_ours in differences if not explained(written, at, ZoneInfo(tz), is_ours=is_ours)
    ]
    assert unexplained == []


@pytest.mark.parametrize(
    ("expr", "tz", "start", "ours", "theirs"),
    [
        # Fixed, and 02:30 comes twice.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2025-10-25T12:00Z",
            ["26T00:30", "27T01:30"],
            ["26T00:30", "26T01:30"],
        ),
        # Follows the clock, and 02:00 to 03:00 is skipped.
        (
            "*/30 2 * * *",
            "Europe/Berlin",
            "2025-03-29T12:00Z",
            ["31T00:00", "31T00:30"],
            ["30T01:00", "31T00:00"],
        ),
        # Follows the clock, and 01:30 to 02:00 comes twice; the second time it begins at 15:00 in UTC.
        (
            "4,16,30 * * * *",
            "Australia/Lord_Howe",
            "2007-03-24T14:40Z",
            ["24T15:00", "24T15:34"],
            ["24T15:34", "24T15:46"],
        ),
    ],
)
def test_the_three_differences(expr: str, tz: str, start: str, ours: list[str], theirs: list[str]) -> None:
    """When a release of croniter changes its mind, this says so."""
    at = datetime.fromisoformat(start)
    assert [f"{each:%dT%H:%M}" for each in by_us(expr, tz, at)[:2]] == ours
    assert [f"{each:%dT%H:%M}" for each in by_croniter(expr, tz, at)[:2]] == theirs
