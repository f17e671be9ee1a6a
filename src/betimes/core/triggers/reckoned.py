"""What the built-in triggers share: they reckon in microseconds, and their datetimes follow from that."""

from __future__ import annotations

from abc import abstractmethod
from datetime import UTC, datetime, timedelta

from betimes.core.durations import instant_us
from betimes.core.job import EPOCH, Micros
from betimes.core.triggers.trigger import Trigger

FIRST_US = instant_us(datetime(1, 1, 2, tzinfo=UTC), name="FIRST_US")
"""Before 0001-01-02T00:00Z nothing fires: in every zone, the wall clock can be written from here on."""

LAST_US = instant_us(datetime(9999, 12, 31, tzinfo=UTC), name="LAST_US") - 1
"""The last microsecond of 9999-12-30 in UTC: after it nothing fires, for the same reason."""


def within(at: Micros) -> Micros | None:
    """Return the instant, or None where it lies beyond the last one."""
    return at if at <= LAST_US else None


class ReckonedTrigger(Trigger):
    """A trigger whose `next_us` is the rule, and whose `next` is derived from it."""

    __slots__ = ()

    @abstractmethod
    def next_us(self, after: Micros) -> Micros | None:
        """Return the first instant strictly later than `after`, both in microseconds since the epoch."""

    def next(self, after: datetime) -> datetime | None:
        """Return the first instant that is strictly later than `after`, in UTC; None: there is none.

        Raises:
            ConfigurationError: `after` is naive, or no datetime.
        """
        found = self.next_us(instant_us(after, name="after"))
        return None if found is None else EPOCH + timedelta(0, 0, found)
