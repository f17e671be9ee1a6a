"""Whole calls and results: how they are written down, their limits, and what a worker makes of them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from betimes.core.job import EMPTY_PAYLOAD
from betimes.core.payload import NULL, Signature
from betimes.errors import PayloadError

MEGABYTE = 1_000_000
READ: list[str] = []


class Context:
    """Stands for the type that marks the worker's parameter."""


class Loud(msgspec.Struct):
    """Says when it is made."""

    name: str

    def __post_init__(self) -> None:
        READ.append(self.name)
        if self.name == "broken":
            raise RuntimeError("made of broken data")


def fetch(url: str, retries: int = 0, *, timeout: float | None = None) -> int:
    return len(url) + retries + int(timeout or 0)


def anything(a: Any = None, b: Any = None) -> Any:
    return a, b


def with_context(ctx: Context, url: str) -> None: ...


def required_by_name(a: int = 1, *, b: int) -> None: ...


def everything(a, b=1, *args, c=3, **kwargs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN002, ANN003
    return a, b, args, c, kwargs


def loud(value: Loud) -> Loud:
    return value


def test_arguments_are_one_object_by_parameter_name() -> None:
    signature = Signature(fetch)
    assert signature.encode(("x",), {}) == b'{"url":"x"}'
    assert signature.encode(("x", 2), {"timeout": 1.5}) == b'{"url":"x","retries":2,"timeout":1.5}'
    rest = Signature(everything).encode((1, 2, 3), {"z": "y"})
    assert json.loads(rest) == {"a": 1, "b": 2, "*args": [3], "**kwargs": {"z": "y"}}


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (("x", 2), {"timeout": 1.5}),
        (("x",), {"timeout": 1.5, "retries": 2}),
        ((), {"timeout": 1.5, "retries": 2, "url": "x"}),
    ],
)
def test_equal_calls_have_equal_payloads(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    assert Signature(fetch).encode(args, kwargs) == b'{"url":"x","retries":2,"timeout":1.5}'


def test_calls_without_arguments_and_results_of_none_share_one_payload() -> None:
    signature = Signature(anything)
    assert signature.encode((), {}) is EMPTY_PAYLOAD
    assert signature.decode(EMPTY_PAYLOAD) == ((), {})
    assert signature.encode_result(None) is NULL
    assert signature.decode_result(NULL) is None


def test_the_dicts_of_two_decoded_calls_are_not_one() -> None:
    signature = Signature(fetch)
    for payload in (b'{"url":"x"}', b'{"url":"x","retries":1,"timeout":1.0}'):
        _, kwargs = signature.decode(payload)
        kwargs["spoilt"] = True
        assert "spoilt" not in signature.decode(payload)[1]
    _, kwargs = Signature(anything).decode(EMPTY_PAYLOAD)
    kwargs["spoilt"] = True
    assert Signature(anything).decode(EMPTY_PAYLOAD) == ((), {})


def test_defaults_are_not_stored() -> None:
    assert Signature(fetch).decode(b'{"url":"x"}') == (("x",), {})
    assert Signature(fetch).decode(b'{"url":"x","timeout":2}') == (("x",), {"timeout": 2.0})
    assert Signature(anything).decode(b'{"b":2}') == ((), {"b": 2})
    assert Signature(anything).decode(b'{"a":1,"b":2}') == ((1, 2), {})


def test_the_arguments_of_a_stored_call_are_told_by_name() -> None:
    assert Signature(fetch).arguments(b'{"url":"x","timeout":2}') == {"url": "x", "timeout": 2.0}
    assert Signature(with_context, Context).arguments(b'{"url":"x"}') == {"url": "x"}
    signature = Signature(everything)
    payload = signature.encode((1, 2, 3, 4), {"d": 5})
    assert signature.arguments(payload) == {"a": 1, "b": 2, "args": [3, 4], "kwargs": {"d": 5}}
    assert Signature(anything).arguments(EMPTY_PAYLOAD) == {}
    with pytest.raises(PayloadError):
        Signature(fetch).arguments(b'{"uri":"x"}')


def test_what_a_call_leaves_out_can_be_filled_in() -> None:
    signature = Signature(fetch)
    defaults = {"retries": 0, "timeout": None}
    full = b'{"url":"x","retries":0,"timeout":null}'
    assert signature.filled_in(b'{"url":"x"}', defaults) == full
    assert signature.filled_in(full, defaults) == full
    assert signature.filled_in(b'{"url":"x","retries":3}', defaults) == full.replace(b"0", b"3")
    assert signature.filled_in(b'{"url":"x"}', {"retries": "none", "timeout": None, "colour": 1}) == (
        b'{"url":"x","timeout":null}'
    )
    with pytest.raises(PayloadError):
        signature.filled_in(b'{"uri":"x"}', defaults)


def test_the_context_is_not_stored_and_stands_in_its_place() -> None:
    signature = Signature(with_context, Context)
    context = Context()
    assert signature.context_parameter == "ctx"
    assert Signature(fetch, Context).context_parameter is None
    payload = signature.encode(("x",), {})
    assert payload == b'{"url":"x"}'
    assert signature.decode(payload, context) == ((context, "x"), {})

    def only_context(ctx: Context) -> None: ...

    assert Signature(only_context, Context).encode((), {}) is EMPTY_PAYLOAD
    assert Signature(only_context, Context).decode(EMPTY_PAYLOAD, context) == ((context,), {})


def test_what_is_required_only_by_name_is_taken_by_name() -> None:
    signature = Signature(required_by_name)
    assert json.loads(signature.encode((), {"b": 2})) == {"b": 2}
    assert json.loads(signature.encode((1,), {"b": 2})) == {"a": 1, "b": 2}
    assert signature.decode(b'{"b":2,"a":1}') == ((1,), {"b": 2})
    for args in ((1,), (1, 2)):
        with pytest.raises(
            TypeError, match=r"required_by_name\(\) (missing 1 required keyword-only|takes from 0)"
        ):
            signature.encode(args, {})


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "missing 1 required positional argument: 'url'"),
        (("x", 1, 2), {}, "takes from 1 to 2 positional arguments but 3 were given"),
        (("x",), {"url": "x"}, "got multiple values for argument 'url'"),
        (("x",), {"retrys": 1}, "got an unexpected keyword argument 'retrys'. Did you mean 'retries'"),
        ((), {"retries": 1}, "missing 1 required positional argument: 'url'"),
    ],
)
def test_a_wrong_call_is_refused_before_anything_is_written(
    args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=rf"^fetch\(\) {message}"):
        Signature(fetch).encode(args, kwargs)


