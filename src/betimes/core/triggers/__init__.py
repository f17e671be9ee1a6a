"""Triggers: pure rules that yield instants."""

from betimes.core.triggers.trigger import Trigger

__all__ = ["Trigger"]
