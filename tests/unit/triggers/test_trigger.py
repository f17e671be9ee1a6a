"""The contract: what every trigger answers, a user's own included."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from betimes.core.triggers import Trigger, at, calendar, cron, every
from betimes.errors import ConfigurationError

START = datetime(2025, 1, 1, 9, 30, tzinfo=UTC)
BUILT_IN = [
    cron("0 9 * * *"),
    cron("*/5 * * * *", tz="Europe/Berlin"),
    every("1h", align=True),
    every("1h"),
    calendar(days=1, at="09:00"),
    at(START + timedelta(days=1)),
    cron("0 9 * * *") | every("1h"),
    cron("0 9 * * *").excluding(date(2025, 1, 2)),
]


class FullHours(Trigger):
    """A user's own rule, with nothing but `next`."""

    def next(self, after: datetime) -> datetime | None:
        return (after + timedelta(hours=1)).replace(minute=0, second=0, microsecond=0)


class Wrong(Trigger):
    """A user's own rule, which answers without a zone."""

    def next(self, after: datetime) -> datetime | None:
        return datetime(2025, 1, 1)  # noqa: DTZ001 - that is what is wrong


class Never(Trigger):
    """A user's own rule, which is over."""

    def next(self, after: datetime) -> datetime | None:
        return None


def test_a_trigger_of_the_users_own_needs_only_next() -> None:
    trigger = FullHours()
    assert trigger.next_us(1) == 3_600_000_000
    assert trigger.explain() == "By the rule of FullHours."
    assert trigger.hints() == ()
    assert trigger.anchored(5) is trigger
    assert trigger.count(0, 10**15) is None
    assert trigger.moved_from(0) is None
    assert trigger.delay_after_finish_us is None
    assert trigger.tz is None
    assert Never().next_us(0) is None


def test_an_answer_without_a_zone_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"Wrong\.next\(\)"):
        Wrong().next_us(0)


@pytest.mark.parametrize("trigger", BUILT_IN, ids=repr)
def test_next_takes_an_aware_datetime_of_any_zone_and_answers_in_utc(trigger: Trigger) -> None:
    found = trigger.next(START)
    assert found is not None
    assert found.tzinfo is UTC
    assert found > START
    assert trigger.next(START.astimezone(timezone(timedelta(hours=-7)))) == found


@pytest.mark.parametrize("trigger", BUILT_IN, ids=repr)
@pytest.mark.parametrize("after", [datetime(2025, 1, 1), date(2025, 1, 1), "2025-01-01", 0, None])  # noqa: DTZ001
def test_what_is_no_aware_datetime_is_refused_by_its_name(trigger: Trigger, after: Any) -> None:
    with pytest.raises(ConfigurationError, match="after"):
        trigger.next(after)


@pytest.mark.parametrize("trigger", BUILT_IN, ids=repr)
def test_a_microsecond_before_an_instant_does_not_lose_it(trigger: Trigger) -> None:
    trigger = trigger.anchored(0)  # else an interval counts from wherever it is asked
    found = trigger.next(START)
    assert found is not None
    assert trigger.next(found - timedelta(microseconds=1)) == found
