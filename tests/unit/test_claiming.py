"""The predicates of the claim, one by one."""

from __future__ import annotations

import pytest
from tests.unit.lives import NOW, ready, running

from betimes.core.claiming import has_room, is_due, is_expired, is_open, is_served, is_waiting_for_claim
from betimes.core.job import JobStatus

BLOCKED, DELAYED, READY = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY


@pytest.mark.parametrize(("run_at", "due"), [(NOW - 1, True), (NOW, True), (NOW + 1, False)])
def test_p14_a_job_is_due_from_its_run_at_on(run_at: int, due: bool) -> None:
    assert is_due(ready(run_at=run_at), NOW) is due


@pytest.mark.parametrize(
    ("expires_at", "over"), [(None, False), (NOW - 1, True), (NOW, True), (NOW + 1, False)]
)
def test_a_job_expires_at_its_instant(expires_at: int | None, over: bool) -> None:
    assert is_expired(ready(expires_at=expires_at), NOW) is over


def test_a_job_that_has_started_does_not_expire() -> None:
    job = running()
    job.expires_at = NOW
    assert not is_expired(job, NOW)


def test_a_worker_serves_all_queues_or_those_it_names() -> None:
    assert is_served("a", None)
    assert is_served("a", ("a", "b"))
    assert not is_served("c", ("a", "b"))
    assert not is_served("a", ())


def test_a_lane_that_is_not_named_has_no_room() -> None:
    assert has_room("loop", {"loop": 1})
    assert not has_room("loop", {"loop": 0})
    assert not has_room("process", {"loop": 1})


@pytest.mark.parametrize(
    ("queues", "paused", "free", "answer"),
    [
        (None, frozenset(), {"loop": 1}, True),
        (("q",), frozenset({"other"}), {"loop": 1}, True),
        (("other",), frozenset(), {"loop": 1}, False),
        (None, frozenset({"q"}), {"loop": 1}, False),
        (None, frozenset(), {"loop": 0, "thread": 1}, False),
    ],
)
def test_a_queue_and_lane_are_open_if_served_not_paused_and_with_room(
    queues: tuple[str, ...] | None, paused: frozenset[str], free: dict[str, int], answer: bool
) -> None:
    assert is_open("q", "loop", queues, paused, free) is answer


def test_what_is_ready_or_due_waits_for_the_claim() -> None:
    assert is_waiting_for_claim(ready(), NOW)
    delayed = ready(run_at=NOW + 5)
    assert not is_waiting_for_claim(delayed, NOW)
    assert is_waiting_for_claim(delayed, NOW + 5)


def test_what_is_parked_expired_blocked_or_running_does_not() -> None:
    parked = ready()
    parked.parked = "task:t"
    blocked = ready()
    blocked.status, blocked.unmet = BLOCKED, 1
    delayed = ready(run_at=NOW + 5, expires_at=NOW + 5)
    for job in (parked, blocked, running(), ready(expires_at=NOW)):
        assert not is_waiting_for_claim(job, NOW)
    assert not is_waiting_for_claim(delayed, NOW + 5)
