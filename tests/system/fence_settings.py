"""What the program of the fenced worker and its tests agree on."""

from __future__ import annotations

LEASE, LEASE_S = "6s", 6.0
BRIEF_S = 2.0
"""How long the job takes that ends while its worker is cut off, before it lets go."""

KINDS = ("loop", "thread", "process", "command")
"""The tasks whose code goes on until it is stopped."""
