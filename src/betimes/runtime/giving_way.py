"""Giving way: what goes on for long without ever waiting lets the others of the loop run now and then."""

from __future__ import annotations

import types
from collections.abc import Generator


@types.coroutine
def let_others_run() -> Generator[None, None, None]:
    """Give the loop one turn."""
    yield