def test_names_inside_the_storage_are_no_names_of_parameters() -> None:
    signature = Signature(everything)
    args, kwargs = signature.decode(signature.encode((1,), {"args": 5, "kwargs": 6, "*args": 7}))
    assert (args, kwargs) == ((1,), {"args": 5, "kwargs": 6, "*args": 7})


@pytest.mark.parametrize(
    ("args", "kwargs", "path"),
    [
        ((1, 2, (3,)), {}, "args[0]"),
        ((1, 2, {"when": {1}}), {}, "args[0]['when']"),
        ((1,), {"z": [b"x"]}, "kwargs['z'][0]"),
        (((),), {}, "a"),
        ((1,), {"c": {"a": object()}}, "c['a']"),
    ],
)
def test_p05_the_path_names_the_argument(args: tuple[Any, ...], kwargs: dict[str, Any], path: str) -> None:
    with pytest.raises(PayloadError) as refused:
        Signature(everything).encode(args, kwargs)
    assert refused.value.path == path
    assert f"everything() argument `{path}` " in str(refused.value)


def test_unset_is_refused_on_the_quick_way_too() -> None:
    for args, kwargs in (((msgspec.UNSET,), {}), ((), {"b": msgspec.UNSET}), (([msgspec.UNSET],), {})):
        with pytest.raises(PayloadError):
            Signature(anything).encode(args, kwargs)


def test_an_int_for_a_float_comes_back_as_the_equal_float() -> None:
    signature = Signature(fetch)
    payload = signature.encode(("x",), {"timeout": 2})
    assert payload == b'{"url":"x","timeout":2}'
    assert repr(signature.decode(payload)[1]) == "{'timeout': 2.0}"


@pytest.mark.parametrize("fold", [0, 1])
@pytest.mark.parametrize("hour", [datetime(2026, 10, 25, 2, 30), datetime(2026, 3, 29, 2, 30)])  # noqa: DTZ001
def test_p05_a_zoned_time_keeps_instant_and_offset_through_repeated_and_skipped_hours(
    hour: datetime, fold: int
) -> None:
    def remind(when: datetime) -> None: ...

    when = hour.replace(tzinfo=ZoneInfo("Europe/Berlin"), fold=fold)
    signature = Signature(remind)
    (back,), _ = signature.decode(signature.encode((when,), {}))
    assert back.timestamp() == when.timestamp()
    assert back.utcoffset() == when.utcoffset()
    assert back.tzinfo == timezone(when.utcoffset() or timedelta())


