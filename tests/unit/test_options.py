"""Unknown names, priorities out of range, and values that cannot be shown."""

from __future__ import annotations

import pytest

from betimes.core.options import nearest, reject_unknown
from betimes.core.priority import Priority, check_priority
from betimes.core.wording import shown
from betimes.errors import ConfigurationError

OPTIONS = ("priority", "delay", "run_at", "retry", "timeout")


def test_the_nearest_name_is_found() -> None:
    assert nearest("prioritty", OPTIONS) == "priority"
    assert nearest("xyzzy", OPTIONS) is None
    assert nearest("a", []) is None


def test_known_options_pass() -> None:
    reject_unknown({"delay": 5, "retry": 3}, OPTIONS, where="using()")
    reject_unknown([], [], where="using()")


def test_case_160_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(
        TypeError, match=r"^using\(\) got an unknown option 'time_out'; did you mean 'timeout'\?$"
    ):
        reject_unknown({"delay": 5, "time_out": 3}, OPTIONS, where="using()")


def test_case_083_the_attempt_number_is_nobodys_option() -> None:
    with pytest.raises(TypeError, match="unknown option 'attempt'"):
        reject_unknown({"attempt": 7}, OPTIONS, where="using()")


def test_where_nothing_is_near_all_options_are_named() -> None:
    with pytest.raises(TypeError, match=r"'xyzzy'; the options are delay, priority, retry, run_at, timeout$"):
        reject_unknown(["xyzzy"], OPTIONS, where="using()")


def test_priorities_have_the_documented_numbers() -> None:
    assert {one.name: int(one) for one in Priority} == {"LOW": 0, "MEDIUM": 1, "HIGH": 2, "CRITICAL": 3}


@pytest.mark.parametrize("value", [-1000, -1, 0, 1000, Priority.HIGH])
def test_a_priority_comes_back_as_a_plain_int(value: int) -> None:
    checked = check_priority(value)
    assert checked == value
    assert type(checked) is int


@pytest.mark.parametrize("value", [True, False, 1.0, "1", None, "HIGH"])
def test_a_priority_is_a_whole_number(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^priority must be a whole number or a Priority, not "):
        check_priority(value)


@pytest.mark.parametrize("value", [-1001, 1001, pytest.param(10**5_000, id="long")])
def test_a_priority_has_its_range(value: int) -> None:
    with pytest.raises(ConfigurationError, match=r"^by must be within -1000…1000, not "):
        check_priority(value, name="by")


def test_values_are_shown_short_and_never_raise() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError("no words")

    assert shown(5) == "5"
    assert shown("x" * 78) == repr("x" * 78)
    assert shown("x" * 79) == "'" + "x" * 79 + "…"
    assert shown(Silent()) == "a value of type Silent"
    assert shown(10**5_000) == "a value of type int"
