"""The range of sort keys."""

from __future__ import annotations

from betimes.core.sort_key import LARGEST_KEY, SMALLEST_KEY


def test_sort_keys_are_signed_64_bit_numbers() -> None:
    assert (LARGEST_KEY.bit_length(), SMALLEST_KEY + LARGEST_KEY) == (63, -1)
