"""Progress bars for long work: on a terminal, on stderr, and only if `rich` is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

WORTH_IT = 50
"""Fewer steps are over before a bar could be read."""


def progress(steps: Sequence[T], label: str) -> Iterator[T]:
    """Yield the steps one after the other, with a bar if somebody looks and there are many."""
    if len(steps) < WORTH_IT or not sys.stderr.isatty():
        yield from steps
        return
    try:
        from rich.console import Console  # noqa: PLC0415 - loaded late, as in `output`
        from rich.progress import track  # noqa: PLC0415
    except ImportError:
        yield from steps
        return
    yield from track(steps, description=label, console=Console(stderr=True))
