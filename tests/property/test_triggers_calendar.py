"""Intervals, calendars, unions, exclusions and stored forms, against short reckonings of their own."""

from __future__ import annotations

import calendar as months_of
import json
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.wall_clocks import DAY, MINUTE, ZONES, around_changes, expressions, wall_at

from betimes.core.durations import instant_us
from betimes.core.triggers import Trigger, at, calendar, cron, every, trigger_from_stored
from betimes.core.triggers.reckoned import FIRST_US, LAST_US
from betimes.errors import InvalidTrigger

INSTANTS = st.integers(FIRST_US, LAST_US)
PERIODS = st.one_of(st.integers(1000, 10**7), st.integers(1000, 10**15)).map(
    lambda us: timedelta(microseconds=us)
)
DATES = st.dates(date(1900, 1, 1), date(2100, 1, 1))


def between(trigger: Trigger, since: datetime, until: datetime) -> list[datetime]:
    found = [since]
    while (after := trigger.next(found[-1])) is not None and after <= until:
        found.append(after)
    return found[1:]


@given(PERIODS, INSTANTS, INSTANTS)
def test_an_aligned_interval_is_on_its_grid_and_skips_nothing(
    period: timedelta, origin: int, after: int
) -> None:
    size = period // timedelta(microseconds=1)
    trigger = every(period, align=datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=origin))
    found = trigger.next_us(after)
    if found is None:
        assert after + size > LAST_US
    else:
        assert (found - origin) % size == 0
        assert after < found <= after + size


@given(PERIODS, INSTANTS, INSTANTS)
def test_an_anchored_interval_begins_at_its_anchor(period: timedelta, anchor: int, after: int) -> None:
    size = period // timedelta(microseconds=1)
    found = every(period).anchored(anchor).next_us(after)
    if found is None:
        assert after + size > LAST_US
    else:
        assert (found - anchor) % size == 0
        assert found == anchor if after < anchor else after < found <= after + size


@given(PERIODS, st.integers(0, 10**9), st.integers(-(10**9), 10**9), st.integers(0, 50), st.booleans())
def test_a_count_is_what_stepping_would_find(
    period: timedelta, anchor: int, after: int, steps: int, is_aligned: bool
) -> None:
    size = period // timedelta(microseconds=1)
    until = after + steps * size + size // 3
    origin = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=anchor)
    trigger = every(period, align=origin) if is_aligned else every(period).anchored(anchor)
    found, last = 0, trigger.next_us(after)
    while last is not None and last <= until:
        found, last = found + 1, trigger.next_us(last)
    assert trigger.count(after, until) == found


def first_instant(wall: datetime, tz: str) -> datetime:
    """The first minute at which the clock shows this time or more, by looking at each."""
    info = ZoneInfo(tz)
    minute = wall.replace(tzinfo=UTC) - timedelta(hours=15)
    while wall_at(minute, info) < wall:
        step = wall - wall_at(minute, info)
        minute += max(MINUTE, min(step - timedelta(hours=25), DAY))
    return minute


def moved_by(anchor: date, months: int) -> date:
    year, month = divmod(anchor.year * 12 + anchor.month - 1 + months, 12)
    return date(year, month + 1, min(anchor.day, months_of.monthrange(year, month + 1)[1]))


