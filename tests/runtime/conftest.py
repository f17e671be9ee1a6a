"""Fixtures of the engine's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runtime.stage import STORES, StoreMaker, store_maker


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> StoreMaker:
    """A store of each kind."""
    return store_maker(request.param, tmp_path)
