"""Whether a value that went through JSON came back as it was, and where it did not.

JSON knows fewer types than Python, and an encoder that makes do (a tuple becomes a list, NaN becomes null,
the key 1 becomes "1") loses something without a word. So what is to be stored is encoded, decoded and
compared with the original: type by type, key by key. Two liberties are taken:

- an `int` where a `float` is annotated comes back as the equal `float`;
- an aware `datetime` or `time` comes back at the same instant and offset, its zone no longer by name.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, time
from decimal import Decimal
from types import FunctionType, GeneratorType, NoneType
from typing import Any

import msgspec

from betimes.core.wording import shown

MAX_DEPTH = 64
"""How many lists, dicts and objects may stand inside one another."""

SCALARS: frozenset[type] = frozenset({str, int, float, bool, NoneType})
"""What JSON has of its own besides lists and dicts."""

_TOO_DEEP = f"is nested more than {MAX_DEPTH} deep (or contains itself)"
_LONGEST_PATH = 200


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """Where a value cannot be stored, and why.

    Attributes:
        path: from the value asked about, such as `[3].when`; empty: that value itself.
        reason: goes on from "the argument …".
    """

    path: str
    reason: str

    def inside(self, segment: str) -> Fault:
        """Return the same fault, seen from one level further out."""
        path = segment + self.path
        return Fault(path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…", self.reason)


def find_change(value: Any, back: Any, depth: int = 0) -> Fault | None:
    """Return the first place where `back`, decoded from `value`, is not what `value` was; None: nowhere."""
    kind = type(value)
    if kind is not type(back):
        if kind is int and type(back) is float and value == back:
            return None
        return Fault("", _why_not(value) or _comes_back_as(value, back))
    if kind in SCALARS:
        return None if value == back else _changed(back)
    names = field_names(kind)
    if names is None and not isinstance(value, list | tuple | dict | set | frozenset):
        return None if _is_same_leaf(value, back) else _changed(back)
    if depth >= MAX_DEPTH:
        return Fault("", _TOO_DEEP)
    return _inside_change(value, back, names, depth + 1)


def find_unstorable(value: Any, encode: Callable[[Any], bytes], depth: int = 0) -> Fault | None:
    """Return the first part of `value` that cannot be encoded by itself; None: there is none.

    Args:
        value: what could not be stored.
        encode: the encoder that refused it.
        depth: how far inside the argument it stands.
    """
    reason = _why_not(value)
    if reason is not None:
        return Fault("", reason)
    parts = _parts(value)
    if parts is None:
        return _leaf_fault(value, encode)
    if depth >= MAX_DEPTH:
        return Fault("", _TOO_DEEP)
    for segment, part in parts:
        fault = find_unstorable(part, encode, depth + 1)
        if fault is not None:
            return fault.inside(segment)
    keys = value if isinstance(value, dict) else ()
    return next((_key_fault(key) for key in keys if _leaf_fault({key: None}, encode) is not None), None)


def field_names(kind: type) -> tuple[str, ...] | None:
    """Return the names of a msgspec, dataclass or attrs type's fields; None for any other type."""
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    attributes = getattr(kind, "__attrs_attrs__", None)
    return None if attributes is None else tuple(attribute.name for attribute in attributes)


