"""What the stored definitions of schedules mean: each text is read once, and remembered."""

from __future__ import annotations

from betimes.core.grid import Grid, TriggerFailed
from betimes.core.schedule import ScheduleRecord
from betimes.core.schedule_terms import ScheduleTerms
from betimes.core.triggers import Trigger
from betimes.errors import BetimesError

REMEMBERED = 10_000
"""How many definitions are remembered before the memory is cleared."""


class TriggerElsewhere(BetimesError):
    """The schedule's trigger is of somebody's own class, and only the process that added it can fire it."""


class Definitions:
    """Reads definitions.

    Attributes:
        own: triggers of users' own classes, which no store can keep, by the id of the schedule.
    """

    def __init__(self) -> None:
        """Start without any."""
        self.own: dict[str, Trigger] = {}
        self._read: dict[str, tuple[ScheduleTerms, Grid]] = {}

    def read(self, record: ScheduleRecord) -> tuple[ScheduleTerms, Grid]:
        """Return a schedule's terms and its grid.

        Raises:
            TriggerElsewhere: the trigger is not known here.
            BetimesError: the definition cannot be read, or its trigger not here: an unknown zone, say.
        """
        text = record.definition
        known = self._read.get(text)
        if known is None:
            terms = ScheduleTerms.from_text(text)
            if terms.is_own:
                return terms, self.grid(terms, self._own_trigger(record, terms))
            known = terms, self.grid(terms, terms.read_trigger())
            if len(self._read) >= REMEMBERED:
                self._read.clear()
            self._read[text] = known
        return known

    def _own_trigger(self, record: ScheduleRecord, terms: ScheduleTerms) -> Trigger:
        trigger = self.own.get(record.id)
        if trigger is None:
            raise TriggerElsewhere(
                f"schedule {record.id!r} goes by a trigger of the class {terms.trigger.get('name')}, whose "
                "code no store can keep: add the schedule in this process too, or fire it where it was added"
            )
        try:
            return trigger.anchored(terms.anchor)
        except Exception as error:  # it is anybody's code
            raise TriggerFailed(f"its trigger raised {type(error).__name__}: {error}") from error

    @staticmethod
    def grid(terms: ScheduleTerms, trigger: Trigger) -> Grid:
        """Return the grid of an anchored trigger within a schedule's bounds."""
        return Grid(trigger=trigger, starts_at=terms.starts_at, ends_at=terms.ends_at)
