"""`at`: given instants, each once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from betimes.core.triggers import at
from betimes.errors import InvalidTrigger

FIRST = datetime(2025, 1, 1, 9, tzinfo=UTC)
SECOND = datetime(2025, 1, 1, 12, tzinfo=timezone(timedelta(hours=1)))  # 11:00 in UTC
MICRO = timedelta(microseconds=1)


def test_each_instant_comes_once_in_the_order_of_time() -> None:
    trigger = at(SECOND, FIRST, SECOND)
    assert trigger.next(FIRST - MICRO) == FIRST
    assert trigger.next(FIRST) == SECOND
    assert trigger.next(SECOND - MICRO) == SECOND
    assert trigger.next(SECOND) is None
    assert trigger == at(FIRST, SECOND)


def test_instants_are_counted() -> None:
    trigger = at(FIRST, SECOND)
    first, second = trigger.instants
    assert trigger.count(first - 1, second) == 2
    assert trigger.count(first, second) == 1
    assert trigger.count(first, second - 1) == 0
    assert trigger.count(second, first) == 0


@pytest.mark.parametrize("when", [datetime(2025, 1, 1), "2025-01-01", None, 0])  # noqa: DTZ001 - refused
def test_what_is_no_aware_datetime_is_refused(when: Any) -> None:
    for arguments in ((when,), (FIRST, when)):
        with pytest.raises(InvalidTrigger, match="aware datetime") as caught:
            at(*arguments)
        assert caught.value.field == "when"


def test_too_many_instants_are_refused() -> None:
    many = [FIRST + n * MICRO for n in range(10_000)]
    assert len(at(*many).instants) == 10_000
    with pytest.raises(InvalidTrigger, match="at most 10,000"):
        at(*many, SECOND)


def test_it_says_what_it_is() -> None:
    assert at(FIRST).explain() == "Once, at 2025-01-01 09:00:00 UTC."
    assert (
        at(FIRST, SECOND).explain() == "Once at each of 2025-01-01 09:00:00 UTC and 2025-01-01 11:00:00 UTC."
    )
    assert repr(at(FIRST)) == "at(datetime.datetime(2025, 1, 1, 9, 0, tzinfo=datetime.timezone.utc))"
