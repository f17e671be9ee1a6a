"""How messages show values: short, and never an error of their own."""

from __future__ import annotations

_LONGEST = 80


def shown(value: object) -> str:
    """Return the value's `repr`, cut at 80 characters; where it has none, the name of its type.

    Example:
        >>> shown("a" * 100) == "'" + "a" * 79 + "…"
        True
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a value that cannot be shown must not hide what is wrong with it
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
