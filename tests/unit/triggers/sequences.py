"""The instants of a trigger one after another, as a schedule asks for them."""

from __future__ import annotations

from datetime import datetime

from betimes.core.triggers import Trigger


def following(trigger: Trigger, start: datetime, number: int) -> list[datetime]:
    """The next instants after `start`, fewer where there are no more."""
    found = [start]
    while len(found) <= number and (after := trigger.next(found[-1])) is not None:
        found.append(after)
    return found[1:]
