"""What cron refuses, by the field, and what it takes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from betimes.core.triggers import cron
from betimes.core.triggers.cron_fields import ALIASES, read_expression
from betimes.errors import BetimesError, InvalidTrigger

START = datetime(2025, 1, 1, tzinfo=UTC)


def refused(expr: object, *, seconds: bool = False) -> InvalidTrigger:
    with pytest.raises(InvalidTrigger) as caught:
        cron(expr, seconds=seconds)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert caught.value.allowed
    return caught.value


@pytest.mark.parametrize(
    ("expr", "found"), [("", 0), ("  \t ", 0), ("0 0 * *", 4), ("0 0 12 * * 1", 6), ("* * * * * * * *", 8)]
)
def test_another_number_of_fields_is_refused_with_the_number(expr: str, found: int) -> None:
    error = refused(expr)
    assert error.field == "expr"
    assert "5 fields (minute hour day-of-month month day-of-week)" in str(error)
    assert f"has {found}" in str(error)


def test_with_seconds_there_are_six_fields_and_seconds_stand_first() -> None:
    assert "6 fields (second minute" in str(refused("0 9 * * *", seconds=True))
    assert "seconds stand first" in str(refused("0 9 * * *", seconds=True))
    assert "has 0" in str(refused("", seconds=True))


@pytest.mark.parametrize(
    ("expr", "field", "text", "said"),
    [
        ("60 * * * *", "minute", "60", "60 is not in 0-59"),
        ("0 24 * * *", "hour", "24", "24 is not in 0-23"),
        ("0 0 0 * *", "day-of-month", "0", "0 is not in 1-31"),
        ("0 0 32 * *", "day-of-month", "32", "32 is not in 1-31"),
        ("0 0 1 0 *", "month", "0", "0 is not in 1-12"),
        ("0 0 1 13 *", "month", "13", "13 is not in 1-12"),
        ("0 0 * * 8", "day-of-week", "8", "8 is not in 0-7"),
        ("*/0 * * * *", "minute", "*/0", "from 1 on"),
        ("*/x * * * *", "minute", "*/x", "from 1 on"),
        ("5-5/0 * * * *", "minute", "5-5/0", "from 1 on"),
        ("*/60 * * * *", "minute", "*/60", "larger than what it steps through"),
        ("*/90 * * * *", "minute", "*/90", "larger than what it steps through"),
        ("0 */25 * * *", "hour", "*/25", "larger than what it steps through"),
        ("0 0 * * */8", "day-of-week", "*/8", "larger than what it steps through"),
        ("1-5/9 * * * *", "minute", "1-5/9", "larger than what it steps through"),
        ("5 22-5 * * *", "hour", "22-5", "write 22,23,0-5"),
        ("* 17-2/3 * * *", "hour", "17-2/3", "write 17,20,23,2"),
        ("0 0 * * sat-sun", "day-of-week", "sat-sun", "write sat,sun"),
        ("0 0 * * fri-mon", "day-of-week", "fri-mon", "write fri,sat,sun,mon"),
        ("0 0 * * wed-mon", "day-of-week", "wed-mon", "write wed-sat,sun,mon"),
        ("0 0 * * 7-2", "day-of-week", "7-2", "write sun-tue"),
        ("0 0 1 nov-feb *", "month", "nov-feb", "write nov,dec,jan,feb"),
        ("0 0 1 10-2/0 *", "month", "10-2/0", "write oct-dec,jan,feb"),
        ("5/15 * * * *", "minute", "5/15", "write 5-59/15"),
        ("0 0 * * 1/2", "day-of-week", "1/2", "write 1-6/2"),
        ("0,15, * * * *", "minute", "0,15,", "comma too many"),
        (",15 * * * *", "minute", ",15", "comma too many"),
        ("1--5 * * * *", "minute", "1--5", "'-5' is no number 0-59"),
        ("-5 * * * *", "minute", "-5", "a number is missing"),
        ("1.5 * * * *", "minute", "1.5", "'1.5' is no number 0-59"),
        ("** * * * *", "minute", "**", "'**' is no number 0-59"),
        ("*/5/2 * * * *", "minute", "*/5/2", "from 1 on"),
        ("0 0 1 january *", "month", "january", "one of jan, feb, mar"),
        ("0 0 * * foo", "day-of-week", "foo", "one of sun, mon, tue"),
        ("mon * * * *", "minute", "mon", "'mon' is no number 0-59"),
        ("0 0 * * 1#6", "day-of-week", "1#6", "1-5"),
        ("0 0 * * 1#0", "day-of-week", "1#0", "1-5"),
        ("0 0 * * 1-3#2", "day-of-week", "1-3#2", "'1-3' is neither"),
        ("0 0 * * 9#2", "day-of-week", "9#2", "9 is not in 0-7"),
        ("0 0 * * 8L", "day-of-week", "8l", "8 is not in 0-7"),
        ("0 0 * * L", "day-of-week", "l", "satL"),
        ("0 0 L-3 * *", "day-of-month", "l-3", "not supported"),
        ("0 0 W * *", "day-of-month", "w", "a number is missing"),
        ("0 0 32W * *", "day-of-month", "32w", "32 is not in 1-31"),
        ("0 0 1-5W * *", "day-of-month", "1-5w", "'1-5' is no number"),
        ("0 0 ? * 1", "day-of-month", "?", "write * instead"),
        ("H * * * *", "minute", "h", "'h' is no number 0-59"),
    ],
)
def test_a_wrong_field_is_named_with_its_text_and_what_to_write(
    expr: str, field: str, text: str, said: str
) -> None:
    error = refused(expr)
    assert (error.field, error.text) == (field, text)
    assert said in str(error)
    assert error.allowed.split(",")[0] in str(error), "the range is in the text too"
    assert isinstance(error, BetimesError)


def test_a_wrong_second_is_named_too() -> None:
    error = refused("61 0 9 * * *", seconds=True)
    assert (error.field, error.text, error.allowed) == ("second", "61", "0-59")


@pytest.mark.parametrize("expr", ["@reboot", "@fortnightly", "@", "@daily *", "@Every 5m"])
def test_an_unknown_alias_is_refused_with_those_there_are(expr: str) -> None:
    error = refused(expr)
    assert all(alias in str(error) for alias in ALIASES)


@pytest.mark.parametrize(
    ("expr", "char"),
    [
        ("\N{ARABIC-INDIC DIGIT FIVE} * * * *", "'\N{ARABIC-INDIC DIGIT FIVE}'"),
        ("0 9 * * *\0", r"'\x00'"),
        ("0 9 * * *\n0 10 * * *", r"'\n'"),
        ("0 9 * * *\n", r"'\n'"),
        ("0 9 * * \N{EN DASH}5", "'\N{EN DASH}'"),
    ],
)
def test_what_is_not_one_line_of_ascii_is_refused(expr: str, char: str) -> None:
    assert char in str(refused(expr))


def test_the_length_is_limited() -> None:
    assert "256" in str(refused(",".join(["1"] * 4000) + " * * * *"))
    assert cron("0" * 200 + "5 * * * *").next(START) == datetime(2025, 1, 1, 0, 5, tzinfo=UTC)


@pytest.mark.parametrize("expr", [None, 5, ["0", "9"], b"0 9 * * *"])
def test_what_is_no_text_is_refused(expr: object) -> None:
    assert "must be text" in str(refused(expr))


def test_seconds_is_true_or_false() -> None:
    assert refused("0 9 * * *", seconds=1).field == "seconds"  # type: ignore[arg-type]


@pytest.mark.parametrize(("alias", "expr"), list(ALIASES.items()))
def test_an_alias_is_its_expression(alias: str, expr: str) -> None:
    assert cron(alias).next(START) == cron(expr).next(START)
    assert cron(alias.upper(), seconds=True).next(START) == cron(expr).next(START)


@pytest.mark.parametrize(
    ("expr", "same"),
    [
        ("0 0 1 JAN-mar,Jul *", "0 0 1 1-3,7 *"),
        ("0 0 * * mon-fri/2", "0 0 * * 1,3,5"),
        ("0 0 * * friL", "0 0 * * 5L"),
        ("0 0 * * sun#2", "0 0 * * 7#2"),
        ("0 0 * * 0l", "0 0 * * 7L"),
        ("0 0 lw * *", "0 0 LW * *"),
        ("00 09 01 01 *", "0 9 1 1 *"),
        ("5-5 * * * *", "5 * * * *"),
        ("3,1,2,1 * * * *", "1-3 * * * *"),
        ("  0\t9   * * * ", "0 9 * * *"),
        ("0 0 * * 0-7", "0 0 * * *"),
    ],
)
def test_the_same_is_written_in_several_ways(expr: str, same: str) -> None:
    one, other, at = cron(expr), cron(same), START
    for _ in range(20):
        found = one.next(at)
        assert found is not None
        assert found == other.next(at)
        at = found


def test_minute_or_hour_with_a_star_follows_the_clock() -> None:
    def follows(expr: str, *, seconds: bool = False) -> bool:
        return read_expression(expr, seconds=seconds).follows_clock

    assert follows("* 9 * * *")
    assert follows("*/5 9 * * *")
    assert follows("*/5,7 9 * * *")
    assert follows("0 */2 * * *")
    assert not follows("7,*/5 9 * * *")
    assert not follows("0 9 */2 * */2")
    assert not follows("* 0 9 * * *", seconds=True)
