"""What a job has of its own by its arguments: the gates it must pass, and whose it is."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from betimes.core.job import JobSpec
from betimes.core.limits import VALUE_LENGTH, GateTerms
from betimes.core.payload import Signature
from betimes.core.restraints import CircuitBreaker, Limit, Rate
from betimes.core.retry import RetryPolicy
from betimes.core.strategy import FairShareStrategy
from betimes.core.task import TaskDefinition
from betimes.core.traits import Argument, Traits
from betimes.errors import ConfigurationError


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True)
class Customer:
    name: str
    number: int = 7


class Marker:
    """Stands for the parameter that a worker fills in."""


def task(fn: Callable[..., Any], *gates: GateTerms) -> TaskDefinition:
    return TaskDefinition(
        fn=fn, signature=Signature(fn, Marker), spec=JobSpec(task="t"), policy=RetryPolicy(1), gates=gates
    )


def value_of(fn: Callable[..., Any], name: str, /, *args: Any, **kwargs: Any) -> str:
    """The value that names the gate of one call."""
    definition = task(fn, Limit("l", 1, by=name).terms)
    (key,) = Traits(definition).gates(definition.signature.encode(args, kwargs))
    rule, tab, value = key.partition("\t")
    assert (rule, tab) == ("limit:l", "\t")
    return value


def one(a: str) -> None: ...


def test_without_an_argument_the_keys_are_those_of_the_rules_in_their_order() -> None:
    gates = (Rate("1/s").terms("t"), Limit("l", 1).terms, CircuitBreaker().terms("t"))
    traits = Traits(task(one, *gates))
    assert traits.gates(b'{"a":"x"}') == ("rate:t", "limit:l", "breaker:t")
    assert traits.gates(b"never looked at") == traits.gates(b"{}")


def test_gates_with_and_without_an_argument_keep_their_order() -> None:
    gates = (Limit("l", 1, by="a").terms, Rate("1/s").terms("t"), Rate("1/s", name="r", by="a").terms("t"))
    assert Traits(task(one, *gates)).gates(b'{"a":"x"}') == ("limit:l\tx", "rate:t", "rate:r\tx")


def test_jobs_of_equal_values_share_their_keys_and_a_bounded_number_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("betimes.core.traits.VALUES_KEPT", 3)
    traits = Traits(task(one, Limit("l", 1, by="a").terms))
    first = traits.gates(b'{"a":"0"}')
    assert traits.gates(b'{"a":"0"}') is first
    assert [traits.gates(b'{"a":"%d"}' % value) for value in range(5)] == [
        (f"limit:l\t{value}",) for value in range(5)
    ]
    assert traits.gates(b'{"a":"0"}') == first
    assert traits.gates(b'{"a":"0"}') is not first


def of_string(a: str) -> None: ...
def of_number(a: int) -> None: ...
def of_anything(a: Any) -> None: ...
def of_colour(a: Colour) -> None: ...
def of_customer(a: Customer) -> None: ...
def of_instant(a: datetime) -> None: ...


@pytest.mark.parametrize(
    ("fn", "given", "value"),
    [
        (of_string, "acme", "acme"),
        (of_string, "", ""),
        (of_string, "Ümläut 東京", "Ümläut 東京"),
        (of_string, "5", "5"),
        (of_number, 5, "5"),
        (of_anything, None, "null"),
        (of_anything, True, "true"),
        (of_anything, 1.5, "1.5"),
        (of_anything, [1, "a"], '[1,"a"]'),
        (of_anything, {"k": None}, '{"k":null}'),
        (of_colour, Colour.RED, "red"),
        (of_customer, Customer("ada"), '{"name":"ada","number":7}'),
        (of_instant, datetime(2027, 1, 1, tzinfo=UTC), "2027-01-01T00:00:00Z"),
    ],
)
def test_a_gate_is_named_by_the_argument_as_it_is_stored(
    fn: Callable[..., Any], given: Any, value: str
) -> None:
    assert value_of(fn, "a", given) == value
    assert value_of(fn, "a", a=given) == value


def absent(a: str = "home") -> None: ...
def absent_number(a: int = 5) -> None: ...
def absent_none(a: str | None = None) -> None: ...
def absent_colour(a: Colour = Colour.RED) -> None: ...
def absent_instant(a: datetime = datetime(2027, 1, 1, tzinfo=UTC)) -> None: ...
def absent_customer(a: Customer = Customer("ada")) -> None: ...


@pytest.mark.parametrize(
    ("fn", "default"),
    [
        (absent, "home"),
        (absent_number, 5),
        (absent_none, None),
        (absent_colour, Colour.RED),
        (absent_instant, datetime(2027, 1, 1, tzinfo=UTC)),
        (absent_customer, Customer("ada")),
    ],
)
def test_an_argument_left_out_stands_at_the_gate_of_its_default(fn: Callable[..., Any], default: Any) -> None:
    assert value_of(fn, "a") == value_of(fn, "a", default)


def strange(a: str = field(default="x")) -> None: ...  # a default that JSON cannot hold


def test_a_default_that_json_cannot_hold_is_nothing() -> None:
    assert value_of(strange, "a") == ""
    assert value_of(strange, "a", "y") == "y"


def several(*args: int, **more: str) -> None: ...


def test_gathered_arguments_are_one_value() -> None:
    assert value_of(several, "args", 1, 2) == "[1,2]"
    assert value_of(several, "more", x="y") == '{"x":"y"}'
    assert value_of(several, "args") == value_of(several, "more") == ""


def by_name_only(a: int, /, *, by: str = "here") -> None: ...


def test_positional_only_and_keyword_only_arguments_are_read_alike() -> None:
    assert value_of(by_name_only, "a", 3, by="there") == "3"
    assert value_of(by_name_only, "by", 3, by="there") == "there"
    assert value_of(by_name_only, "by", 3) == "here"


@pytest.mark.parametrize("text", ["x" * (VALUE_LENGTH + 1), "tab\there", "line\nbreak", "\x00"])
def test_what_cannot_stand_in_a_key_goes_by_a_digest(text: str) -> None:
    value = value_of(of_string, "a", text)
    assert value.startswith("sha256:")
    assert len(value) == len("sha256:") + 32
    assert value == value_of(of_string, "a", text) != value_of(of_string, "a", text + "!")


def test_the_longest_value_stands_as_it_is() -> None:
    assert value_of(of_string, "a", "x" * VALUE_LENGTH) == "x" * VALUE_LENGTH


def with_context(ctx: Marker, a: str) -> None: ...


@pytest.mark.parametrize("name", ["b", "ctx", "A", "a "])
def test_a_limit_by_an_argument_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^the limit 'l' is by '{name}', and t has no argument of"):
        Traits(task(with_context, Limit("l", 1, by=name).terms))
    assert Argument.of(one, Signature(one), name) is None


def test_the_tenant_is_an_argument_s_value() -> None:
    traits = Traits(task(of_number), "a")
    assert traits.tenant(b'{"a":5}') == "5"
    assert traits.gates(b'{"a":5}') == ()
    assert Traits(task(absent), "a").tenant(b"{}") == "home"


@pytest.mark.parametrize("text", ["acme", "x" * (VALUE_LENGTH + 1), "tab\there", ""])
def test_a_tenant_has_its_weight_whatever_its_name(text: str) -> None:
    strategy = FairShareStrategy(by="a", weights={text: 4})
    name = Traits(task(of_string), "a").tenant(msgspec.json.encode({"a": text}))
    assert strategy.tenant(name).cost * 4 == FairShareStrategy(by="a").tenant(name).cost


def test_a_task_without_the_argument_has_no_tenant() -> None:
    assert Traits(task(one), "customer").tenant(b'{"a":"x"}') is None
    assert Traits(task(one)).tenant(b'{"a":"x"}') is None
