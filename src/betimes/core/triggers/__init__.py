"""Triggers: pure rules that yield instants, exactly right in every zone.

Each kind is imported when it is first used: a program without schedules need not wait for time zones.
"""

from typing import TYPE_CHECKING, Any

from betimes.core.triggers.trigger import Trigger

if TYPE_CHECKING:
    from betimes.core.triggers.calendar_trigger import CalendarTrigger, calendar
    from betimes.core.triggers.combine import ExclusionTrigger, UnionTrigger
    from betimes.core.triggers.cron_trigger import CronTrigger, cron
    from betimes.core.triggers.interval import IntervalTrigger, every
    from betimes.core.triggers.once import OnceTrigger, at
    from betimes.core.triggers.stored import trigger_from_stored

__all__ = [
    "CalendarTrigger",
    "CronTrigger",
    "ExclusionTrigger",
    "IntervalTrigger",
    "OnceTrigger",
    "Trigger",
    "UnionTrigger",
    "at",
    "calendar",
    "cron",
    "every",
    "trigger_from_stored",
]

_ON_FIRST_USE = {
    "CalendarTrigger": "calendar_trigger",
    "CronTrigger": "cron_trigger",
    "ExclusionTrigger": "combine",
    "IntervalTrigger": "interval",
    "OnceTrigger": "once",
    "UnionTrigger": "combine",
    "at": "once",
    "calendar": "calendar_trigger",
    "cron": "cron_trigger",
    "every": "interval",
    "trigger_from_stored": "stored",
}
"""Where each name is."""


def __getattr__(name: str) -> Any:
    """Import a name of `_ON_FIRST_USE`."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only here

    found = getattr(import_module(f"{__name__}.{_ON_FIRST_USE[name]}"), name)
    globals()[name] = found  # the next time it is found without asking here
    return found
