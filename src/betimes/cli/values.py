"""Kinds of values on the command line."""

from __future__ import annotations

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


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


DURATION = DurationType()
