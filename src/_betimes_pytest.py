"""The pytest plugin of Betimes: the fixtures `jobs` and `betimes_scheduler`, and the marker `betimes`.

pytest loads this module in every run where Betimes is installed, whether the tests use it or not. So it
stands outside of the package, and imports the package when a fixture is first used.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from betimes import Scheduler
    from betimes.testing import Jobs

_MARKER = (
    "betimes(start=datetime(2030, 1, 1, tzinfo=UTC), seed=0): what the virtual clock of the fixture 'jobs' "
    "shows first, and the seed for jitter and ids"
)
_JOBS = pytest.StashKey["Jobs"]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def betimes_scheduler() -> Scheduler | None:
    """The scheduler that the fixture `jobs` tests: override it in conftest.py to return your program's."""
    return None


@pytest.fixture
def jobs(request: pytest.FixtureRequest, betimes_scheduler: Scheduler | None) -> Iterator[Jobs]:
    """Your program's scheduler under test: in memory, on virtual time, and afterwards as it was.

    See `betimes.testing.Jobs`. The scheduler is the one that `betimes_scheduler` returns, or `jobs.use(…)`
    names.
    """
    from betimes.testing import Jobs  # noqa: PLC0415 - not before somebody wants it

    with Jobs(betimes_scheduler, **_options(request.node)) as made:
        request.node.stash[_JOBS] = made
        yield made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failed test's report what its jobs raised: a job that fails makes no noise by itself."""
    report = yield
    made = item.stash.get(_JOBS, None)
    if made is not None and report.when == "call" and report.failed:
        failures = made.failures()
        if failures:
            report.sections.append(("Betimes: attempts that failed", failures))
    return report


def _options(node: pytest.Item) -> dict[str, Any]:
    """Return what the marker says, the nearest one first."""
    from betimes.core.options import reject_unknown  # noqa: PLC0415 - as above

    options: dict[str, Any] = {}
    for mark in node.iter_markers("betimes"):
        if mark.args:
            raise TypeError("@pytest.mark.betimes() takes its options by name: start=…, seed=…")
        reject_unknown(mark.kwargs, ("start", "seed"), where="@pytest.mark.betimes()")
        options = dict(mark.kwargs) | options
    return options
