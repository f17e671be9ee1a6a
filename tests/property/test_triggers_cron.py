"""Cron around changes of the clock, in twenty zones, against stepping every minute of UTC."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.property.wall_clocks import (
    DAY,
    ZONES,
    Part,
    Written,
    around_changes,
    changes,
    expressions,
    first_reached,
    hours_of_changes,
    minutes_of_changes,
    shown,
    wall_at,
)

from betimes.core.durations import instant_us
from betimes.core.job import EPOCH
from betimes.core.triggers import CronTrigger, cron
from betimes.errors import InvalidTrigger

YEAR = timedelta(days=365)


def made(written: Written, tz: str) -> CronTrigger:
    try:
        return cron(str(written), tz=tz)
    except InvalidTrigger as error:
        is_empty = "never fires" in str(error)  # as with 31 */3 in months without one
        assume(not is_empty)
        raise


def by_the_minute(written: Written, tz: str, since: datetime, until: datetime) -> list[datetime]:
    rule = shown if written.follows_clock else first_reached
    return rule(written.matches, ZoneInfo(tz), since, until)


def sequence(trigger: CronTrigger, since: datetime, until: datetime) -> list[datetime]:
    found = [since]
    while (after := trigger.next(found[-1])) is not None and after <= until:
        found.append(after)
    return found[1:]


@settings(max_examples=60)
@given(expressions(follows_clock=True), around_changes())
def test_what_follows_the_clock_fires_at_each_minute_that_matches(
    written: Written, place: tuple[str, datetime]
) -> None:
    tz, start = place
    until = start + DAY
    assert sequence(made(written, tz), start, until) == by_the_minute(written, tz, start, until)


@settings(max_examples=60)
@given(expressions(follows_clock=False), minutes_of_changes(), hours_of_changes(), around_changes())
def test_a_fixed_time_fires_when_the_clock_first_reaches_or_passes_it(
    written: Written, minute: Part, hour: Part, place: tuple[str, datetime]
) -> None:
    tz, start = place
    written = replace(written, minute=minute, hour=hour)
    until = start + DAY
    assert sequence(made(written, tz), start, until) == by_the_minute(written, tz, start, until)


@settings(max_examples=60)
@given(expressions(), around_changes(), st.lists(st.timedeltas(timedelta(0), DAY), max_size=8))
def test_a_restart_at_any_point_gives_the_rest_of_the_same_sequence(
    written: Written, place: tuple[str, datetime], waits: list[timedelta]
) -> None:
    tz, start = place
    trigger = made(written, tz)
    whole = sequence(trigger, start, start + 2 * DAY)
    assert whole == sorted(set(whole))
    for again in (start + wait for wait in waits):
        rest = whole[bisect_right(whole, again) :]
        assert sequence(trigger, again, start + 2 * DAY) == rest


@settings(max_examples=100)
@given(expressions(), around_changes())
def test_a_fire_matches_unless_it_was_moved_out_of_a_gap(
    written: Written, place: tuple[str, datetime]
) -> None:
    tz, start = place
    trigger = made(written, tz)
    fires = sequence(trigger, start, start + DAY)[:50]
    for at in fires:
        moved = trigger.moved_from(instant_us(at, name="at"))
        if written.matches(wall_at(at, ZoneInfo(tz))):
            assert moved is None
        else:
            assert moved is not None
            nominal, _, name = moved.partition("[")
            assert name == f"{tz}]"
            skipped = datetime.fromisoformat(nominal)
            assert written.matches(skipped)
            assert wall_at(at - timedelta(seconds=1), ZoneInfo(tz)) < skipped < wall_at(at, ZoneInfo(tz))


@settings(max_examples=100)
@given(
    expressions(),
    st.sampled_from(ZONES),
    st.timedeltas(-70 * YEAR, 130 * YEAR).map(lambda since: EPOCH + since),
)
def test_the_next_instant_is_later_and_nothing_lies_between(
    written: Written, tz: str, start: datetime
) -> None:
    trigger = made(written, tz)
    found = trigger.next(start)
    if found is not None:
        assert found > start
        assert trigger.next(start + (found - start) / 2) == found
        assert trigger.next(found - timedelta(microseconds=1)) == found


def test_there_are_changes_to_look_at() -> None:
    assert len(ZONES) == 20
    assert {tz for tz in ZONES if not changes(tz)} == {"UTC"}
