"""Limits, rates, retry budgets and breakers as users write them: what they mean, and what is refused."""

from __future__ import annotations

from copy import copy
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from betimes.core.limits import GateKind, GateTerms
from betimes.core.restraints import (
    MOST_RUNNING,
    MOST_TOKENS,
    NAME_LENGTH,
    CircuitBreaker,
    Limit,
    Rate,
    RetryBudget,
)
from betimes.errors import ConfigurationError

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

UNPRINTABLE = ["", "a\tb", "a\nb", "\x00", "x" * (NAME_LENGTH + 1), 5, None, b"a"]


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


# limits


def test_a_limit_means_its_terms() -> None:
    limit = Limit("payments API", max_running=5, by="customer")
    assert limit.terms == GateTerms(kind=GateKind.LIMIT, name="payments API", max_running=5, by="customer")
    assert Limit("x", 1).terms.by is None
    assert Limit("x", 1) == Limit("x", 1) != Limit("x", 2)
    assert len({Limit("x", 1), Limit("x", 1)}) == 1


@pytest.mark.parametrize("name", UNPRINTABLE)
def test_a_limit_s_name_is_printable_text(name: Any) -> None:
    if name is None:
        name = Unshowable()
    with pytest.raises(ConfigurationError, match=r"^a limit's name must be text of 1 to 200 printable"):
        Limit(name, 1)


