"""The record and what listeners see of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from betimes.core.job import (
    EMPTY_PAYLOAD,
    TERMINAL,
    WAITING,
    Arrivals,
    ErrorInfo,
    Job,
    JobEvent,
    JobSpec,
    JobStatus,
    Terms,
)

NOW = 1_800_000_000_000_000


def job() -> Job:
    made = Job("a", JobSpec(task="t", queue="q"), b"[[1],{}]", submitted_at=NOW, run_at=NOW, sort_key=-5)
    made.seq, made.attempt, made.fence = 7, 2, 3
    return made


def test_every_status_is_waiting_running_or_over() -> None:
    assert WAITING | TERMINAL | {JobStatus.RUNNING} == set(JobStatus)
    assert not WAITING & TERMINAL
    assert {status for status in JobStatus if status.is_terminal} == TERMINAL


def test_a_new_job_knows_what_it_was_given_and_nothing_else() -> None:
    terms = Terms(named=True)
    new = Job("a", JobSpec(task="t"), submitted_at=1, run_at=2, sort_key=3, expires_at=4, terms=terms)
    values = {name: getattr(new, name) for name in Job.__slots__ if name != "__weakref__"}
    given = {"id": "a", "spec": JobSpec(task="t"), "payload": EMPTY_PAYLOAD, "status": JobStatus.READY}
    given |= {"submitted_at": 1, "run_at": 2, "sort_key": 3, "expires_at": 4, "terms": terms}
    assert {name: values[name] for name in given} == given
    assert {values[name] for name in values.keys() - given.keys()} == {0, None, ()}  # 0 is False, too


def test_a_copy_has_all_values_and_a_life_of_its_own() -> None:
    first = job()
    for number, name in enumerate(Job.__slots__):
        if name != "__weakref__":
            setattr(first, name, f"value {number}")
    twin = first.copy()
    for name in Job.__slots__:
        if name != "__weakref__":
            assert getattr(twin, name) == getattr(first, name), name
    twin.id = "b"
    assert first.id != "b"


def test_a_job_has_the_priority_of_its_spec() -> None:
    assert Job("a", JobSpec(task="t", priority=-3), submitted_at=NOW, run_at=NOW).priority == -3


def test_jobs_are_not_compared() -> None:
    assert job() != job()
    with pytest.raises(TypeError):
        sorted([job(), job()])  # type: ignore[type-var]


def test_a_job_shows_what_one_looks_for_in_a_log() -> None:
    assert repr(job()) == "<Job a #7 t ready attempt=2 fence=3>"


def test_an_event_speaks_of_the_job_as_it_was() -> None:
    subject = job()
    event = JobEvent(subject, JobStatus.READY, JobStatus.RUNNING, at_us=NOW + 1, error="x")
    subject.attempt = 99
    assert (event.job_id, event.seq, event.task, event.queue) == ("a", 7, "t", "q")
    assert (event.before, event.after, event.attempt) == (JobStatus.READY, JobStatus.RUNNING, 2)
    assert (event.at_us, event.error) == (NOW + 1, "x")
    assert repr(event) == "<JobEvent a ready → running attempt=2>"


def test_a_submit_has_no_before() -> None:
    event = JobEvent(job(), None, JobStatus.DELAYED, at_us=NOW)
    assert (event.before, event.error) == (None, None)
    assert repr(event) == "<JobEvent a - → delayed attempt=2>"


def test_an_events_instant_is_exact_to_the_microsecond() -> None:
    event = JobEvent(job(), None, JobStatus.READY, at_us=253_402_300_799_999_999)
    assert event.at == datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert JobEvent(job(), None, JobStatus.READY, at_us=-1).at == datetime(
        1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC
    )


def test_arrivals_are_the_events_of_new_jobs_made_when_they_are_read() -> None:
    jobs = [Job(name, JobSpec(task="t"), submitted_at=NOW + n, run_at=NOW) for n, name in enumerate("abc")]
    jobs[1].status = JobStatus.DELAYED
    arrivals = Arrivals(jobs)
    expected = [
        ("a", None, JobStatus.READY, NOW),
        ("b", None, JobStatus.DELAYED, NOW + 1),
        ("c", None, JobStatus.READY, NOW + 2),
    ]
    assert len(arrivals) == 3
    for events in (list(arrivals), arrivals[:], [arrivals[0], arrivals[1], arrivals[-1]]):
        assert [(one.job_id, one.before, one.after, one.at_us) for one in events] == expected
    assert [event.job_id for event in arrivals[1:]] == ["b", "c"]
    assert list(Arrivals([])) == []


def test_an_error_without_a_message_is_its_type() -> None:
    assert str(ErrorInfo(type="ValueError", message="boom")) == "ValueError: boom"
    assert str(ErrorInfo(type="ValueError", message="")) == "ValueError"
