"""What the package of triggers hands out, each kind when it is first asked for."""

from __future__ import annotations

import pytest

from betimes.core import triggers


def test_every_name_is_there() -> None:
    for name in triggers.__all__:
        assert getattr(triggers, name).__name__ == name


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'rrule'"):
        _ = triggers.rrule
