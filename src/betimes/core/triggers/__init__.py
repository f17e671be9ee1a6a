"""Triggers: pure rules that yield instants, exactly right in every zone."""

from betimes.core.triggers.calendar_trigger import CalendarTrigger, calendar
from betimes.core.triggers.combine import ExclusionTrigger, UnionTrigger
from betimes.core.triggers.cron_trigger import CronTrigger, cron
from betimes.core.triggers.interval import IntervalTrigger, every
from betimes.core.triggers.once import OnceTrigger, at
from betimes.core.triggers.stored import trigger_from_stored
from betimes.core.triggers.trigger import Trigger

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
