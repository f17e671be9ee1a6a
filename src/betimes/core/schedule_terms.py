"""What a schedule was asked to do: its trigger and policies, as its stored definition keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from betimes.core.grid import Grid
from betimes.core.job import Micros
from betimes.core.schedule import Missed, Overlap
from betimes.core.triggers import Trigger
from betimes.errors import BetimesError

MAX_CATCHUP = 100
"""How many missed instants `missed="all"` makes up for, unless told otherwise."""

MOST_CATCHUP = 1000

OWN_KIND = "own"
"""The kind under which a trigger of a user's own class stands in a store, which cannot keep its code."""


class ScheduleTerms(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule's trigger and policies.

    Attributes:
        trigger: its stored form (`Trigger.stored`); of a user's own class, only its name and words.
        overlap, missed, max_catchup: its policies.
        jitter_us: each run starts up to so much later than its instant.
        starts_at, ends_at: no fire is earlier or later; None: no bound.
        expires_us: how long its jobs may wait for their first start; None: for ever.
        anchor: where its grid begins, if the trigger has none of its own.
        created_at: when it was added first.
        is_declared: a task's decorator asked for it.
        gates: of its jobs, for a process that fires it and does not know the task.
    """

    trigger: Mapping[str, Any]
    overlap: Overlap = Overlap.SKIP
    missed: Missed = Missed.LATEST
    max_catchup: int = MAX_CATCHUP
    jitter_us: int = 0
    starts_at: Micros | None = None
    ends_at: Micros | None = None
    expires_us: int | None = None
    anchor: Micros = 0
    created_at: Micros = 0
    is_declared: bool = False
    gates: tuple[str, ...] = ()

    @property
    def is_own(self) -> bool:
        """Whether its trigger is of a user's own class, known only to the process that added it."""
        return self.trigger.get("kind") == OWN_KIND

    def to_text(self) -> str:
        """Return the definition that a store keeps."""
        return _encode(self).decode()

    @classmethod
    def from_text(cls, text: str) -> ScheduleTerms:
        """Read a definition that a store has kept.

        Raises:
            BetimesError: it cannot be read, being damaged or of another version.
        """
        try:
            return _decode(text)
        except msgspec.MsgspecError as error:
            raise BetimesError(f"the schedule's stored definition cannot be read: {error}") from error

    def asks_the_same_as(self, other: ScheduleTerms) -> bool:
        """Say whether both ask for the same, whenever they were added."""
        return replace(self, anchor=other.anchor, created_at=other.created_at) == other

    def read_trigger(self) -> Trigger:
        """Return the trigger with its grid in place.

        Raises:
            BetimesError: it cannot be read here: an unknown zone, or a kind of another version.
        """
        from betimes.core.triggers import trigger_from_stored  # noqa: PLC0415 - only where there are schedules

        return trigger_from_stored(self.trigger).anchored(self.anchor)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ScheduleTerms).decode


def stored_trigger(trigger: Trigger) -> Mapping[str, Any]:
    """Return what a store keeps of a trigger."""
    stored = trigger.stored()
    if stored is not None:
        return stored
    kind = type(trigger)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return {"kind": OWN_KIND, "name": name, "text": Grid(trigger=trigger).sentence()}