def _parts(value: Any) -> Iterable[tuple[str, Any]] | None:
    """The values directly inside, each with its path segment; None for what has no inside."""
    if isinstance(value, dict):
        return [(f"[{shown(key)}]", part) for key, part in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [(f"[{index}]", part) for index, part in enumerate(value)]
    names = field_names(type(value))
    if names is None:
        return None
    parts = ((f".{name}", getattr(value, name, msgspec.UNSET)) for name in names)
    return [(segment, part) for segment, part in parts if part is not msgspec.UNSET]


def _inside_change(value: Any, back: Any, names: tuple[str, ...] | None, depth: int) -> Fault | None:
    if names is not None:
        return _field_change(value, back, names, depth)
    if isinstance(value, dict):
        return _dict_change(value, back, depth)
    if isinstance(value, set | frozenset):
        return _set_change(value, back, depth)
    return _items_change(value, back, depth)


def _field_change(value: Any, back: Any, names: tuple[str, ...], depth: int) -> Fault | None:
    for name in names:
        before, after = getattr(value, name, msgspec.UNSET), getattr(back, name, msgspec.UNSET)
        fault = find_change(before, after, depth)
        if fault is not None:
            return fault.inside(f".{name}")
    return None


def _items_change(value: Any, back: Any, depth: int) -> Fault | None:
    if len(value) != len(back):
        return _changed(back)
    for index, (before, after) in enumerate(zip(value, back, strict=True)):
        fault = None if _is_same_scalar(before, after) else find_change(before, after, depth)
        if fault is not None:
            return fault.inside(f"[{index}]")
    return None


def _dict_change(value: dict[Any, Any], back: dict[Any, Any], depth: int) -> Fault | None:
    for (key, before), (key_back, after) in zip(value.items(), back.items(), strict=False):
        if not _is_same_scalar(key, key_back) and find_change(key, key_back, depth) is not None:
            return _key_fault(key)
        fault = None if _is_same_scalar(before, after) else find_change(before, after, depth)
        if fault is not None:
            return fault.inside(f"[{shown(key)}]")
    return None if len(value) == len(back) else Fault("", "has keys that would not come back")


def _set_change(value: Any, back: Any, depth: int) -> Fault | None:
    counterparts = {member: member for member in back}
    for member in value:
        after = counterparts.get(member, msgspec.UNSET)
        if after is msgspec.UNSET or find_change(member, after, depth) is not None:
            return Fault("", f"has the member {shown(member)}, which would come back changed")
    return None


def _is_same_scalar(value: Any, back: Any) -> bool:
    """Whether these are the same scalar of the same type: the shortcut for long, flat data."""
    kind = type(value)
    return kind in SCALARS and kind is type(back) and value == back


def _is_same_leaf(value: Any, back: Any) -> bool:
    if isinstance(value, datetime | time):
        # Not `==`: between zones it is False for every time that a change of the clocks repeats or skips
        # (PEP 495), and for naive times it ignores `fold`.
        is_naive = value.tzinfo is None
        if is_naive != (back.tzinfo is None) or (is_naive and value.fold != back.fold):
            return False
        local, local_back = value.replace(tzinfo=None, fold=0), back.replace(tzinfo=None, fold=0)
        return bool(local == local_back and value.utcoffset() == back.utcoffset())
    if isinstance(value, Decimal):
        return bool(value.as_tuple() == back.as_tuple())  # 1.10 is not 1.1, and NaN is NaN.
    return bool(value == back)


def _leaf_fault(value: Any, encode: Callable[[Any], bytes]) -> Fault | None:
    try:
        encode(value)
    except Exception:  # noqa: BLE001 - the encoder calls the value's own methods, which may raise anything
        name = type(value).__qualname__
        return Fault("", f"is of type `{name}`, which cannot be stored: pass plain data, such as an id")
    return None


def _why_not(value: Any) -> str | None:
    """Why a value of this kind is never stored, and what to do; None where there is no general reason."""
    hint = getattr(type(value), "payload_hint", None)
    if isinstance(hint, str):
        return f"is a `{type(value).__qualname__}`: {hint}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"is {value!r}, and JSON has only finite numbers: pass None, or text"
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        return "has a lone surrogate and so is no valid text: pass bytes, and annotate them as `bytes`"
    if isinstance(value, Awaitable | GeneratorType):
        return f"is a `{type(value).__qualname__}`, which has not run: pass the value it gives"
    if isinstance(value, msgspec.Raw):
        return "is raw JSON, which nobody has checked: pass the data that it stands for"
    if isinstance(value, FunctionType | type):
        return "is code, and code is never stored: pass its name, or make it a task of its own"
    return None


def _comes_back_as(value: Any, back: Any) -> str:
    here, there = type(value).__qualname__, type(back).__qualname__
    return f"is of type `{here}` and would come back as `{there}`: annotate it as `{here}`, or pass `{there}`"


def _changed(back: Any) -> Fault:
    return Fault("", f"would come back as {shown(back)}, which is not the same")


def _key_fault(key: Any) -> Fault:
    reason = (
        _why_not(key) or "would come back changed: use `str` keys, or annotate the dict, as `dict[int, str]`"
    )
    return Fault("", f"has the key {shown(key)}, which {reason}")
