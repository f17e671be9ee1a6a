"""What an attempt's code raised or returned, as values that keep nothing of it alive."""

from __future__ import annotations

import gc
import weakref
from asyncio import CancelledError
from collections.abc import Iterator
from datetime import timedelta
from typing import NoReturn

import pytest

from betimes.core.events import Errored, Snoozed, Succeeded, Withdrawn
from betimes.core.job import ErrorInfo
from betimes.core.outcome import (
    MESSAGE_KEPT,
    TRACEBACK_KEPT,
    AskedToCancel,
    AskedToSnooze,
    Raised,
    error_info,
    event_of,
    outcome_of,
)
from betimes.core.retry import RetryPolicy
from betimes.errors import Cancel, NonRetryableError, Snooze

NOW = 1_800_000_000_000_000
BOOM = ErrorInfo(type="ValueError", message="boom")


class Unprintable(Exception):
    def __init__(self, instead: BaseException) -> None:
        self.instead = instead

    def __str__(self) -> str:
        raise self.instead


class Nested:
    class Inner(Exception):
        pass


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def raised(error: BaseException) -> BaseException:
    """The error as it looks when it has been raised and caught: with a traceback."""
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001 - whatever it is
        return caught


def test_an_error_is_described_by_type_message_and_traceback() -> None:
    info = error_info(raised(ValueError("boom")))
    assert (info.type, info.message) == ("ValueError", "boom")
    assert info.traceback.startswith("Traceback (most recent call last):")
    assert info.traceback.endswith("ValueError: boom\n")


def test_a_type_of_ones_own_is_named_with_its_module() -> None:
    assert error_info(Nested.Inner()).type == f"{__name__}.Nested.Inner"


@pytest.mark.parametrize("instead", [RuntimeError("not even this"), SystemExit(4), GeneratorExit()])
def test_an_exception_that_cannot_be_printed_harms_nobody(instead: BaseException) -> None:
    info = error_info(raised(Unprintable(instead)))
    assert info.message == f"(its message cannot be shown: {type(instead).__name__})"
    assert "Unprintable" in info.traceback


def test_an_exception_whose_traceback_cannot_be_formatted_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_error: BaseException) -> NoReturn:
        raise RecursionError

    monkeypatch.setattr("traceback.format_exception", fail)
    info = error_info(raised(ValueError("boom")))
    assert (info.message, info.traceback) == ("boom", "")


def test_what_utf8_cannot_carry_is_escaped() -> None:
    info = error_info(raised(ValueError("bad \ud800 half")))
    assert info.message == r"bad \ud800 half"
    assert info.traceback.encode("utf-8").endswith(b"bad \\ud800 half\n")


def test_long_messages_are_cut_at_the_end_and_tracebacks_at_the_start() -> None:
    info = error_info(raised(ValueError("x" * 2 * TRACEBACK_KEPT + "the end")))
    assert len(info.message) == MESSAGE_KEPT
    assert len(info.traceback) == TRACEBACK_KEPT
    assert info.traceback.endswith("the end\n")


def test_case_143_nothing_of_the_error_or_its_frames_is_kept_alive(no_collector: None) -> None:
    class Big:
        pass

    def job() -> tuple[Raised, weakref.ref[Big]]:
        big = Big()
        try:
            raise ValueError("boom")
        except ValueError as error:
            outcome = outcome_of(error, RetryPolicy(2), 1)
            assert isinstance(outcome, Raised)
            return outcome, weakref.ref(big)

    outcome, big = job()
    assert big() is None, "the frame's locals are still there"
    assert outcome.error.message == "boom"


def test_a_policy_says_whether_an_error_may_be_retried() -> None:
    policy = RetryPolicy(3)
    boom = ValueError("boom")
    assert outcome_of(boom, policy, 2) == Raised(error_info(boom), may_retry=True)
    assert outcome_of(boom, policy, 3) == Raised(error_info(boom), may_retry=False)
    assert outcome_of(boom, None, 1) == Raised(error_info(boom), may_retry=False)
    hopeless = NonRetryableError("bad input")
    assert outcome_of(hopeless, policy, 1) == Raised(error_info(hopeless), may_retry=False, is_hopeless=True)


@pytest.mark.parametrize(
    ("delay", "microseconds"),
    [(5, 5_000_000), (0.5, 500_000), ("5m", 300_000_000), (timedelta(1), 86_400_000_000)],
)
def test_a_snooze_gives_its_delay(delay: object, microseconds: int) -> None:
    assert outcome_of(Snooze(delay), RetryPolicy(3), 1) == AskedToSnooze(microseconds)


@pytest.mark.parametrize("delay", ["soon", -1, None, float("nan")])
def test_a_snooze_that_means_nothing_is_a_failure_that_says_so(delay: object) -> None:
    outcome = outcome_of(Snooze(delay), RetryPolicy(3), 1)
    assert isinstance(outcome, Raised)
    assert not outcome.may_retry
    assert "Snooze" in outcome.error.message


def test_a_cancel_gives_its_reason() -> None:
    assert outcome_of(Cancel("nothing to do"), None, 1) == AskedToCancel("nothing to do")
    assert outcome_of(Cancel(), None, 1) == AskedToCancel("cancelled by the job")
    assert outcome_of(Cancel("\ud800" * MESSAGE_KEPT), None, 1) == AskedToCancel(
        "\\ud800" * (MESSAGE_KEPT // 6) + "\\ud8"
    )


def test_a_cancel_whose_reason_is_no_text_is_shown_as_text() -> None:
    assert outcome_of(Cancel(404), None, 1) == AskedToCancel("404")  # type: ignore[arg-type]


def test_case_050_a_cancelled_error_of_the_codes_own_is_a_failure_and_not_retried_unless_asked_for() -> None:
    error = raised(CancelledError())
    assert outcome_of(error, RetryPolicy(3), 1) == Raised(error_info(error), may_retry=False)
    assert outcome_of(error, RetryPolicy(3, retry_on=CancelledError), 1) == Raised(
        error_info(error), may_retry=True
    )
    assert error_info(error).type.endswith("CancelledError")


def test_each_outcome_is_one_event() -> None:
    assert event_of(Succeeded(0, b"1"), at=NOW, retry_in_us=5) == Succeeded(NOW, b"1")
    assert event_of(Raised(BOOM, may_retry=True), at=NOW, retry_in_us=5) == Errored(NOW, BOOM, 5)
    assert event_of(Raised(BOOM, may_retry=True), at=NOW, retry_in_us=None) == Errored(NOW, BOOM)
    assert event_of(AskedToSnooze(7), at=NOW, retry_in_us=None) == Snoozed(NOW, 7)
    assert event_of(AskedToCancel("why"), at=NOW, retry_in_us=None) == Withdrawn(NOW, "why")


def test_what_may_not_be_retried_is_not_whatever_back_off_was_drawn() -> None:
    assert event_of(Raised(BOOM, may_retry=False), at=NOW, retry_in_us=5) == Errored(NOW, BOOM)


def test_a_snooze_may_be_for_no_time_at_all() -> None:
    assert outcome_of(Snooze(0), RetryPolicy(1), 1) == AskedToSnooze(0)
