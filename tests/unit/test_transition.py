"""What is written into a record: by an event, by the short ways that stores take, and what must hold then."""

from __future__ import annotations

import pytest
from tests.unit.lives import BOOM, ENDS_OF_AN_ATTEMPT, NOW, after, fields, label, ready, running

from betimes.core.events import (
    Claimed,
    Errored,
    Event,
    Snoozed,
    Succeeded,
)
from betimes.core.job import Job, JobStatus
from betimes.core.lifecycle import decide
from betimes.core.transition import claim, complete, enter, repeated, violations

# The short ways that stores take


@pytest.mark.parametrize("history", [[], [Claimed(NOW, "v"), Snoozed(NOW, 0)]], ids=["first", "second"])
def test_the_short_way_to_claim_does_what_the_event_does(history: list[Event]) -> None:
    job = after(ready(), *history)
    by_event, by_claim, other = after(job.copy(), Claimed(NOW + 1, "w")), job.copy(), ready()
    claim([by_claim, other], "w", NOW + 1)
    assert fields(by_claim) == fields(by_event)
    assert (other.status, other.worker) == (JobStatus.RUNNING, "w")


@pytest.mark.parametrize("history", [[], [Errored(NOW, BOOM, 0), Claimed(NOW, "w")]], ids=["first", "second"])
def test_the_short_way_to_complete_does_what_the_event_does(history: list[Event]) -> None:
    job = after(running(), *history)
    by_event, by_short = after(job.copy(), Succeeded(NOW + 1, b"1")), job.copy()
    step = decide(job, Succeeded(NOW + 1, b"1"))
    short = complete(by_short, NOW + 1, b"1")
    assert fields(by_short) == fields(by_event)
    assert {name: getattr(short, name) for name in step.__slots__} == {
        name: getattr(step, name) for name in step.__slots__
    }


@pytest.mark.parametrize("event", ENDS_OF_AN_ATTEMPT, ids=label)
def test_a_repeated_report_is_answered_like_the_first(event: Event) -> None:
    job = running()
    first = decide(job, event)
    enter(job, first)
    again = repeated(job)
    for name in ("before", "after", "result", "error", "reason"):
        assert getattr(again, name) == getattr(first, name), name
    assert job.status is not JobStatus.DELAYED or again.at == first.run_at
    assert not job.status.is_terminal or again.at == first.at


# Rule 6: each invariant is seen to break


@pytest.mark.parametrize(
    ("job", "field", "value", "rule"),
    [
        (ready(), "worker", "w", "worker ⇔ RUNNING"),
        (running(), "worker", None, "worker ⇔ RUNNING"),
        (ready(), "finished_at", NOW, "finished_at ⇔ terminal"),
        (ready(), "unmet", 1, "unmet > 0 ⇔ BLOCKED"),
        (running(), "parked", "task", "parked ⇒ READY"),
        (running(), "result", b"1", "result ⇒ COMPLETED"),
        (after(running(), Succeeded(NOW, b"1")), "result", None, "COMPLETED ⇒ result"),
        (ready(), "cancel_requested", True, "cancel requested ⇒ RUNNING or CANCELLED"),
        (ready(), "superseded", True, "superseded ⇒ RUNNING or terminal"),
        (running(), "attempt", 0, "attempt ≥ 1 while RUNNING"),
        (ready(), "attempt", 1, "fence ≥ attempt"),
    ],
)
def test_a_broken_invariant_is_named(job: Job, field: str, value: object, rule: str) -> None:
    broken = job.copy()
    setattr(broken, field, value)
    assert violations(broken) == [rule]
