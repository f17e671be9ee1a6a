"""What a function takes, which of it is stored, and how a call's values get into their places and out again.

`bind` and `unbind` do for a task's calls what Python does for a function's: every value ends under its
parameter's name, however it was passed, so that `f(1, 2)` and `f(b=2, a=1)` are the same call. The parameter
annotated as the context is no part of a call; the worker fills it in.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from msgspec import UNSET

from betimes.core.options import nearest
from betimes.errors import ConfigurationError, PayloadError

_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_CONTEXT = -1  # in place of the index of a stored value


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One parameter whose value is stored.

    Attributes:
        name: as the function has it.
        key: its name in JSON; `*args` and `**kwargs` keep their asterisks, which no other name can have.
        annotation: of the whole value: a list for `*args`, a dict for `**kwargs`; `Any` where there is none.
        is_required: no call can do without it.
    """

    name: str
    key: str
    annotation: Any
    is_required: bool


class Parameters:
    """The parameters of one function, and the way of a call's values into storage and back.

    Args:
        fn: the function; a `functools.partial`, a bound method or an object with `__call__` will do.
        context_type: the annotation that marks the parameter which the worker fills in; None: there is none.

    Raises:
        ConfigurationError: jobs cannot call this function; the text says why.

    Attributes:
        function: its qualified name, for messages.
        returns: the return annotation; `Any` where there is none.
        context: the name of the context's parameter, or None.
        stored: what is stored, the required ones first; `bind` and `unbind` use this order.
        required: how many of them no call can do without.
        by_position: how many of them can be passed by position.
        by_name: where those that can be passed by name stand in `stored`.
        is_led_by_position: `stored` begins with those; so it is unless a required one goes only by name.
        is_plain: a call is its stored values by position, in order, and nothing else.
    """

    __slots__ = (
        "_extra",
        "_names",
        "_positional",
        "_rest",
        "_slots",
        "by_name",
        "by_position",
        "context",
        "function",
        "is_led_by_position",
        "is_plain",
        "required",
        "returns",
        "stored",
    )

    def __init__(self, fn: Callable[..., Any], context_type: type | None = None) -> None:
        self.function: str = getattr(fn, "__qualname__", type(fn).__qualname__)
        parameters, self.returns = _read(fn, self.function)
        self.context = _find_context(parameters, context_type, self.function)
        kept = [one for one in parameters if one.name != self.context]
        self.stored = tuple(sorted(map(_stored, kept), key=lambda one: not one.is_required))

        index = {one.name: position for position, one in enumerate(self.stored)}
        kinds = {one.kind: index[one.name] for one in kept}
        self.by_name = {one.name: index[one.name] for one in kept if one.kind in _BY_NAME}
        self._positional = tuple(index[one.name] for one in kept if one.kind in _BY_POSITION)
        self._rest = kinds.get(Parameter.VAR_POSITIONAL)
        self._extra = kinds.get(Parameter.VAR_KEYWORD)
        self._slots = tuple(
            (one.name, index.get(one.name, _CONTEXT)) for one in parameters if one.kind in _BY_POSITION
        )
        self._names = tuple(
            (one.name, index.get(one.name, _CONTEXT))
            for one in parameters
            if one.kind is Parameter.KEYWORD_ONLY
        )
        self.required = sum(one.is_required for one in self.stored)
        self.by_position = len(self._positional)
        self.is_led_by_position = self._positional == tuple(range(self.by_position))
        self.is_plain = self.context is None and self.by_position == len(self.stored)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the call's values in the order of `stored`; `UNSET` for what it leaves out.

        Raises:
            TypeError: the call does not fit the function; the text is Python's own.
        """
        values: list[Any] = [UNSET] * len(self.stored)
        if args:
            for position, value in zip(self._positional, args, strict=False):
                if value is UNSET:
                    raise self._no_unset(self.stored[position].name)
                values[position] = value
        if len(args) > len(self._positional):
            if self._rest is None:
                raise self._too_many(len(args))
            values[self._rest] = list(args[len(self._positional) :])
        if kwargs:
            self._take_keywords(values, kwargs)
        for value in values[: self.required]:
            if value is UNSET:
                raise self._missing(values)
        return values

    def unbind(self, values: Sequence[Any], context: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the `args` and `kwargs` with which to call the function.

        Args:
            values: in the order of `stored`; `UNSET` for what the call leaves out.
            context: for the context's parameter, if there is one.
        """
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        is_gap = False  # After an argument left out, the others can only go by name.
        for name, index in self._slots:
            value = context if index == _CONTEXT else values[index]
            if value is UNSET:
                is_gap = True
            elif is_gap:
                kwargs[name] = value
            else:
                args.append(value)
        for name, index in self._names:
            value = context if index == _CONTEXT else values[index]
            if value is not UNSET:
                kwargs[name] = value
        if self._rest is not None and values[self._rest] is not UNSET:
            args += values[self._rest]
        if self._extra is not None and values[self._extra] is not UNSET:
            kwargs.update(values[self._extra])
        return tuple(args), kwargs

    def _take_keywords(self, values: list[Any], kwargs: Mapping[str, Any]) -> None:
        extra: dict[str, Any] = {}
        for name, value in kwargs.items():
            index = self.by_name.get(name)
            if index is None:
                extra[name] = value
            elif values[index] is not UNSET:
                raise TypeError(f"{self.function}() got multiple values for argument {name!r}")
            elif value is UNSET:
                raise self._no_unset(name)
            else:
                values[index] = value
        if extra:
            if self._extra is None:
                raise self._unexpected(next(iter(extra)))
            values[self._extra] = extra

    def _too_many(self, given: int) -> TypeError:
        most = len(self._positional)
        least = sum(self.stored[index].is_required for index in self._positional)
        takes = str(most) if least == most else f"from {least} to {most}"
        verb = "was" if given == 1 else "were"
        return TypeError(
            f"{self.function}() takes {takes} positional argument{_s(most)} but {given} {verb} given"
        )

    def _unexpected(self, name: str) -> TypeError:
        if name == self.context:
            return TypeError(f"{self.function}() gets its {name!r} from the worker; do not pass it")
        if name in {one.name for one in self.stored}:
            what = "got some positional-only arguments passed as keyword arguments:"
            return TypeError(f"{self.function}() {what} {name!r}")
        near = nearest(name, self.by_name)
        advice = f". Did you mean {near!r}?" if near else ""
        return TypeError(f"{self.function}() got an unexpected keyword argument {name!r}{advice}")

    def _missing(self, values: Sequence[Any]) -> TypeError:
        by_position: list[str] = []
        by_name: list[str] = []
        for index, one in enumerate(self.stored[: self.required]):
            if values[index] is UNSET:
                (by_position if index in self._positional else by_name).append(one.name)
        names, kind = (by_position, "positional") if by_position else (by_name, "keyword-only")
        what = f"{len(names)} required {kind} argument{_s(len(names))}"
        return TypeError(f"{self.function}() missing {what}: {_listed(names)}")

    def _no_unset(self, name: str) -> PayloadError:
        return PayloadError(f"{self.function}() argument `{name}` is UNSET: leave it out instead", path=name)