def nested(depth: int) -> Any:
    value: Any = 0
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def test_p05_depth_is_capped() -> None:
    signature = Signature(anything)
    payload = signature.encode((nested(64),), {})
    assert signature.decode(payload) == ((nested(64),), {})
    assert signature.decode_result(signature.encode_result(nested(64))) == nested(64)
    for depth in (65, 66, 400, 100_000):
        with pytest.raises(PayloadError, match=r"nested more than 64 deep \(or contains itself\)") as refused:
            signature.encode((nested(depth),), {})
        assert refused.value.path.startswith("a")
        assert len(refused.value.path) < 250
        with pytest.raises(PayloadError, match="nested more than 64 deep"):
            signature.encode_result(nested(depth))


def test_p05_what_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop += [loop, loop]
    circle: dict[str, Any] = {}
    circle["a"] = [circle]
    for value in (loop, circle):
        with pytest.raises(PayloadError, match="contains itself"):
            Signature(anything).encode((value,), {})
        with pytest.raises(PayloadError, match="contains itself"):
            Signature(anything).encode_result(value)


@pytest.mark.parametrize("size", [MEGABYTE, 10 * MEGABYTE])
def test_case_128_ten_megabytes_come_back(size: int) -> None:
    signature = Signature(fetch)
    text = "x" * size
    assert signature.decode(signature.encode((text,), {})) == ((text,), {})
    whole = Signature(anything)
    assert whole.decode_result(whole.encode_result([text])) == [text]


def test_case_128_a_hundred_megabytes_are_refused_with_both_sizes() -> None:
    text = "x" * (100 * MEGABYTE)
    sizes = "would be 100,000,010 bytes of JSON; at most 16,777,216 are stored: keep the data elsewhere"
    with pytest.raises(PayloadError, match=rf"fetch\(\) arguments {sizes}"):
        Signature(fetch).encode((text,), {})
    with pytest.raises(
        PayloadError, match=r"anything\(\) `result` would be 100,000,002 bytes .* 16,777,216"
    ) as refused:
        Signature(anything).encode_result(text)
    assert refused.value.path == "result"


def test_the_size_limit_is_exact() -> None:
    signature = Signature(anything, max_bytes=10)
    assert signature.encode(("xx",), {}) == b'{"a":"xx"}'
    with pytest.raises(PayloadError, match="would be 11 bytes of JSON; at most 10 are stored"):
        signature.encode(("xxx",), {})
    with pytest.raises(PayloadError, match="would be 11 bytes"):
        signature.encode_result("x" * 9)


def test_case_130_a_result_reads_the_same_every_time() -> None:
    def report() -> dict[str, tuple[int, ...]]:
        return {"a": (1, 2)}

    signature = Signature(report)
    payload = signature.encode_result(report())
    assert [signature.decode_result(payload) for _ in range(3)] == [report()] * 3


def test_case_070_a_coroutine_is_no_result() -> None:
    async def later() -> int:
        return 5

    forgotten = later()
    with pytest.raises(PayloadError, match="`result` is a `coroutine`, which has not run") as refused:
        Signature(anything).encode_result(forgotten)
    forgotten.close()
    assert refused.value.path == "result"


def test_case_068_code_is_no_argument() -> None:
    for code in (lambda: 1, Context, functools.partial(anything, 1), Context().__init__):  # type: ignore[misc]
        with pytest.raises(PayloadError, match=r"argument `a` is (code|of type)"):
            Signature(anything).encode((code,), {})


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "Input data was truncated"),
        (b"not json", "JSON is malformed"),
        (b"[]", "must be `object`, not `array`"),
        (b"{}", "Object missing required field `url`"),
        (b'{"url":"x","gone":1}', "Object contains unknown field `gone`"),
        (b'{"url":5}', r"argument `url` must be `str`, not `int`"),
        (b'{"url":"\xff"}', "codec|UTF-8|utf-8"),
    ],
)
def test_what_was_stored_for_another_version_of_the_function_is_told(payload: bytes, reason: str) -> None:
    with pytest.raises(
        PayloadError, match=rf"^fetch\(\) .*{reason}.* another version of the function"
    ) as refused:
        Signature(fetch).decode(payload)
    assert refused.value.path in {"", "url"}


def test_a_stored_result_of_another_type_is_told() -> None:
    with pytest.raises(PayloadError, match=r"^fetch\(\) `result` must be `int`, not `str` .*another version"):
        Signature(fetch).decode_result(b'"x"')


