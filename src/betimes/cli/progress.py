"""Progress bars for long work: on a terminal, on stderr, and only if `rich` is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

WORTH_IT = 50
"""Fewer steps are over before a bar could be read."""


class Advance(Protocol):
    """Tells a bar that so many steps more are done, and how many there are in all if that is news."""

    def __call__(self, steps: int, total: int | None = None, /) -> None:
        """Tell."""


@contextmanager
def bar(label: str, total: int) -> Iterator[Advance]:
    """Show a bar while the block runs, if somebody looks and there is much to do.

    Args:
        label: what is being done.
        total: how many steps there are; 0: that is not known yet.
    """
    if 0 < total < WORTH_IT or not sys.stderr.isatty():
        yield _nobody_looks
        return
    try:
        from rich.console import Console  # noqa: PLC0415 - loaded late, as in `output`
        from rich.progress import Progress  # noqa: PLC0415
    except ImportError:
        yield _nobody_looks
        return
    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(label, total=total or None)

        def advance(steps: int, total: int | None = None, /) -> None:
            shown.update(task, total=total, advance=steps)

        yield advance


def _nobody_looks(_steps: int, _total: int | None = None, /) -> None:
    """Show nothing."""
