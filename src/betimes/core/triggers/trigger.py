"""The contract of every trigger: a pure rule that says, for any instant, which of its instants comes next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import date, datetime
from typing import Any

from betimes.core.durations import from_us, instant_us
from betimes.core.job import Micros


class Trigger(ABC):
    """A rule that yields instants. It holds no state: the same question always has the same answer.

    Subclass it for a rule of your own; only `next` must be written. Whatever a schedule needs besides has a
    default here. Such a trigger lives as long as its process: a store keeps it only if `stored` is written
    and its kind is one of Betimes' own.

    Example:
        >>> from datetime import UTC, timedelta
        >>> class FullHours(Trigger):
        ...     def next(self, after):
        ...         return (after + timedelta(hours=1)).replace(minute=0, second=0, microsecond=0)
        >>> FullHours().next(datetime(2025, 1, 1, 9, 30, tzinfo=UTC)).isoformat()
        '2025-01-01T10:00:00+00:00'
    """

    __slots__ = ()

    @abstractmethod
    def next(self, after: datetime) -> datetime | None:
        """Return the first instant that is strictly later than `after`, in UTC; None: there is none.

        Args:
            after: an aware datetime, in any zone.

        Raises:
            ConfigurationError: `after` is naive, or no datetime.
        """

    def next_us(self, after: Micros) -> Micros | None:
        """Return the first instant strictly later than `after`, both in microseconds since the epoch.

        Raises:
            ConfigurationError: what `next` answered is no aware datetime.
        """
        found = self.next(from_us(after))
        return None if found is None else instant_us(found, name=f"what {type(self).__name__}.next() returns")

    def explain(self) -> str:
        """Return what the trigger does in plain English: one line, and a line `Note: …` for each hint.

        Example:
            >>> every("5m").explain()
            'Every 5 minutes.'
        """
        return "\n".join([self.sentence(), *(f"Note: {hint}" for hint in self.hints())])

    def sentence(self) -> str:
        """Return the first line of `explain`: the rule itself."""
        return f"By the rule of {type(self).__name__}."

    def hints(self) -> tuple[str, ...]:
        """Return what may surprise about this trigger, a sentence each; () if nothing does."""
        return ()

    def anchored(self, at: Micros) -> Trigger:
        """Return this trigger with its grid fixed to `at`, where it has a grid and the user fixed none.

        A schedule calls it once, when it is added, and keeps the result: so a restart never shifts the grid.
        """
        del at
        return self

    def count(self, after: Micros, until: Micros) -> int | None:
        """Return how many instants lie in (after, until], exactly; None: it would take stepping to know."""
        del after, until
        return None

    def moved_from(self, at: Micros) -> str | None:
        """Return the wall time for which the instant `at` stands, because that wall time was skipped.

        It reads like `2025-03-30T02:30[Europe/Berlin]`. None: the instant stands for itself.
        """
        del at
        return None

    def stored(self) -> dict[str, Any] | None:
        """Return the definition as plain JSON data, for `trigger_from_stored`; None: it cannot be stored."""
        return None

    @property
    def delay_after_finish_us(self) -> Micros | None:
        """The delay after the end of a run for `every(…, after="finish")`; None: runs do not matter."""
        return None

    @property
    def tz(self) -> str | None:
        """The name of the zone whose wall clock the trigger follows; None: it follows none."""
        return None

    def __or__(self, other: Trigger) -> Trigger:
        """Return the union: it fires whenever one of the two does, and once where both do."""
        from betimes.core.triggers.combine import union_of  # noqa: PLC0415 - it knows this class

        if not isinstance(other, Trigger):
            return NotImplemented
        return union_of(self, other)

    def excluding(self, *dates: date, tz: str | None = None) -> Trigger:
        """Return this trigger without any instant that falls on one of these dates.

        Args:
            *dates: the days to leave out, such as holidays; at most 2,000.
            tz: the zone in which they are days; default: the trigger's own zone, else UTC.

        Raises:
            InvalidTrigger: something else than a date, an unknown zone, or too many dates.

        Example:
            >>> every("1d").excluding(date(2025, 12, 25)).explain()
            'Every day; not on 2025-12-25 (UTC).'
        """
        from betimes.core.triggers.combine import exclusion_of  # noqa: PLC0415 - it knows this class

        return exclusion_of(self, dates, tz)
