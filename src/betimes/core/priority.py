"""Priorities: whole numbers from -1000 to 1000, larger first."""

from __future__ import annotations

from enum import IntEnum

from betimes.core.wording import shown
from betimes.errors import ConfigurationError

LOWEST_PRIORITY = -1000
HIGHEST_PRIORITY = 1000


class Priority(IntEnum):
    """Names for common priorities; any whole number from -1000 to 1000 will do. `MEDIUM` is the default."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2
    CRITICAL = 3


def check_priority(value: object, *, name: str = "priority") -> int:
    """Return the priority as a plain `int`, or refuse it by its argument's name.

    Raises:
        ConfigurationError: not a whole number, or not within -1000…1000.

    Example:
        >>> check_priority(Priority.HIGH)
        2
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigurationError(f"{name} must be a whole number or a Priority, not {shown(value)}")
    if not LOWEST_PRIORITY <= value <= HIGHEST_PRIORITY:
        raise ConfigurationError(
            f"{name} must be within {LOWEST_PRIORITY}…{HIGHEST_PRIORITY}, not {shown(value)}"
        )
    return int(value)
