"""Asking which jobs were made: what makes the same call, and what a failed assertion says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from betimes import ConfigurationError, Context, Scheduler, every
from betimes.testing import Jobs, SubmittedCall

START = datetime(2030, 1, 1, tzinfo=UTC)
NOT_STORABLE: Any = object()

scheduler = Scheduler()


@dataclass(frozen=True)
class Letter:
    """An argument of a type of its own."""

    to: str
    copies: int = 1


@scheduler.task(name="send")
async def send(user: str, urgent: bool = False, *, via: str = "mail") -> None: ...


@scheduler.task(name="post")
async def post(context: Context, letter: Letter, tags: frozenset[str] = frozenset(), *more: int) -> None: ...


@scheduler.task(name="repeat")
async def repeat(word: str, times: int = 2) -> None: ...


@scheduler.task(name="collect")
async def collect(**numbers: int) -> None: ...


@scheduler.task(name="odd")
async def odd(path: Path = Path("/tmp"), marker: Any = NOT_STORABLE, number: float = 1.0) -> None: ...


@pytest.fixture
def betimes_scheduler() -> Scheduler:
    return scheduler


def test_calls_are_the_same_however_their_arguments_are_passed(jobs: Jobs) -> None:
    jobs.submit(send, "ada")
    same: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("ada",), {}),
        ((), {"user": "ada"}),
        (("ada", False), {}),
        (("ada",), {"urgent": False, "via": "mail"}),
    ]
    for args, kwargs in same:
        jobs.assert_submitted(send, *args, **kwargs)
        jobs.assert_submitted(send.bind(*args, **kwargs), times=1)
    jobs.submit(send, user="ada", via="mail")
    jobs.assert_submitted(send, "ada", times=2)
    others: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("ada", True), {}),
        (("ada",), {"via": "post"}),
        (("eve",), {}),
    ]
    for args, kwargs in others:
        jobs.assert_not_submitted(send, *args, **kwargs)


def test_values_are_compared_as_they_are_stored(jobs: Jobs) -> None:
    jobs.submit(post, Letter("ada"), frozenset("abcdefgh"), 1, 2)
    jobs.assert_submitted(post, Letter("ada", 1), frozenset("hgfedcba"), 1, 2)
    jobs.assert_not_submitted(post, Letter("ada", 2), frozenset("abcdefgh"), 1, 2)
    jobs.submit(collect, a=1, b=2)
    jobs.assert_submitted(collect, b=2, a=1)
    jobs.assert_not_submitted(collect, a=1)


def test_a_default_that_cannot_be_stored_stays_out_of_it(jobs: Jobs) -> None:
    jobs.submit(odd)
    jobs.assert_submitted(odd, Path("/tmp"), number=1)
    jobs.assert_not_submitted(odd, Path("/tmp"), "marked")


def test_without_arguments_any_job_of_the_task_counts(jobs: Jobs) -> None:
    jobs.assert_not_submitted(repeat)
    jobs.submit(repeat, "a")
    jobs.submit(repeat, "b")
    jobs.assert_submitted(repeat)
    jobs.submit(odd, number=2)
    jobs.assert_submitted(odd)
    jobs.assert_not_submitted(odd.bind())
    jobs.submit(odd)
    jobs.assert_submitted(odd.bind(), times=1)


def test_times_is_the_assertions_unless_the_function_has_one_too(jobs: Jobs) -> None:
    jobs.submit(repeat, "a", times=3)
    jobs.assert_submitted(repeat.bind("a", times=3), times=1)
    jobs.assert_submitted(repeat.bind("a", times=2), times=0)
    for task in (repeat, collect):
        with pytest.raises(ConfigurationError, match=r"assert_submitted\(task\.bind\(…\), times=…\)"):
            jobs.assert_submitted(task, times=1)
    for wrong in (-1, True, "2"):
        with pytest.raises(ConfigurationError, match="whole number"):
            jobs.assert_submitted(send, times=wrong)  # type: ignore[arg-type]


def test_a_failed_assertion_lists_what_was_submitted_instead(jobs: Jobs) -> None:
    jobs.submit(send, "ada")
    jobs.advance("1h")
    jobs.submit(send.using(delay="1h"), "eve", urgent=True)
    for _ in range(3):
        jobs.submit(repeat, "a")
    with pytest.raises(AssertionError) as caught:
        jobs.assert_submitted(send, "bob")
    assert str(caught.value) == (
        "send(user='bob') was not submitted\n"
        "jobs of send:\n"
        "  send(user='ada')  at 2030-01-01 00:00:00+00:00\n"
        "  send(user='eve', urgent=True)  at 2030-01-01 01:00:00+00:00, to run at 2030-01-01 02:00:00+00:00\n"
        "others: repeat (3)"
    )


def test_a_failed_assertion_says_how_often_it_was(jobs: Jobs) -> None:
    with pytest.raises(AssertionError, match=r"^send was not submitted\nthere were no jobs of send$"):
        jobs.assert_submitted(send)
    with pytest.raises(AssertionError, match=r"^send was submitted never, not twice"):
        jobs.assert_submitted(send, times=2)
    for _ in range(25):
        jobs.submit(send, "ada")
    with pytest.raises(
        AssertionError, match=r"^send\(user='ada'\) was submitted 25 times, not once\n"
    ) as caught:
        jobs.assert_submitted(send, "ada", times=1)
    assert str(caught.value).endswith("\n  and 5 more")
    with pytest.raises(AssertionError, match=r"^send\(user='ada'\) was submitted 25 times\n"):
        jobs.assert_not_submitted(send, user="ada")


def test_arguments_that_do_not_fit_are_refused_as_at_a_submit(jobs: Jobs) -> None:
    with pytest.raises(TypeError, match="usr"):
        jobs.assert_submitted(send, usr="ada")
    with pytest.raises(TypeError, match="missing"):
        jobs.assert_not_submitted(send, urgent=True)


def test_only_tasks_and_plain_bound_calls_are_asked_for(jobs: Jobs) -> None:
    other = Scheduler()

    @other.task
    async def foreign() -> None: ...

    for asked, words in [
        (foreign, "another scheduler"),
        (foreign.bind(), "another scheduler"),
        (send.fn, "takes a task, or a bound call"),
        (send.using(delay=1), "options such as delay are seen in submitted"),
        (send.using(delay=1).bind("ada"), "options of a call are not compared"),
        (send.using(queue="low").bind("ada"), "options of a call are not compared"),
    ]:
        with pytest.raises(ConfigurationError, match=words):
            jobs.assert_submitted(asked)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="has its arguments already"):
        jobs.assert_submitted(send.bind("ada"), "ada")


def test_what_was_submitted_is_told_in_order_and_decoded(jobs: Jobs) -> None:
    letter = Letter("ada")
    first = jobs.submit(post.using(priority=3, queue="slow", tags=["a"], delay="5m"), letter)
    jobs.submit(send, "eve")
    assert jobs.submitted() == [*jobs.submitted(post), *jobs.submitted(send)]
    assert jobs.submitted(post) == [
        SubmittedCall(
            task="post",
            arguments={"letter": letter},
            job_id=first.id,
            queue="slow",
            priority=3,
            tags=("a",),
            submitted_at=START,
            run_at=START + timedelta(minutes=5),
            schedule=None,
            scheduled_for=None,
        )
    ]


def test_a_schedules_jobs_are_told_too(jobs: Jobs) -> None:
    jobs.run(scheduler.add_schedule("greet", send.bind("ada"), every("1h")))
    jobs.advance("2h")
    jobs.assert_submitted(send, "ada", times=2)
    calls = jobs.submitted(send)
    assert [(call.schedule, call.scheduled_for) for call in calls] == [
        ("greet", START + timedelta(hours=1)),
        ("greet", START + timedelta(hours=2)),
    ]
    assert str(calls[0]) == "send(user='ada')  at 2030-01-01 01:00:00+00:00, by schedule greet"


def test_a_submit_that_found_an_older_job_by_its_key_has_made_none(jobs: Jobs) -> None:
    once = send.using(key="welcome-ada")
    assert jobs.submit(once, "ada").id == jobs.submit(once, "ada").id
    jobs.assert_submitted(send, times=1)


def test_what_its_task_can_no_longer_read_is_told_as_it_is_stored(jobs: Jobs) -> None:
    jobs.submit(send, "ada")
    made = jobs._store.made[0]
    jobs._store.made[0] = type(made)(made.id, made.spec, b'{"usr":"ada"}', 0, 0, None)
    assert jobs.submitted(send)[0].arguments == {"usr": "ada"}
