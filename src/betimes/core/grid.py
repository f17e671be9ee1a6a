"""A schedule's grid: the instants of its trigger between its start and its end, asked for with care.

A trigger may be anybody's code, and a clock may have jumped by years. So every answer is checked (it must
be strictly later), and what lies between two instants is counted without stepping through millions of
them: what is wanted of the past is its newest instants, and those are found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from betimes.core.durations import from_us
from betimes.core.job import Micros
from betimes.core.triggers import Trigger
from betimes.errors import InvalidTrigger

T = TypeVar("T")

STEPS = 1000
"""How many instants are stepped through before bisection takes over."""


class TriggerFailed(InvalidTrigger):
    """A trigger raised, or its answer was not later than what it was asked; the text says which."""


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The instants that are due, from the first one not decided up to an instant.

    A struct, as in `schedule`: one is made for each fire.

    Attributes:
        newest: the newest ones, in order, as many as asked for.
        earlier: how many there are before these; exactly, or at least (`is_exact`).
        earlier_first, earlier_last: the first and the last of them; None: there are none.
        following: the first instant after the window; None: there is none.
    """

    newest: tuple[Micros, ...]
    following: Micros | None
    earlier: int = 0
    is_exact: bool = True
    earlier_first: Micros | None = None
    earlier_last: Micros | None = None


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """The instants of a trigger within a schedule's bounds.

    Attributes:
        trigger: anchored.
        starts_at, ends_at: no instant is earlier or later; None: no bound.
    """

    trigger: Trigger
    starts_at: Micros | None = None
    ends_at: Micros | None = None

    def next(self, after: Micros) -> Micros | None:
        """Return the first instant strictly later than `after`; None: there is none.

        Raises:
            TriggerFailed: the trigger raised, or did not advance.
        """
        if self.starts_at is not None and after < self.starts_at:
            if self.trigger.delay_after_finish_us is not None:
                return self.starts_at  # before it nothing has run whose end could be waited for
            after = self.starts_at - 1
        try:
            found = self.trigger.next_us(after)
        except Exception as error:
            raise _raised(error) from error
        if found is None:
            return None
        if found <= after:
            raise TriggerFailed(
                f"its trigger does not advance: asked for what follows {from_us(after).isoformat()}, it "
                f"answered {from_us(found).isoformat()}"
            )
        return None if self.ends_at is not None and found > self.ends_at else found

    def moved_from(self, at: Micros) -> str | None:
        """Return the wall time for which an instant stands because the clocks skipped it (`Trigger`).

        Raises:
            TriggerFailed: the trigger raised.
        """
        try:
            return self.trigger.moved_from(at)
        except Exception as error:
            raise _raised(error) from error

    def sentence(self) -> str:
        """Return the trigger's rule in English; where it raises, that it does: whoever lists goes on."""
        try:
            return str(self.trigger.sentence())
        except Exception as error:  # noqa: BLE001 - it may be anybody's code
            return f"By the rule of {type(self.trigger).__name__}, which cannot say it: {_raised(error)}"

    def tz(self) -> str | None:
        """Return the name of the zone whose wall clock the trigger follows; None: it follows none."""
        try:
            name = self.trigger.tz
        except Exception:  # noqa: BLE001 - it may be anybody's code
            return None
        return name if isinstance(name, str) else None

    def window(self, first: Micros, until: Micros, *, keep: int) -> Window:
        """Return what is due: the instants from `first`, which is one of them, up to `until`.

        Args:
            first: the earliest.
            until: the latest instant that counts, not before `first`.
            keep: how many of the newest to return; at least 1.

        Raises:
            TriggerFailed: as `next`.
        """
        found = [first]
        following = self.next(first)
        while following is not None and following <= until and len(found) < keep + STEPS:
            found.append(following)
            following = self.next(following)
        if following is None or following > until:
            earlier = found[:-keep]
            return Window(
                newest=tuple(found[-keep:]),
                following=following,
                earlier=len(earlier),
                earlier_first=earlier[0] if earlier else None,
                earlier_last=earlier[-1] if earlier else None,
            )
        return self._far_window(found, until, keep)

    def _far_window(self, found: list[Micros], until: Micros, keep: int) -> Window:
        """Return the window of which the first instants are `found`, and which has more than these."""
        newest = self._newest(found, until, keep)
        counted = _asked(lambda: self.trigger.count(found[0] - 1, newest[0] - 1))
        earlier = [instant for instant in found if instant < newest[0]]
        return Window(
            newest=tuple(newest),
            following=self.next(until),
            earlier=len(earlier) if counted is None else counted,
            is_exact=counted is not None,
            earlier_first=found[0],
            earlier_last=self._latest(earlier[-1], newest[0] - 1),
        )

    def _newest(self, found: list[Micros], until: Micros, keep: int) -> list[Micros]:
        """Return the newest instants up to `until`: looked for where they are if the rate is still the same.

        Where there are many more, each is found by bisection.
        """
        span = keep * ((found[-1] - found[0]) // (len(found) - 1) + 1)
        while True:
            start = max(found[-1], until - span)
            recent = self._between(start, until, most=keep + STEPS)
            if recent is None:
                return self._bisected(start, until, keep)
            if len(recent) >= keep or start == found[-1]:
                return [*found, *recent][-keep:]
            span *= 2

    def _between(self, after: Micros, until: Micros, *, most: int) -> list[Micros] | None:
        """Return the instants in (after, until]; None: there are more than `most`."""
        found: list[Micros] = []
        following = self.next(after)
        while following is not None and following <= until:
            if len(found) == most:
                return None
            found.append(following)
            following = self.next(following)
        return found

    def _bisected(self, low: Micros, until: Micros, keep: int) -> list[Micros]:
        """Return the newest instants up to `until`, of which there are as many after `low`."""
        newest: list[Micros] = []
        for _ in range(keep):
            newest.append(self._latest(low, until))
            until = newest[-1] - 1
        newest.reverse()
        return newest

    def _latest(self, low: Micros, until: Micros) -> Micros:
        """Return the latest instant in (low, until], or `low` if there is none: by bisection."""
        high = until
        while low < high:
            middle = (low + high) // 2
            found = self.next(middle)
            if found is not None and found <= until:
                low = found
            else:
                high = middle
        return low


def _asked(ask: Callable[[], T]) -> T:
    """Return what a trigger answers, which may be anybody's code."""
    try:
        return ask()
    except Exception as error:
        raise _raised(error) from error


def _raised(error: Exception) -> TriggerFailed:
    return TriggerFailed(f"its trigger raised {type(error).__name__}: {error}")
