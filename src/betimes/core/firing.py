"""What is due of a schedule: planned purely, on the schedule as it was seen.

An instant counts as *missed* when it could not be fired near its time: a later one is due as well, or it
lies more than `LATE_US` back. Nothing is dropped for being a second late: `missed="latest"`, the default,
runs the newest instant however late it is.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from betimes.core.grid import Grid, TriggerFailed, Window
from betimes.core.job import Job, Micros
from betimes.core.schedule import Advance, Fire, FireOutcome, Missed, Overlap, ScheduleRecord, delayed
from betimes.core.schedule_terms import ScheduleTerms

LATE_US = 30_000_000
"""How long after its instant a fire is still on time."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What it takes to plan a step, besides the schedule.

    Attributes:
        terms: its policies.
        grid: its instants.
        now: the instant at which it is looked at.
        new_job: makes the job of an instant; it is kept only if the store settles it so.
    """

    terms: ScheduleTerms
    grid: Grid
    now: Micros
    new_job: Callable[[Micros], Job]

    def advance(self, record: ScheduleRecord) -> Advance:
        """Plan the step of a schedule whose `next_fire_at` has come.

        Raises:
            TriggerFailed: the trigger raised, or did not advance.
        """
        first = record.next_fire_at
        assert first is not None, "only a schedule with a next fire can be due"
        if record.delay_us is not None:
            return self._after_delay(record, first)
        missed, allows = self.terms.missed, self.terms.overlap is Overlap.ALLOW
        keep = self.terms.max_catchup if missed is Missed.ALL else 1
        window = self.grid.window(first, self.now, keep=keep)
        due, following = window.newest, window.following
        if missed is Missed.SKIP and self.now - due[-1] > LATE_US:
            return self._advance(record, due=(), following=following, skips=self._all_missed(window))
        if missed is Missed.ALL and not allows:
            # One at a time and in order, so that its runs do not overlap; the others are still due then.
            due, following = due[:1], due[1] if len(due) > 1 else following
        return self._advance(record, due=due, following=following, skips=self._earlier(window))

    def _after_delay(self, record: ScheduleRecord, at: Micros) -> Advance:
        if self.terms.missed is Missed.SKIP and self.now - at > LATE_US:
            skip = self._skip(FireOutcome.MISSED, at, at, 1)
            return self._advance(record, due=(), following=delayed(record, self.now), skips=(skip,))
        return self._advance(record, due=(at,), following=None, skips=())

    def _advance(
        self,
        record: ScheduleRecord,
        *,
        due: tuple[Micros, ...],
        following: Micros | None,
        skips: tuple[Fire, ...],
    ) -> Advance:
        moved_from = self.grid.moved_from
        moved = {at: text for at in due if (text := moved_from(at)) is not None}
        return Advance(
            record=record,
            overlap=self.terms.overlap,
            missed=self.terms.missed,
            due=tuple([self.new_job(at) for at in due]),
            skips=skips,
            next_fire_at=following,
            is_late=bool(due) and self.now - due[0] > LATE_US,
            moved=moved,
        )

    def _earlier(self, window: Window) -> tuple[Fire, ...]:
        if window.earlier_first is None or window.earlier_last is None:
            return ()
        outcome = _OF_EARLIER[self.terms.missed]
        return (
            self._skip(
                outcome, window.earlier_first, window.earlier_last, window.earlier, is_exact=window.is_exact
            ),
        )

    def _all_missed(self, window: Window) -> tuple[Fire, ...]:
        (newest,) = window.newest
        first = newest if window.earlier_first is None else window.earlier_first
        return (self._skip(FireOutcome.MISSED, first, newest, window.earlier + 1, is_exact=window.is_exact),)

    def _skip(
        self, outcome: FireOutcome, first: Micros, last: Micros, count: int, *, is_exact: bool = True
    ) -> Fire:
        return Fire(
            at=last,
            first_at=first,
            count=count,
            is_exact=is_exact,
            outcome=outcome,
            decided_at=self.now,
        )


_OF_EARLIER = {
    Missed.LATEST: FireOutcome.MERGED,
    Missed.SKIP: FireOutcome.MISSED,
    Missed.ALL: FireOutcome.CATCH_UP,
}

__all__ = ["LATE_US", "Plan", "TriggerFailed"]
