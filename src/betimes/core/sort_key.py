"""The range of sort keys: signed 64-bit numbers, smaller first."""

from __future__ import annotations

SMALLEST_KEY = -(2**63)
LARGEST_KEY = 2**63 - 1