def _read(fn: Callable[..., Any], function: str) -> tuple[list[Parameter], Any]:
    """The parameters, their annotations resolved, and the return annotation."""
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise ConfigurationError(
            f"{function}() is a generator, and a job gives one value: return it, as a list"
        )
    if isinstance(fn, type):
        raise ConfigurationError(
            f"{function} is a class, and a task is a function: write one that returns its data"
        )
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{function}() does not tell its parameters: wrap it in a `def`") from error
    hints = _hints(fn, function)
    parameters = [one.replace(annotation=hints.get(one.name, Any)) for one in signature.parameters.values()]
    return parameters, hints.get("return", Any)


def _hints(fn: Any, function: str) -> dict[str, Any]:
    while isinstance(fn, partial):
        fn = fn.func
    fn = inspect.unwrap(fn)
    if not inspect.isroutine(fn):
        fn = type(fn).__call__
    try:
        return get_type_hints(fn, localns=_closure(fn), include_extras=True)
    except NameError as error:
        raise ConfigurationError(
            f"an annotation of {function}() names {error.name!r}, which is not there at run time: import it "
            "outside `if TYPE_CHECKING:`, and define it at the top of its module"
        ) from error
    except Exception as error:  # annotations are code, and may raise anything
        raise ConfigurationError(f"an annotation of {function}() cannot be read: {error}") from error


def _closure(fn: Any) -> dict[str, Any] | None:
    """The variables of enclosing functions that a nested function uses; its annotations may name them too."""
    found: dict[str, Any] = {}
    cells = getattr(fn, "__closure__", None) or ()
    for name, cell in zip(fn.__code__.co_freevars if cells else (), cells, strict=True):
        with suppress(ValueError):  # An empty cell: the function's own name, while it is being decorated.
            found[name] = cell.cell_contents
    return found or None


def _find_context(parameters: Sequence[Parameter], context_type: type | None, function: str) -> str | None:
    marked = [one for one in parameters if context_type and _is_marked(one.annotation, context_type)]
    if not marked:
        return None
    one = marked[0]
    if len(marked) > 1:
        raise ConfigurationError(
            f"{function}() takes two contexts, {one.name!r} and {marked[1].name!r}: one will do"
        )
    if one.kind in {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}:
        raise ConfigurationError(
            f"{function}() must take its context in a parameter of its own, not in {one}"
        )
    if one.kind is Parameter.POSITIONAL_ONLY and one is not parameters[0]:
        raise ConfigurationError(f"{function}() must take its context {one.name!r} by name, or first")
    return one.name


def _is_marked(annotation: Any, context_type: type) -> bool:
    if get_origin(annotation) in {Annotated, Union, types.UnionType}:
        return any(_is_marked(argument, context_type) for argument in get_args(annotation))
    return annotation is context_type


def _stored(one: Parameter) -> Stored:
    key, annotation, is_required = one.name, one.annotation, one.default is Parameter.empty
    if one.kind is Parameter.VAR_POSITIONAL:
        key, annotation, is_required = f"*{key}", types.GenericAlias(list, (annotation,)), False
    elif one.kind is Parameter.VAR_KEYWORD:
        key, annotation, is_required = f"**{key}", types.GenericAlias(dict, (str, annotation)), False
    return Stored(name=one.name, key=key, annotation=annotation, is_required=is_required)


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _listed(names: Sequence[str]) -> str:
    """Names as Python lists them: 'a', then 'a' and 'b', then 'a', 'b', and 'c'."""
    quoted = [repr(name) for name in names]
    if len(quoted) < 3:  # noqa: PLR2004 - two need no comma
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"
