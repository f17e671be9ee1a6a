"""The checker finds what it is there to find: each violation is planted here, and named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.system import evidence
from tests.system.checker import Final, Grid, Rules, check, claims_of
from tests.system.evidence import Entry

from betimes import AttemptInfo, FireInfo, FireOutcome, JobInfo, JobStatus
from betimes.core.durations import from_us

T0 = 1_800_000_000_000_000
S = 1_000_000
WORKER, OTHER = 11, 12
RULES = Rules(
    limits={"narrow": 2}, once=frozenset({"once"}), grids={"grid": Grid(start=T0, period=S, end=T0 + 2 * S)}
)


def at(second: float) -> datetime:
    return from_us(T0 + round(second * S))


def entry(what: str, second: float, job: str = "", *, worker: int = WORKER, **more: Any) -> Entry:
    known = Entry(what=what, at=T0 + round(second * S), worker=worker, job=job, task="loop", fence=1)
    return replace(known, **more)


def attempt(outcome: str, number: int = 1) -> AttemptInfo:
    return AttemptInfo(attempt=number, started_at=at(1), ended_at=at(2), outcome=outcome)


def job(name: str, *outcomes: str, status: JobStatus = JobStatus.COMPLETED, **more: Any) -> JobInfo:
    """A job that was claimed once for each outcome."""
    fence = len(outcomes) + outcomes.count("lost")
    info = JobInfo(
        id=name, version=1, task="loop", queue="default", priority=1, tags=(), key=None, status=status,
        attempt=1, attempts=tuple(attempt(outcome) for outcome in outcomes), crashes=outcomes.count("lost"),
        submitted_at=at(0), run_at=at(0), started_at=at(1), finished_at=at(2) if status.is_terminal else None,
        expires_at=None, depends_on=(), error=None, reason=None, worker=None, fence=fence,
        cancel_requested=False,
    )  # fmt: skip
    return replace(info, **more)


def fire(first: float, last: float, name: str | None, outcome: FireOutcome = FireOutcome.FIRED) -> FireInfo:
    return FireInfo(
        at=at(last), first_at=at(first), count=round(last - first) + 1, is_exact=True, outcome=outcome,
        decided_at=at(last), job_id=name, moved_from=None,
    )  # fmt: skip


def run(name: str, begin: float = 1, end: float | None = 2, **more: Any) -> list[Entry]:
    ended = [] if end is None else [entry("end", end, name, **more)]
    return [entry("begin", begin, name, **more), *ended]


def found(entries: Sequence[Entry], *jobs: JobInfo, fires: Sequence[FireInfo] | None = None) -> list[str]:
    rules = RULES if fires is not None else replace(RULES, grids={})
    final = Final(jobs={info.id: info for info in jobs}, fires={"grid": fires or ()})
    return check(entries, final, rules).violations


def test_a_sound_story_has_no_violations() -> None:
    entries = [
        entry("kept", 0, "a", key="k", due=T0),
        *run("a"),
        entry("recorded", 2, "a", status="completed"),
        entry("kept", 0, "b"),
        *run("b", begin=3, end=4),
    ]
    later = job("b", "completed", depends_on=("a",), finished_at=at(4))
    assert found(entries, job("a", "completed"), later) == []


def test_the_fences_of_all_claims_follow_from_the_history() -> None:
    assert claims_of(job("a", "failed", "lost", "given_back", "completed")) == {
        1: "failed",
        2: "lost",
        4: "given_back",
        5: "completed",
    }
    given_up = job("a", "lost", "failed", status=JobStatus.FAILED, fence=4)
    assert claims_of(given_up) == {1: "lost", 3: "lost"}


def test_a_lost_job_is_found() -> None:
    assert found([entry("kept", 0, "a")]) == ["a was acknowledged, and is not there"]
    assert found([], job("a", status=JobStatus.READY, attempts=())) == ["a is ready in the end"]
    assert found(run("a")) == ["a ran, and is not there"]


def test_two_jobs_under_one_key_are_found() -> None:
    entries = [entry("kept", 0, "a", key="k"), *run("a"), entry("kept", 0, "b", key="k"), *run("b")]
    assert found(entries, job("a", "completed"), job("b", "completed")) == ["key k stands for 2 jobs: a, b"]


def test_an_end_that_was_recorded_twice_is_found() -> None:
    twice = [*run("a"), *[entry("recorded", 2, "a", status="completed")] * 2]
    assert found(twice, job("a", "completed")) == ["the end of a was recorded 2 times"]
    both = [*run("a"), *run("a", begin=1.5, fence=2)]
    assert found(both, job("a", "completed", "completed")) == ["a was completed 2 times"]


def test_an_end_that_changed_afterwards_is_found() -> None:
    entries = [*run("a"), entry("recorded", 2, "a", status="failed")]
    assert found(entries, job("a", "completed")) == [
        "a was recorded as failed, and in the end the store says completed"
    ]


def test_a_completion_without_a_run_is_found() -> None:
    assert found(run("a", end=None), job("a", "completed")) == [
        "a is recorded as completed under fence 1, and no such run came to its end"
    ]


def test_a_run_without_a_claim_is_found() -> None:
    entries = [*run("a"), *run("a", begin=1.5, fence=2)]
    assert found(entries, job("a", "completed")) == [
        "a under fence 2 ran, and the store knows of no such claim"
    ]


def test_a_claim_that_started_twice_is_found() -> None:
    assert found([*run("a"), *run("a")], job("a", "completed")) == ["a was started 2 times under fence 1"]


def test_a_run_after_the_recorded_end_is_found() -> None:
    assert found(run("a", begin=3, end=4), job("a", "completed")) == [
        "a under fence 1 began after the end of the job had been recorded"
    ]


@pytest.mark.parametrize(
    ("what", "worker", "second", "outcome", "is_explained"),
    [
        ("cut", WORKER, 2, "lost", True),
        ("cut", WORKER, 0.5, "lost", True),
        ("cut", WORKER, -5, "lost", False),
        ("cut", OTHER, 2, "lost", False),
        ("told", WORKER, 2, "lost", False),
        ("told", WORKER, 2, "given_back", True),
        ("told", OTHER, 2, "given_back", False),
    ],
)
def test_a_repeated_run_is_explained_by_the_end_of_its_worker_only(
    what: str, worker: int, second: float, outcome: str, is_explained: bool
) -> None:
    last = 3 if outcome == "lost" else 2
    entries = [*run("a"), entry(what, second, worker=worker), *run("a", begin=1.5, fence=last)]
    verdict = check(entries, Final(jobs={"a": job("a", outcome, "completed")}), Rules())
    expected = f"a under fence 1 is {outcome}, though nobody stopped its worker"
    assert verdict.violations == ([] if is_explained else [expected])
    assert verdict.duplicates == ([f"a under fence 1 came to its end and was {outcome}"] * is_explained)


def test_a_start_before_its_time_is_found() -> None:
    entries = [entry("kept", 0, "a", due=T0 + 2 * S), *run("a")]
    assert found(entries, job("a", "completed")) == ["a began 1000000 µs before it was due"]


def test_a_start_before_the_end_of_a_dependency_is_found() -> None:
    entries = [*run("a"), *run("b", begin=1.5)]
    jobs = job("a", "completed"), job("b", "completed", depends_on=("a",))
    assert found(entries, *jobs) == ["b began before the end of a, which it depends on"]


@pytest.mark.parametrize(
    ("middle", "highest"),
    [
        ([], 3),
        ([entry("end", 1.1, "a", task="narrow")], 2),
        ([entry("cut", 1.1, worker=OTHER)], 2),
        ([entry("cut", 1.9, worker=OTHER)], 3),
    ],
)
def test_more_runs_at_once_than_the_limit_are_found(middle: list[Entry], highest: int) -> None:
    entries = [
        *run("a", end=None, task="narrow", worker=OTHER),
        *middle,
        *run("b", begin=1.05, task="narrow"),
        *run("c", begin=1.5, task="narrow"),
    ]
    expected = [f"{highest} of narrow ran at once, and the limit is 2"] if highest > 2 else []
    jobs = job("a", "cancelled", status=JobStatus.CANCELLED), job("b", "completed"), job("c", "completed")
    assert found(entries, *jobs) == expected


def test_a_second_start_of_what_may_start_once_is_found() -> None:
    entries = [*run("a", task="once"), entry("cut", 1.2), *run("a", begin=1.5, task="once", fence=3)]
    assert found(entries, job("a", "lost", "completed")) == ["a may start only once, and started 2 times"]


def tick(name: str, second: float, **more: Any) -> JobInfo:
    return job(name, "completed", schedule="grid", scheduled_for=at(second), **more)


def ticked(name: str, second: int) -> list[Entry]:
    return run(name, begin=1, scheduled_for=T0 + second * S)


SOUND = [fire(0, 0, "t0"), fire(1, 2, None, FireOutcome.MISSED)]


@pytest.mark.parametrize(
    ("entries", "jobs", "fires", "violations"),
    [
        (ticked("t0", 0), [tick("t0", 0)], SOUND, []),
        (
            [*ticked("t0", 0), *ticked("u0", 0)],
            [tick("t0", 0), tick("u0", 0)],
            SOUND,
            [f"grid fired 2 times for {T0}: t0, u0"],
        ),
        (
            [*ticked("t0", 0), *run("x", scheduled_for=T0 + S // 2)],
            [tick("t0", 0), tick("x", 0.5)],
            SOUND,
            [f"grid fired for {T0 + S // 2}, which is off its grid"],
        ),
        (
            ticked("t0", 1),
            [tick("t0", 0)],
            SOUND,
            [f"t0 was told that it is for {T0 + S}, and the store says {T0}"],
        ),
        (
            ticked("t0", 0),
            [tick("t0", 0)],
            SOUND[:1],
            [f"grid has 0 fates on record for {T0 + S * number}" for number in (1, 2)],
        ),
        (
            ticked("t0", 0),
            [tick("t0", 0)],
            [*SOUND, fire(1, 1, None, FireOutcome.MISSED)],
            [f"grid has 2 fates on record for {T0 + S}"],
        ),
        ([], [], SOUND, [f"grid fired for {T0}, and its job t0 is not there"]),
        (
            run("t2", begin=1, scheduled_for=T0 + 2 * S),
            [tick("t2", 2)],
            [fire(0, 1, None, FireOutcome.MISSED), fire(2, 2, "t2")],
            ["t2 began 1000000 µs before its schedule's instant"],
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_schedule_is_found(
    entries: list[Entry], jobs: list[JobInfo], fires: list[FireInfo], violations: list[str]
) -> None:
    assert found(entries, *jobs, fires=fires) == violations


def test_evidence_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "evidence"
    assert evidence.read(file) == []
    moment = T0 + timedelta(seconds=1) // timedelta(microseconds=1)
    evidence.note("begin", job="a", task="loop", fence=3, at=moment, worker=WORKER, file=file)
    evidence.note("cut", at=moment, worker=OTHER, file=file)
    assert evidence.read(file) == [
        Entry(what="begin", at=moment, worker=WORKER, job="a", task="loop", fence=3),
        Entry(what="cut", at=moment, worker=OTHER),
    ]


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    file = tmp_path / "evidence"
    evidence.note("begin", job="a", worker=WORKER, at=T0, file=file)
    whole = file.read_bytes()
    for length in range(1, len(whole) - 1):
        file.write_bytes(whole[:length])
        assert evidence.read(file) == []
        evidence.note("end", job="a", worker=WORKER, at=T0, file=file)
        assert [entry.what for entry in evidence.read(file)] == ["end"]
