"""When a need is met or lost, and which graphs are refused."""

from __future__ import annotations

from itertools import product

import pytest

from betimes.core.dependencies import in_order, is_met, settle
from betimes.core.events import DependencyFailed, Released
from betimes.core.job import Job, JobSpec, JobStatus, Need
from betimes.errors import DependencyCycle

NOW = 1_800_000_000_000_000


def job(status: JobStatus, *, unmet: int = 0, id: str = "a") -> Job:  # noqa: A002 - the field's word
    made = Job(id, JobSpec(task="t"), submitted_at=NOW, run_at=NOW)
    made.status, made.unmet = status, unmet
    return made


@pytest.mark.parametrize(("need", "status"), list(product(Need, JobStatus)))
def test_p15_a_need_is_met_lost_or_still_open(need: Need, status: JobStatus) -> None:
    answers = {
        JobStatus.COMPLETED: True,
        JobStatus.FAILED: need is Need.ENDED,
        JobStatus.TIMED_OUT: need is Need.ENDED,
        JobStatus.CANCELLED: need is Need.ENDED,
    }
    assert is_met(need, status) is answers.get(status)


def test_the_last_dependency_releases() -> None:
    waiting = job(JobStatus.BLOCKED, unmet=2)
    assert settle(waiting, Need.COMPLETED, job(JobStatus.COMPLETED), NOW) is None
    assert waiting.unmet == 1
    assert settle(waiting, Need.ENDED, job(JobStatus.FAILED), NOW) == Released(NOW)


def test_a_lost_dependency_is_named_however_many_others_are_open() -> None:
    waiting = job(JobStatus.BLOCKED, unmet=3)
    lost = settle(waiting, Need.COMPLETED, job(JobStatus.TIMED_OUT, id="parent"), NOW)
    assert lost == DependencyFailed(NOW, "parent")
    assert waiting.unmet == 3


def test_names_are_put_behind_what_they_depend_on() -> None:
    order = in_order({"d": ["b", "c"], "b": ["a"], "c": ["a"], "a": []})
    assert sorted(order) == ["a", "b", "c", "d"]
    assert (order[0], order[-1]) == ("a", "d")


def test_no_names_have_an_order_too() -> None:
    assert in_order({}) == []


def test_p15_a_circle_is_refused_and_named() -> None:
    with pytest.raises(DependencyCycle, match="in a circle: ") as caught:
        in_order({"a": ["b"], "b": ["c"], "c": ["a"], "x": []})
    cycle = caught.value.cycle
    assert cycle[0] == cycle[-1]
    assert sorted(cycle[1:]) == ["a", "b", "c"]
    assert " → ".join(cycle) in str(caught.value)


def test_a_job_that_waits_for_itself_is_a_circle() -> None:
    with pytest.raises(DependencyCycle) as caught:
        in_order({"a": ["a"]})
    assert caught.value.cycle == ("a", "a")


def test_a_circle_is_raised_without_the_error_it_was_found_by() -> None:
    with pytest.raises(DependencyCycle) as caught:
        in_order({"a": ["a"]})
    assert caught.value.__suppress_context__
