"""When a process is replaced, as a rule of numbers."""

from __future__ import annotations

import pytest

from betimes.core.recycle import Recycle
from betimes.errors import ConfigurationError


@pytest.mark.parametrize(
    ("jobs", "age_s", "is_due"), [(999, 600.0, False), (1000, 59.0, False), (1000, 60.0, True)]
)
def test_by_itself_a_process_goes_after_a_thousand_jobs_and_a_minute(
    jobs: int, age_s: float, is_due: bool
) -> None:
    assert Recycle().is_due(jobs=jobs, age_s=age_s) is is_due
    assert Recycle(memory=1).is_due(jobs=jobs, age_s=age_s) is is_due


def test_a_number_of_jobs_counts_alone() -> None:
    assert [Recycle(jobs=2).is_due(jobs=jobs, age_s=0.0) for jobs in (1, 2, 3)] == [False, True, True]


@pytest.mark.parametrize("name", ["jobs", "memory"])
@pytest.mark.parametrize("value", [0, -1, True, 1.5, "1"])
def test_what_is_no_number_of_at_least_one_is_refused(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=f"Recycle: {name} is .* whole number from 1"):
        Recycle(**{name: value})  # type: ignore[arg-type]
