"""`at`: given instants, each once."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from betimes.core.durations import from_us, instant_us
from betimes.core.job import Micros
from betimes.core.triggers.reckoned import ReckonedTrigger
from betimes.core.wording import listed, shown
from betimes.errors import ConfigurationError, InvalidTrigger

MAX_INSTANTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OnceTrigger(ReckonedTrigger):
    """Fires at given instants; made by `at`.

    Attributes:
        instants: in order, none twice.
    """

    instants: tuple[Micros, ...]

    def next_us(self, after: Micros) -> Micros | None:
        """Return the first instant strictly later than `after`, both in microseconds since the epoch."""
        place = bisect_right(self.instants, after)
        return self.instants[place] if place < len(self.instants) else None

    def count(self, after: Micros, until: Micros) -> int:
        """Return how many instants lie in (after, until]."""
        return max(0, bisect_right(self.instants, until) - bisect_right(self.instants, after))

    def sentence(self) -> str:
        """Return the rule in one line."""
        texts = [from_us(at).isoformat(sep=" ").replace("+00:00", " UTC") for at in self.instants]
        return f"Once, at {texts[0]}." if len(texts) == 1 else f"Once at each of {listed(texts)}."

    def stored(self) -> dict[str, Any]:
        """Return the definition as plain JSON data."""
        return {"kind": "at", "at_us": list(self.instants)}

    def __repr__(self) -> str:
        return f"at({', '.join(repr(from_us(each)) for each in self.instants)})"


def at(when: datetime, *more: datetime) -> OnceTrigger:
    """Return a trigger that fires at these instants, each once, in the order of time.

    Args:
        when: an aware datetime.
        *more: further ones; at most 10,000 in all.

    Raises:
        InvalidTrigger: a naive datetime, something else, or too many.

    Example:
        >>> from datetime import UTC
        >>> at(datetime(2025, 1, 1, 9, tzinfo=UTC)).explain()
        'Once, at 2025-01-01 09:00:00 UTC.'
    """
    if len(more) >= MAX_INSTANTS:
        raise InvalidTrigger(
            f"at() takes at most {MAX_INSTANTS:,} instants, not {len(more) + 1:,}: use several triggers",
            field="when",
            text=str(len(more) + 1),
            allowed=f"at most {MAX_INSTANTS:,} instants",
        )
    return OnceTrigger(instants=tuple(sorted({_instant(each) for each in (when, *more)})))


def _instant(when: object) -> Micros:
    try:
        return instant_us(when, name="when")
    except ConfigurationError as error:
        raise InvalidTrigger(
            str(error), field="when", text=shown(when), allowed="an aware datetime"
        ) from None
