"""What the program of the fenced worker and its tests agree on."""

from __future__ import annotations

from pathlib import Path

LEASE, LEASE_S = "6s", 6.0


def cut_off_beside(file: Path) -> Path:
    """The file that is there once the worker is cut off: then the brief job ends, unheard."""
    return file.with_suffix(".cut")


KINDS = ("loop", "thread", "process", "command")
"""The tasks whose code goes on until it is stopped."""
