"""What the program of the stale worker and its test agree on."""

from __future__ import annotations

SLEEP_S = 3.0
"""How long the code of a job sleeps under its first fence; its worker is stopped meanwhile."""

JOBS = 5