def test_p30_only_annotated_types_are_made_of_what_is_read() -> None:
    READ.clear()
    hostile = (
        b'{"a":{"py/object":"os.system","__class__":"Loud","__reduce__":["os.system",["true"]],"name":"x"}}'
    )
    (value,), _ = Signature(anything).decode(hostile)
    assert type(value) is dict
    assert value == json.loads(hostile)["a"]
    assert READ == []
    ((made,), _) = Signature(loud).decode(b'{"value":{"name":"asked for"}}')
    assert (made, READ) == (Loud("asked for"), ["asked for", "asked for"])


def test_a_constructor_that_raises_is_a_payload_error() -> None:
    def of_several(value: dict[str, Loud]) -> None: ...

    fine, broken = Loud("fine"), Loud("soon broken")
    broken.name = "broken"
    with pytest.raises(PayloadError, match="made of broken data"):
        Signature(of_several).encode(({"a": fine, "b": broken},), {})
    with pytest.raises(PayloadError, match="made of broken data"):
        Signature(loud).decode(b'{"value":{"name":"broken"}}')


def test_results_take_the_quick_way_only_when_it_is_exact() -> None:
    def count() -> float:
        return 1.5

    signature = Signature(count)
    assert signature.encode_result(1.5) == b"1.5"
    assert signature.encode_result(2) == b"2"
    assert repr(signature.decode_result(b"2")) == "2.0"
    for value in (float("nan"), float("inf"), True, None, "1"):
        with pytest.raises(PayloadError, match="`result`"):
            signature.encode_result(value)
    long_text = Signature(anything)
    assert long_text.decode_result(long_text.encode_result("x" * 5_000)) == "x" * 5_000
    for lost in ("\ud800", 10**5_000):
        with pytest.raises(PayloadError, match="`result`"):
            long_text.encode_result(lost)


def test_a_function_that_says_it_returns_none_returns_none() -> None:
    signature = Signature(with_context, Context)
    assert signature.encode_result(None) is NULL
    with pytest.raises(PayloadError, match="`result` must be `null`, not `int`"):
        signature.encode_result(5)


@pytest.mark.parametrize("fn", [fetch, anything, everything, with_context])
def test_registering_reads_nothing_but_the_signature(fn: Callable[..., Any]) -> None:
    assert Signature(fn, Context).context_parameter == ("ctx" if fn is with_context else None)


def test_aware_datetimes_without_annotation_are_refused_by_path() -> None:
    with pytest.raises(PayloadError) as refused:
        Signature(anything).encode(([{"when": datetime(2026, 3, 1, tzinfo=UTC)}],), {})
    assert refused.value.path == "a[0]['when']"


def upper(given: Any, kind: Any) -> Any:
    """Reads what was given as text in capitals, or as a number where that is asked for."""
    return int(given) if kind is int else given.upper()


@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "payload"),
    [
        (fetch, ("a", "2"), {}, {"url": "A", "retries": 2}),
        (fetch, (), {"url": "a"}, {"url": "A"}),
        (with_context, ("a",), {}, {"url": "A"}),
        (
            everything,
            ("a", "b", "c", "d"),
            {"c": "e", "x": "f"},
            {"a": "A", "b": "B", "*args": ["C", "D"], "c": "E", "**kwargs": {"x": "F"}},
        ),
    ],
)
def test_a_call_in_another_form_is_read_parameter_by_parameter(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], payload: dict[str, Any]
) -> None:
    assert json.loads(Signature(fn, Context).encode_given(args, kwargs, upper)) == payload


def test_typed_rests_are_read_by_the_annotation_of_each() -> None:
    def numbers(*args: int, **kwargs: int) -> None: ...

    payload = Signature(numbers).encode_given(("1", "2"), {"x": "3"}, upper)
    assert json.loads(payload) == {"*args": [1, 2], "**kwargs": {"x": 3}}


def test_what_cannot_be_read_names_its_parameter() -> None:
    with pytest.raises(PayloadError, match=r"fetch\(\) argument `retries`: invalid literal") as raised:
        Signature(fetch).encode_given(("a", "x"), {}, upper)
    assert raised.value.path == "retries"
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'url'"):
        Signature(fetch).encode_given((), {}, upper)


def test_the_names_by_which_arguments_can_be_given() -> None:
    signature = Signature(with_context, Context)
    assert signature.names == ("url",)
    assert [signature.can_be_named(name) for name in ("url", "ctx")] == [True, False]
    assert Signature(everything).can_be_named("whatever")
