"""Calls find their places as Python finds them, and what cannot be a task's function is told why."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest
from msgspec import UNSET

from betimes.core.parameters import Parameters
from betimes.errors import ConfigurationError, PayloadError

if TYPE_CHECKING:
    from collections import OrderedDict as OnlyForTypeCheckers


class Context:
    """Stands for the type that marks the worker's parameter."""


CTX = Context()


def called(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `fn` returns when it is called through bind and unbind."""
    parameters = Parameters(fn, Context)
    bound_args, bound_kwargs = parameters.unbind(parameters.bind(args, kwargs), CTX)
    return fn(*bound_args, **bound_kwargs)


def simple(a: int, b: int = 2) -> tuple[Any, ...]:
    return a, b


def positional_only(a: int, b: int = 2, /, c: int = 3) -> tuple[Any, ...]:
    return a, b, c


def keyword_only(a: int = 1, *, b: int, c: int = 3) -> tuple[Any, ...]:
    return a, b, c


def variable(a: int, b: int = 2, *rest: int, c: int = 3, **more: int) -> tuple[Any, ...]:
    return a, b, rest, c, more


def shadowed(a: int, /, **more: int) -> tuple[Any, ...]:
    return a, more


def nothing() -> tuple[Any, ...]:
    return ()


def three(a: int, b: int, c: int) -> tuple[Any, ...]:
    return a, b, c


CALLS: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (simple, (1,), {}),
    (simple, (1, 5), {}),
    (simple, (), {"b": 5, "a": 1}),
    (simple, (1,), {"b": 5}),
    (positional_only, (1,), {}),
    (positional_only, (1,), {"c": 9}),
    (positional_only, (1, 7, 8), {}),
    (keyword_only, (), {"b": 1}),
    (keyword_only, (4,), {"b": 1, "c": 5}),
    (variable, (1,), {}),
    (variable, (1, 2, 3, 4), {"z": 9}),
    (variable, (), {"a": 1, "z": 9, "y": 8, "c": 7}),
    (shadowed, (1,), {"a": 2}),
    (nothing, (), {}),
]


@pytest.mark.parametrize(("fn", "args", "kwargs"), CALLS)
def test_a_stored_call_is_the_call_itself(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    assert called(fn, *args, **kwargs) == fn(*args, **kwargs)


WRONG_CALLS: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (simple, (), {}),
    (simple, (1, 2, 3), {}),
    (simple, (1,), {"a": 2}),
    (simple, (1,), {"zzz": 2}),
    (nothing, (1,), {}),
    (nothing, (1, 2), {}),
    (three, (), {}),
    (three, (1,), {}),
    (three, (), {"b": 1}),
    (three, (1, 2, 3, 4), {}),
    (keyword_only, (), {}),
    (positional_only, (), {}),
    (variable, (), {"b": 1}),
]


@pytest.mark.parametrize(("fn", "args", "kwargs"), WRONG_CALLS)
def test_a_wrong_call_is_refused_in_pythons_words(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    with pytest.raises(TypeError) as theirs:
        fn(*args, **kwargs)
    with pytest.raises(TypeError) as ours:
        Parameters(fn).bind(args, kwargs)
    assert str(ours.value) == str(theirs.value)


def test_an_unexpected_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        TypeError, match=r"simple\(\) got an unexpected keyword argument 'aa'. Did you mean 'a'\?"
    ):
        Parameters(simple).bind((), {"aa": 1})


def test_a_positional_only_argument_has_no_name() -> None:
    message = "got some positional-only arguments passed as keyword arguments: 'b'"
    with pytest.raises(TypeError, match=message):
        Parameters(positional_only).bind((1,), {"b": 2})


def test_unset_is_not_a_way_to_leave_an_argument_out() -> None:
    for args, kwargs in (((UNSET,), {}), ((1, UNSET), {}), ((1,), {"b": UNSET})):
        with pytest.raises(PayloadError, match="is UNSET: leave it out"):
            Parameters(simple).bind(args, kwargs)


def first(ctx: Context, a: int, *rest: int) -> tuple[Any, ...]:
    return ctx, a, rest


def last(a: int, b: int = 2, ctx: Context | None = None) -> tuple[Any, ...]:
    return a, b, ctx


def optional(a: int = 1, ctx: Optional[Context] = None, b: int = 2) -> tuple[Any, ...]:  # noqa: UP045
    return a, ctx, b


def annotated(a: int, *, ctx: Annotated[Context, "from the worker"]) -> tuple[Any, ...]:
    return a, ctx


def leading(ctx: Context, /, a: int = 1) -> tuple[Any, ...]:
    return ctx, a


@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "expected"),
    [
        (first, (1, 2, 3), {}, (CTX, 1, (2, 3))),
        (first, (), {"a": 1}, (CTX, 1, ())),
        (last, (1,), {}, (1, 2, CTX)),
        (last, (1, 5), {}, (1, 5, CTX)),
        (optional, (), {}, (1, CTX, 2)),
        (optional, (5, 6), {}, (5, CTX, 6)),
        (optional, (), {"b": 6}, (1, CTX, 6)),
        (annotated, (1,), {}, (1, CTX)),
        (leading, (5,), {}, (CTX, 5)),
        (leading, (), {}, (CTX, 1)),
    ],
)
def test_the_worker_fills_the_context_in_wherever_it_stands(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], expected: Any
) -> None:
    assert Parameters(fn, Context).context == "ctx"
    assert called(fn, *args, **kwargs) == expected


def test_a_caller_does_not_pass_the_context() -> None:
    with pytest.raises(TypeError, match=r"first\(\) gets its 'ctx' from the worker; do not pass it"):
        Parameters(first, Context).bind((1,), {"ctx": CTX})


def test_a_function_without_a_context_has_none() -> None:
    assert Parameters(simple, Context).context is None
    assert Parameters(last).context is None, "nothing marks it"


def test_contexts_that_cannot_be_filled_in_are_refused() -> None:
    def two(a: Context, b: Context) -> None: ...
    def many(*ctx: Context) -> None: ...
    def named(**ctx: Context) -> None: ...
    def hidden(a: int = 1, ctx: Context = CTX, /) -> None: ...

    for fn, message in (
        (two, "takes two contexts, 'a' and 'b'"),
        (many, "in a parameter of its own"),
        (named, "in a parameter of its own"),
        (hidden, "by name, or first"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            Parameters(fn, Context)


def test_functions_in_disguise_tell_their_parameters() -> None:
    class Adder:
        def method(self, a: int, b: int = 2) -> int:
            return a + b

        def __call__(self, a: int, ctx: Context) -> int:
            return a

    @functools.wraps(simple)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return simple(*args, **kwargs)

    assert called(Adder().method, 1, b=5) == 6
    assert called(Adder(), 5) == 5
    assert Parameters(Adder(), Context).context == "ctx"
    assert Parameters(Adder()).function.endswith("Adder")
    assert called(functools.partial(simple, b=9), 1) == (1, 9)
    assert called(functools.partial(functools.partial(three, 1), 2), 3) == (1, 2, 3)
    assert called(wrapper, 1, b=3) == (1, 3)
    assert called(math.copysign, 3, -1) == -3
    assert [one.annotation for one in Parameters(wrapper).stored] == [int, int]


def test_a_function_that_hides_its_parameters_is_refused() -> None:
    def odd() -> None: ...

    odd.__signature__ = "none of your business"  # type: ignore[attr-defined]
    with pytest.raises(ConfigurationError, match=r"odd\(\) does not tell its parameters: wrap it"):
        Parameters(odd)


def test_case_070_a_generator_is_no_task() -> None:
    def numbers() -> Iterator[int]:
        yield 1

    async def ticks() -> Any:
        yield 1

    for fn in (numbers, ticks):
        with pytest.raises(ConfigurationError, match="is a generator, and a job gives one value"):
            Parameters(fn)


def test_a_class_is_no_task() -> None:
    with pytest.raises(ConfigurationError, match=r"^Context is a class, and a task is a function"):
        Parameters(Context)


def test_an_annotation_that_is_not_there_at_run_time_is_named() -> None:
    def only_checked(a: OnlyForTypeCheckers[str, int]) -> None: ...

    with pytest.raises(
        ConfigurationError, match=r"names 'OnlyForTypeCheckers', .* outside `if TYPE_CHECKING:`"
    ):
        Parameters(only_checked)


def test_an_annotation_that_is_no_annotation_is_refused() -> None:
    def divided(a: "1 / 0") -> None: ...  # type: ignore[valid-type]  # noqa: UP037

    with pytest.raises(ConfigurationError, match=r"annotation of .*divided\(\) cannot be read: .*zero"):
        Parameters(divided)


def test_a_nested_function_may_name_what_it_uses_around_it() -> None:
    class Local:
        pass

    def make() -> Callable[..., Any]:
        registered: list[Parameters] = []

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            registered.append(Parameters(fn))
            return fn

        @register
        def again(a: Local | None) -> Any:
            return (
                Local() if a is None else again(None)
            )  # its own name is not bound yet while it is registered

        assert [one.annotation for one in registered[0].stored] == [Local | None]
        return again

    assert isinstance(make()(None), Local)
