"""Ends of pipes whose closing says that this process is dead: no copy of this process may hold them."""

from __future__ import annotations

import os

_held: set[int] = set()


def hold(fd: int) -> None:
    """Let no process that is forked from this one hold this descriptor, now or later.

    What is started as another program never does. But a plain `fork` (of `multiprocessing`, say) copies all
    descriptors, and whoever waits for this process's end would wait for that of the copy, too.
    """
    _held.add(fd)


def let_go(fd: int) -> None:
    """Hold it no more: it is about to be closed."""
    _held.discard(fd)


def _replace_all() -> None:
    # Not closed: the copy's objects still have these numbers, and may close them after others got them.
    if _held:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in _held:
            os.dup2(null, fd, inheritable=False)
        os.close(null)
        _held.clear()


os.register_at_fork(after_in_child=_replace_all)
