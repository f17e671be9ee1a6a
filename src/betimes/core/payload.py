"""The arguments of calls and the results of tasks, as JSON bytes and back.

What passes: `str`, `int`, `float`, `bool`, `None`, and lists and `str`-keyed dicts of these, without any
annotation; and with one, what msgspec reads into it: `datetime`, `date`, `time`, `timedelta`, `UUID`,
`Decimal`, `Enum`, `bytes`, tuples, named tuples, sets, dicts with other keys, dataclasses, `msgspec.Struct`,
attrs classes, `TypedDict`, `Literal`, unions that JSON can tell apart, and paths. Everything else, and every
value that would come back changed, is a `PayloadError` before anything is stored. Where msgspec cannot decode
an annotation at all (`str | datetime`), the parameter takes what an unannotated one takes.

Arguments are one JSON object, by parameter name: `fetch("https://example.org", retries=2)` is
`{"url":"https://example.org","retries":2}`. Arguments that were left out are not stored; the function's
default at the time of the run applies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from types import UnionType
from typing import Any, NewType, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, UnsetType

from betimes.core.codec import MAX_BYTES, Codec, decoder_of, encode_json
from betimes.core.exact import SCALARS
from betimes.core.job import EMPTY_PAYLOAD
from betimes.core.parameters import Parameters, Stored
from betimes.errors import PayloadError

NULL = b"null"

# Numbers and text that pass the quick check come back exactly, with one exception: integers of some thousand
# digits, which Python and msgspec refuse at different lengths. Long payloads therefore go the slow way.
_QUICK_BYTES = 4_000


class Signature:
    """How the calls and results of one task are stored: checked, exact, and quick where they are simple.

    Args:
        fn: the task's function.
        context_type: the annotation that marks the parameter which the worker fills in; None: there is none.
        max_bytes: how large the arguments may be as JSON, and the result likewise.

    Raises:
        ConfigurationError: the function cannot be a task's; the text says why.

    Example:
        >>> def fetch(url: str, retries: int = 0) -> int: ...
        >>> signature = Signature(fetch)
        >>> signature.encode(("https://example.org",), {"retries": 2})
        b'{"url":"https://example.org","retries":2}'
        >>> signature.decode(b'{"url":"https://example.org"}')
        (('https://example.org',), {})
    """

    __slots__ = (
        "_arguments",
        "_codec",
        "_has_optional",
        "_is_callable_bare",
        "_kinds",
        "_kinds_by_name",
        "_most",
        "_parameters",
        "_quick_bytes",
        "_required",
        "_result_codec",
        "_result_kinds",
    )

    def __init__(
        self, fn: Callable[..., Any], context_type: type | None = None, *, max_bytes: int = MAX_BYTES
    ) -> None:
        self._parameters = Parameters(fn, context_type)
        self._quick_bytes = min(max_bytes, _QUICK_BYTES)
        self._prepare_arguments(max_bytes)
        returns, remark = _decodable(self._parameters.returns)
        self._result_kinds = _scalar_kinds(returns)
        self._result_codec = Codec(
            returns,
            subject=f"{self._parameters.function}()",
            root="result",
            max_bytes=max_bytes,
            remarks={"result": remark},
        )

    def _prepare_arguments(self, max_bytes: int) -> None:
        stored = self._parameters.stored
        decodable = [_decodable(one.annotation) for one in stored]
        kinds = [kind for kind, _ in decodable]
        self._arguments = _struct_of(stored, kinds)
        self._codec = Codec(
            self._arguments,
            subject=f"{self._parameters.function}() argument",
            max_bytes=max_bytes,
            remarks={one.name: remark for one, (_, remark) in zip(stored, decodable, strict=True)},
        )
        self._kinds = tuple(map(_scalar_kinds, kinds))
        self._kinds_by_name = {name: self._kinds[index] for name, index in self._parameters.by_name.items()}
        self._required = self._parameters.required
        self._has_optional = self._required < len(stored)
        self._is_callable_bare = not self._required and self._parameters.context is None
        # `stored` begins with what goes by position, unless something that is required goes only by name.
        self._most = self._parameters.by_position if self._parameters.is_led_by_position else -1

    @property
    def context_parameter(self) -> str | None:
        """The name of the parameter that the worker fills in; None when the function has none."""
        return self._parameters.context

    def key_of(self, name: str) -> str | None:
        """Return the name in JSON of the parameter of this name; None: nothing is stored of such a one."""
        return next((one.key for one in self._parameters.stored if one.name == name), None)

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
        """Return a call's arguments as JSON, once they fit the function and are sure to come back.

        Equal calls give equal bytes, whichever way each argument was passed.

        Raises:
            TypeError: the call does not fit the function's signature; the text is Python's own.
            PayloadError: a value does not fit its annotation, or cannot be stored; the text names its path.
        """
        if not args and not kwargs and not self._required:
            return EMPTY_PAYLOAD
        if self._is_quick(args, kwargs):
            # Fields in the order of the parameters: msgspec binds the values as Python would, and refuses a
            # call that does not fit with a TypeError, to which the slow way finds the words.
            try:
                arguments = self._arguments(*args, **kwargs)
                payload = encode_json(arguments)
            except (TypeError, ValueError, OverflowError):  # Or a lone surrogate, or too long an integer.
                pass
            else:
                return payload if len(payload) <= self._quick_bytes else self._codec.check(arguments, payload)
        return self._codec.encode(self._arguments(*self._parameters.bind(args, kwargs)))

    def encode_given(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], read: Callable[[Any, Any], Any]
    ) -> bytes:
        """Return a call as JSON whose arguments came in another form, such as text that somebody typed.

        Args:
            args: by position, as they came.
            kwargs: by name, as they came.
            read: makes the value of one of them; given the annotation, too (`Any` where there is none that
                could be decoded). Whatever it raises is said with the parameter's name.

        Raises:
            TypeError: the call does not fit the function's signature; the text is Python's own.
            PayloadError: as `encode`, or one of them cannot be read.
        """
        values = self._parameters.bind(args, kwargs)
        for index, one in enumerate(self._parameters.stored):
            if values[index] is not UNSET:
                values[index] = self._read(one, values[index], read)
        return self._codec.encode(self._arguments(*values))

    def _read(self, one: Stored, given: Any, read: Callable[[Any, Any], Any]) -> Any:
        kind = _decodable(one.annotation)[0]
        kind_within = (get_args(kind) or (Any,))[-1]
        try:
            if one.key.startswith("**"):
                return {name: read(each, kind_within) for name, each in given.items()}
            if one.key.startswith("*"):
                return [read(each, kind_within) for each in given]
            return read(given, kind)
        except Exception as error:  # annotations may have constructors of any kind
            function = self._parameters.function
            raise PayloadError(f"{function}() argument `{one.name}`: {error}", path=one.name) from error

    def can_be_named(self, name: str) -> bool:
        """Whether an argument of a call can be given by this name."""
        return name in self._parameters.by_name or any(
            one.key.startswith("**") for one in self._parameters.stored
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which arguments of a call can be given."""
        return tuple(self._parameters.by_name)

    def _is_quick(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether all arguments are scalars of exactly the types that their annotations let through."""
        if len(args) > self._most:
            return False
        for value, allowed in zip(args, self._kinds):  # noqa: B905 - later arguments may be missing
            kind = type(value)
            if kind not in allowed or (kind is float and not isfinite(value)):
                return False
        for name, value in kwargs.items():
            kind = type(value)
            if kind not in self._kinds_by_name.get(name, ()) or (kind is float and not isfinite(value)):
                return False
        return True

    def decode(self, payload: bytes, context: Any = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the `args` and `kwargs` of a stored call, each value of its annotated type.

        Args:
            payload: what `encode` returned.
            context: the value for `context_parameter`; it stands in its place.

        Raises:
            PayloadError: what is stored does not fit the function (any more).
        """
        if self._is_callable_bare and payload == EMPTY_PAYLOAD:
            return (), {}
        values = msgspec.structs.astuple(self._codec.decode(payload))
        if self._parameters.is_plain and not (self._has_optional and _has_gap(values)):
            return values, {}
        return self._parameters.unbind(values, context)

    def arguments(self, payload: bytes) -> dict[str, Any]:
        """Return the arguments of a stored call by the parameters' names, each of its annotated type.

        Those that the call leaves out are not there; `*args` is a list, `**kwargs` a dict.

        Raises:
            PayloadError: what is stored does not fit the function (any more).
        """
        values = msgspec.structs.asdict(self._codec.decode(payload))
        return {name: value for name, value in values.items() if value is not UNSET}

    def filled_in(self, payload: bytes, defaults: Mapping[str, Any]) -> bytes:
        """Return a stored call with what it leaves out, so that it can be compared with another.

        Args:
            payload: what `encode` returned.
            defaults: values by the parameters' names; one that cannot be stored is left out.

        Raises:
            PayloadError: what is stored does not fit the function (any more).
        """
        arguments = self._codec.decode(payload)
        for name, value in defaults.items():
            if getattr(arguments, name, None) is UNSET:
                fuller = msgspec.structs.replace(arguments, **{name: value})
                with suppress(PayloadError):
                    payload = self._codec.encode(fuller)
                    arguments = fuller
        return payload

    def encode_result(self, value: Any) -> bytes:
        """Return a task's result as JSON, once it is sure to come back.

        Raises:
            PayloadError: it does not fit the return annotation, or cannot be stored; the text names its path.
        """
        kind = type(value)
        if kind in self._result_kinds:
            if value is None:
                return NULL
            if kind is not float or isfinite(value):
                try:
                    payload = encode_json(value)
                except (ValueError, OverflowError):
                    return self._result_codec.encode(value)
                return (
                    payload if len(payload) <= self._quick_bytes else self._result_codec.check(value, payload)
                )
        return self._result_codec.encode(value)

    def decode_result(self, payload: bytes) -> Any:
        """Return a stored result as a value of the return annotation.

        Raises:
            PayloadError: what is stored does not fit the return annotation (any more).
        """
        return self._result_codec.decode(payload)


def _has_gap(values: Sequence[Any]) -> bool:
    for value in values:  # noqa: SIM110 - a generator would double the time
        if value is UNSET:
            return True
    return False


def _struct_of(stored: Sequence[Stored], kinds: Sequence[Any]) -> type[msgspec.Struct]:
    """The type whose fields are a function's stored parameters; the optional ones may be left out."""
    fields: list[Any] = [
        (one.name, kind) if one.is_required else (one.name, _optional(kind), UNSET)
        for one, kind in zip(stored, kinds, strict=True)
    ]
    keys = {one.name: one.key for one in stored}
    return msgspec.defstruct("Arguments", fields, rename=keys, forbid_unknown_fields=True, gc=False)


def _optional(kind: Any) -> Any:
    return Union[kind, UnsetType]  # noqa: UP007 - not every annotation has the operator `|`


def _decodable(annotation: Any) -> tuple[Any, str]:
    """The type to decode into, and a remark for messages where that is not what the function says."""
    try:
        decoder_of(_optional(annotation))
    except Exception as error:  # noqa: BLE001 - annotations can be any object
        return Any, f" (its annotation is no help: {error})"
    return annotation, ""


def _scalar_kinds(annotation: Any) -> frozenset[type]:
    """The exact types that an annotation lets through as they are: those need no second look."""
    if annotation is Any or annotation is object:
        return SCALARS
    if isinstance(annotation, NewType):
        return _scalar_kinds(annotation.__supertype__)
    if get_origin(annotation) in {Union, UnionType}:
        members = [_scalar_kinds(member) for member in get_args(annotation)]
        return frozenset[type]().union(*members) if all(members) else frozenset()
    return frozenset({annotation}) & SCALARS if isinstance(annotation, type) else frozenset()