@pytest.mark.parametrize("by", [each for each in UNPRINTABLE if each is not None])
def test_the_argument_of_a_limit_is_named_by_text(by: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^by must be text"):
        Limit("x", 1, by=by)


@pytest.mark.parametrize("number", [0, -1, True, 1.0, "5", None, MOST_RUNNING + 1])
def test_a_limit_lets_a_whole_number_run(number: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^max_running is .*; it is a whole number from 1 to 1,000,000$"
    ):
        Limit("x", number)


def test_a_limit_may_be_as_large_as_is_said() -> None:
    assert Limit("x", MOST_RUNNING).terms.max_running == MOST_RUNNING
    assert Limit("x" * NAME_LENGTH, 1).name == "x" * NAME_LENGTH


# rates


@pytest.mark.parametrize(
    ("text", "every_us"),
    [
        ("1/s", SECOND),
        ("10/s", SECOND // 10),
        ("10/sec", SECOND // 10),
        ("10/second", SECOND // 10),
        ("600/m", SECOND // 10),
        ("600/min", SECOND // 10),
        ("600/minute", SECOND // 10),
        ("1000/h", 3_600_000),
        ("1000/hour", 3_600_000),
        ("5/d", DAY // 5),
        ("5/day", DAY // 5),
        ("3/10s", 3_333_334),  # rounded up, or the rate would be exceeded
        ("1/250ms", 250_000),
        ("2/1h30m", 45 * MINUTE),
        ("1/1.5s", 1_500_000),
        (" 10 / s ", SECOND // 10),
        ("010/s", SECOND // 10),
        ("1000000/s", 1),
        ("7/d", -(-DAY // 7)),
    ],
)
def test_each_form_of_a_rate_spreads_its_starts_evenly(text: str, every_us: int) -> None:
    assert Rate(text).every_us == every_us


@pytest.mark.parametrize(
    "text",
    [
        *("", "10", "10/", "/s", "0/s", "-1/s", "1.5/s", "ten/s", "10//s", "10/s/s", "1e3/s", "10/S", "٣/s"),
        *("10 per second", "1234567890/s", "10/" + "s" * 41),
        *(10, 0.5, None, b"10/s", timedelta(seconds=1)),
    ],
)
def test_what_is_no_rate_is_told_how_to_write_one(text: Any) -> None:
    with pytest.raises(ConfigurationError, match=r'^rate is .*; write how many in what time, such as "10/s"'):
        Rate(text)


@pytest.mark.parametrize("text", ["1/fortnight", "1/10", "1/1s2h", "1/..", "1/0.5.1s"])
def test_the_period_of_a_rate_is_a_duration(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^the rate's period="):
        Rate(text)


def test_the_period_of_a_rate_is_more_than_zero() -> None:
    with pytest.raises(ConfigurationError, match=r"^the rate's period must be more than zero"):
        Rate("1/0s")


@pytest.mark.parametrize("text", ["1000001/s", "2/1us", "999999999/m"])
def test_a_rate_is_at_most_a_million_a_second(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"is too fast: at most 1,000,000 a second$|^the rate's per"):
        Rate(text)


@pytest.mark.parametrize("burst", [0, -1, True, 2.0, "2", None, MOST_TOKENS + 1])
def test_a_burst_is_a_whole_number(burst: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^burst is .*; it is a whole number from 1 to 1,000,000$"):
        Rate("1/s", burst)


@pytest.mark.parametrize("name", [each for each in UNPRINTABLE if each is not None])
def test_a_rate_s_names_are_printable_text(name: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^a rate's name must be text"):
        Rate("1/s", name=name)
    with pytest.raises(ConfigurationError, match=r"^by must be text"):
        Rate("1/s", by=name)


def test_a_rate_without_a_name_has_its_task_s() -> None:
    terms = Rate("10/s", burst=5, by="host").terms("app.fetch")
    assert terms == GateTerms(kind=GateKind.RATE, name="app.fetch", every_us=100_000, burst=5, by="host")
    assert Rate("10/s", name="smtp").terms("app.fetch").name == "smtp"


def test_two_ways_to_write_a_rate_mean_the_same_terms() -> None:
    assert Rate("10/s", name="x").terms("t") == Rate("600/min", name="x").terms("t")


# retry budgets


def test_a_budget_has_a_ratio_and_a_window() -> None:
    assert (RetryBudget().ratio, RetryBudget().window_us) == (0.1, MINUTE)
    budget = RetryBudget(ratio=1, window=timedelta(seconds=5))
    assert (budget.ratio, budget.window_us) == (1.0, 5 * SECOND)
    assert isinstance(budget.ratio, float)


@pytest.mark.parametrize("ratio", [0, -0.1, 1.01, True, "0.1", None, float("nan"), float("inf"), 10**400])
def test_a_budget_is_a_share(ratio: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^ratio is .*; it is a share, more than 0 and at most 1$"):
        RetryBudget(ratio)


@pytest.mark.parametrize("window", [0, -1, "soon", None, True, float("nan")])
def test_a_window_is_a_duration(window: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^window"):
        RetryBudget(0.1, window)
    with pytest.raises(ConfigurationError, match=r"^window"):
        CircuitBreaker(window=window)


# circuit breakers


def test_a_breaker_is_a_gate_of_its_task() -> None:
    breaker = CircuitBreaker(failures=3, window="10s", open_for="1m")
    assert (breaker.failures, breaker.window_us, breaker.open_for_us) == (3, 10 * SECOND, MINUTE)
    assert breaker.terms("app.fetch") == GateTerms(kind=GateKind.BREAKER, name="app.fetch", every_us=MINUTE)
    standard = CircuitBreaker()
    assert (standard.failures, standard.window_us, standard.open_for_us) == (5, MINUTE, 30 * SECOND)


@pytest.mark.parametrize("failures", [0, -1, True, 1.0, "5", None, 10_001])
def test_a_breaker_counts_whole_failures(failures: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^failures is .*; it is a whole number from 1 to 10,000$"):
        CircuitBreaker(failures)


@pytest.mark.parametrize("open_for", [0, -1, "soon", None, True])
def test_a_breaker_stays_open_for_a_duration(open_for: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^open_for"):
        CircuitBreaker(open_for=open_for)


@pytest.mark.parametrize("value", [Limit("x", 1), Rate("1/s"), RetryBudget(), CircuitBreaker()])
def test_restraints_are_values(value: Any) -> None:
    with pytest.raises(AttributeError):
        setattr(value, fields(value)[0].name, "other")
    assert {value: 1}[copy(value)] == 1