@settings(max_examples=60)
@given(
    around_changes(),
    st.integers(0, 400),
    st.sampled_from(["days", "weeks", "months", "years"]),
    st.integers(1, 3),
    st.times().map(lambda at: at.replace(second=0, microsecond=0)),
)
def test_a_calendar_is_its_dates_at_their_first_instants(
    place: tuple[str, datetime], back: int, unit: str, count: int, wall: time
) -> None:
    tz, start = place
    anchor = (start - timedelta(days=back)).astimezone(ZoneInfo(tz)).date()
    trigger = calendar(**{unit: count}, at=f"{wall:%H:%M}", tz=tz, anchor=anchor)
    until = start + timedelta(days=3 if unit == "days" else 40)
    steps = {"days": 1, "weeks": 7, "months": 1, "years": 12}[unit] * count
    days = [
        anchor + timedelta(days=k * steps) if unit in {"days", "weeks"} else moved_by(anchor, k * steps)
        for k in range((back + 45) // (count if unit == "days" else 7) + 2)
    ]
    near = [day for day in days if start.date() - 2 * DAY <= day <= until.date() + 2 * DAY]
    expected = {first_instant(datetime.combine(day, wall), tz) for day in near}
    assert between(trigger, start, until) == sorted(at for at in expected if start < at <= until)


@settings(max_examples=50)
@given(expressions(), expressions(), around_changes())
def test_a_union_is_the_instants_of_both_each_once(
    one: object, other: object, place: tuple[str, datetime]
) -> None:
    tz, start = place
    triggers = [made for each in (one, other) if (made := cron_or_none(str(each), tz)) is not None]
    if len(triggers) == 2:
        expected = {at for each in triggers for at in between(each, start, start + DAY)}
        assert between(triggers[0] | triggers[1], start, start + DAY) == sorted(expected)


@settings(max_examples=50)
@given(
    expressions(),
    around_changes(),
    st.lists(st.integers(-2, 4), min_size=1, max_size=4),
    st.sampled_from(ZONES),
)
def test_an_exclusion_is_what_falls_on_no_such_date(
    written: object, place: tuple[str, datetime], days: list[int], day_tz: str
) -> None:
    tz, start = place
    inner = cron_or_none(str(written), tz)
    if inner is not None:
        dates = {start.date() + timedelta(days=day) for day in days}
        until = start + 3 * DAY
        expected = [
            at for at in between(inner, start, until) if at.astimezone(ZoneInfo(day_tz)).date() not in dates
        ]
        assert between(inner.excluding(*dates, tz=day_tz), start, until) == expected


def cron_or_none(expr: str, tz: str) -> Trigger | None:
    try:
        return cron(expr, tz=tz)
    except InvalidTrigger:
        return None


def leaves() -> st.SearchStrategy[Trigger]:
    aware = st.datetimes(timezones=st.just(UTC))
    crons = st.builds(lambda expr, tz: cron_or_none(str(expr), tz), expressions(), st.sampled_from(ZONES))
    calendars = st.builds(
        lambda days, months, at, tz, anchor: calendar(
            days=days, months=0 if days else months, at=at.replace(microsecond=0), tz=tz, anchor=anchor
        ),
        st.integers(0, 9),
        st.integers(1, 9),
        st.times(),
        st.sampled_from(ZONES),
        st.none() | DATES,
    )
    return st.one_of(
        crons.filter(lambda trigger: trigger is not None).map(lambda trigger: trigger or every(1)),
        calendars,
        st.builds(every, PERIODS, align=st.one_of(st.none(), st.booleans(), aware)),
        st.builds(lambda period, at: every(period).anchored(at), PERIODS, INSTANTS),
        st.lists(aware, min_size=1, max_size=5).map(lambda instants: at(*instants)),
    )


def combined(inner: st.SearchStrategy[Trigger]) -> st.SearchStrategy[Trigger]:
    return st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
        st.builds(
            lambda trigger, dates, tz: trigger.excluding(*dates, tz=tz),
            inner,
            st.lists(DATES, min_size=1, max_size=5),
            st.none() | st.sampled_from(ZONES),
        ),
    )


TRIGGERS = st.recursive(leaves(), combined, max_leaves=4)


@settings(max_examples=60)
@given(TRIGGERS)
def test_every_trigger_comes_back_from_its_stored_form(trigger: Trigger) -> None:
    definition = trigger.stored()
    assert definition is not None
    back = trigger_from_stored(json.loads(json.dumps(definition)))
    assert back == trigger
    assert (hash(back), repr(back), back.explain()) == (hash(trigger), repr(trigger), trigger.explain())


@settings(max_examples=100)
@given(TRIGGERS, st.datetimes(timezones=st.just(UTC)))
def test_every_trigger_answers_something_later_or_nothing(trigger: Trigger, start: datetime) -> None:
    anchored = trigger.anchored(instant_us(start, name="start"))
    for each in (trigger, anchored):
        found = each.next(start)
        assert found is None or found > start
        assert each.next_us(instant_us(start, name="start")) == (
            None if found is None else instant_us(found, name="found")
        )
    assert anchored.anchored(0) == anchored
