"""Kinds of values on the command line."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import click


class DurationType(click.ParamType):  # type: ignore[type-arg]  # generic in late versions of click only
    """A length of time: seconds, or text such as `1h30m`; the value is in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds."""
        from betimes.core.durations import duration_s  # noqa: PLC0415 - `--help` does without
        from betimes.errors import ConfigurationError  # noqa: PLC0415

        name = param.name if param is not None and param.name else "the value"
        try:
            text = float(value) if isinstance(value, str) and _is_number(value) else value
            return duration_s(text, name=name, allow_zero=True)
        except ConfigurationError as error:
            self.fail(str(error), param, ctx)


class InstantType(click.ParamType):  # type: ignore[type-arg]  # as above
    """An instant in ISO format, with its zone: `2026-03-01T09:00+01:00`, or with a `Z` for UTC."""

    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the aware instant."""
        if isinstance(value, datetime):
            found = value
        else:
            try:
                found = datetime.fromisoformat(value)
            except ValueError:
                self.fail(f"{value!r} is no instant: write for example 2026-03-01T09:00+01:00", param, ctx)
        if found.utcoffset() is None:
            full = value if ":" in str(value) else f"{value}T09:00"
            self.fail(f"{value!r} has no zone: add one, such as {full}+01:00, or Z for UTC", param, ctx)
        return found


class DurationOrInstantType(click.ParamType):  # type: ignore[type-arg]  # as above
    """A length of time, or an instant."""

    name = "duration|instant"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta | datetime:
        """Return either."""
        if isinstance(value, timedelta | datetime):
            return value
        if isinstance(value, str) and "-" in value and not value.startswith("-"):
            return INSTANT.convert(value, param, ctx)
        return timedelta(seconds=DURATION.convert(value, param, ctx))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


DURATION = DurationType()
INSTANT = InstantType()
DURATION_OR_INSTANT = DurationOrInstantType()
