"""`postgres`, a server of this test process, and `postgres_url`, a fresh schema on it.

Each process of pytest-xdist has a server of its own: what a test sees or ends there (locks, sessions,
notifications) is then nobody else's. It starts when the first test asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.postgres.server import Server, all_programs, fresh_schema, start_server

ALL = "BETIMES_TEST_PG_ALL"  # set to 1, the tests run on every version that there is


def _version(programs: Path) -> str:
    """Such as 15, in the names of tests; of the wheel, `pginstall`."""
    return programs.parent.name


@pytest.fixture(scope="session", params=all_programs() if os.environ.get(ALL) == "1" else None, ids=_version)
def postgres(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server; without any programs of one, the test fails."""
    programs: Path | None = getattr(request, "param", None)
    with start_server(programs=programs) as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Server) -> Iterator[str]:
    """A URL with a schema of its own."""
    with fresh_schema(postgres) as url:
        yield url
