"""Values come back exactly, or are refused at submit, with the path to what cannot be stored."""

from __future__ import annotations

import collections
import dataclasses
import decimal
import enum
import math
import pathlib
import threading
import typing
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypedDict
from zoneinfo import ZoneInfo

import msgspec
import pytest

from betimes.core.payload import Signature
from betimes.errors import PayloadError

BERLIN = ZoneInfo("Europe/Berlin")


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Word(enum.StrEnum):
    YES = "yes"


class Pair(enum.Enum):
    ONE = (1, 2)


class Permission(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Row:
    name: str
    when: datetime | None = None
    tags: tuple[str, ...] = ()


@dataclasses.dataclass
class SpecialRow(Row):
    extra: int = 0


class Record(msgspec.Struct):
    n: int
    note: str | msgspec.UnsetType = msgspec.UNSET


class Renamed(msgspec.Struct, rename={"counts": "the.counts"}):
    counts: dict[str, int]


class Point(NamedTuple):
    x: int
    y: int


class Options(TypedDict):
    n: int


class Attribute:
    def __init__(self, name: str) -> None:
        self.name = name


class AttrsLike:
    """What msgspec takes for an attrs class, without that library."""

    __attrs_attrs__ = (Attribute("x"),)

    def __init__(self, x: Any) -> None:
        self.x = x


class Handle:
    payload_hint = "pass its id, and name it in depends_on"

    def __await__(self) -> Any:
        yield


class Text(str):
    __slots__ = ()


class Whole(int):
    pass


UserId = NewType("UserId", int)


def taking(annotation: Any) -> Signature:
    """The signature of a function of one argument, `value`, annotated as given."""

    def fn(value: Any) -> Any: ...

    fn.__annotations__ = {} if annotation is None else {"value": annotation, "return": annotation}
    return Signature(fn)


def fetch(url: str, retries: int = 0, *, timeout: float | None = None) -> int:
    return len(url) + retries + int(timeout or 0)


def plain(a: Any = None, b: Any = None) -> Any:
    return a, b


def unannotated(a, b=1, *args, **kwargs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN002, ANN003
    return a, b, args, kwargs


PLAIN: list[Any] = [
    None, True, False, 0, -1, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**100, 0.1, 1e22, 1e300, 5e-324, 1.0,
    "", "x", "a\x00b", "\u2028\U0001f600", '\\"', [], {},
    [1, "a", None, [True, [1.5]]], {"a": {"b": [1]}, "": 0},
]  # fmt: skip

ANNOTATED: list[tuple[Any, Any]] = [
    (tuple[int, ...], (1, 2)),
    (tuple, (1, "a")),
    (tuple[int, str], (1, "a")),
    (set[int], {1, 2}),
    (frozenset[str], frozenset({"a"})),
    (set[tuple[int, int]], {(1, 2)}),
    (bytes, b"\x00\xff"),
    (bytearray, bytearray(b"ab")),
    (dict[int, str], {1: "a", -5: "b"}),
    (dict[date, int], {date(2026, 1, 1): 1}),
    (dict[float, int], {1.5: 1}),
    (list[dict[str, tuple[int, ...]]], [{"a": (1,)}]),
    (Sequence[int], [1]),
    (Iterable[int], [1]),
    (Mapping[str, int], {"a": 1}),
    (datetime, datetime(2026, 3, 1, 12, 30, 5, 123_456, tzinfo=UTC)),
    (datetime, datetime(2026, 3, 1, 12, 30, 5, 123_456)),  # noqa: DTZ001
    (datetime, datetime(2026, 3, 1, tzinfo=timezone(timedelta(hours=-5, minutes=-30)))),
    (date, date(2026, 2, 28)),
    (time, time(12, 30, 0, 1)),
    (time, time(12, 30, tzinfo=UTC)),
    (timedelta, timedelta(days=-3, microseconds=1)),
    (uuid.UUID, uuid.UUID(int=5)),
    (decimal.Decimal, decimal.Decimal("1.10")),
    (decimal.Decimal, decimal.Decimal("NaN")),
    (Colour, Colour.RED),
    (Level, Level.HIGH),
    (Word, Word.YES),
    (Permission, Permission.READ | Permission.WRITE),
    (dict[Word, int], {Word.YES: 1}),
    (Row, Row("a", datetime(2026, 3, 1, tzinfo=UTC), ("x",))),
    (list[Row], [Row("a"), Row("b")]),
    (Row | None, Row("a")),
    (Record, Record(5)),
    (Record, Record(5, "x")),
    (Point, Point(1, 2)),
    (Options, {"n": 1}),
    (Literal["a", 5], 5),
    (UserId, UserId(5)),
    (Annotated[int, msgspec.Meta(gt=0)], 5),
    (pathlib.PurePosixPath, pathlib.PurePosixPath("a/b")),
    (pathlib.Path | None, pathlib.Path("a/b")),
    (dict[str, Any], {"a": [1, {"b": None}]}),
    (object, {"a": 1}),
    (int | float, 1),
    (int | float, 1e16),
    (str | None, None),
    (typing.NoReturn, "msgspec has no such type"),
    (str | datetime, "2026-03-01"),
    (typing.TypeVar("T"), 5),
]


def same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and repr(value) == repr(other)


@pytest.mark.parametrize("value", PLAIN)
def test_p05_plain_data_comes_back_without_an_annotation(value: Any) -> None:
    signature = taking(None)
    (back,), _ = signature.decode(signature.encode((value,), {}))
    assert same(back, value)
    assert same(signature.decode_result(signature.encode_result(value)), value)


@pytest.mark.parametrize(("annotation", "value"), ANNOTATED)
def test_p05_annotated_values_come_back_as_what_they_are(annotation: Any, value: Any) -> None:
    signature = taking(annotation)
    (back,), _ = signature.decode(signature.encode((value,), {}))
    assert same(back, value) or (back == value and isinstance(value, set | frozenset))
    assert same(signature.decode_result(signature.encode_result(value)), back)


LOSSY: list[tuple[Any, str]] = [
    ((1, 2), "of type `tuple` and would come back as `list`: annotate it as `tuple`, or pass `list`"),
    ({1, 2}, "of type `set`"),
    (b"ab", "of type `bytes` and would come back as `str`"),
    ({1: "a"}, "has the key 1, which would come back changed: use `str` keys"),
    ({None: 1}, "has the key None"),
    ({True: 1}, "has the key True"),
    ({1.5: 1}, "has the key 1.5"),
    ({Word.YES: 1}, "has the key"),
    (math.nan, "is nan, and JSON has only finite numbers"),
    (math.inf, "is inf"),
    (-math.inf, "is -inf"),
    ("\ud800", "has a lone surrogate"),
    ({"\udfff": 1}, "has the key '.udfff', which has a lone surrogate"),
    (Text("x"), "of type `Text`"),
    (Whole(3), "of type `Whole`"),
    (Level.HIGH, "of type `Level` and would come back as `int`"),
    (Word.YES, "of type `Word` and would come back as `str`"),
    (Pair.ONE, "of type `Pair`"),
    (Row("a"), "of type `Row` and would come back as `dict`"),
    (Record(1), "of type `Record` and would come back as `dict`"),
    (Point(1, 2), "of type `Point` and would come back as `list`"),
    (collections.Counter("a"), "of type `Counter` and would come back as `dict`"),
    (collections.OrderedDict(a=1), "of type `OrderedDict`"),
    (datetime(2026, 3, 1, tzinfo=UTC), "of type `datetime` and would come back as `str`"),
    (decimal.Decimal(1), "of type `Decimal`"),
    (pathlib.PurePosixPath("a"), "of type `PurePosixPath` and would come back as `str`"),
    (1j, "of type `complex`, which cannot be stored"),
    (object(), "of type `object`, which cannot be stored"),
    (threading.Lock(), "of type `lock`, which cannot be stored"),
    (ValueError("x"), "of type `ValueError`, which cannot be stored"),
    (msgspec.Raw(b"[1]"), "is raw JSON, which nobody has checked"),
    (10**5_000, "of type `int`, which cannot be stored"),
    (print, "of type `builtin_function_or_method`"),
    (lambda: 1, "is code"),
    (Row, "is code"),
    (Handle(), "is a `Handle`: pass its id, and name it in depends_on"),
    (range(3), "of type `range`"),
    ((n for n in (1, 2)), "is a `generator`, which has not run"),
]


@pytest.mark.parametrize(
    ("value", "reason"), LOSSY, ids=[f"{n}-{type(v).__name__}" for n, (v, _) in enumerate(LOSSY)]
)
def test_p05_what_would_be_lost_is_refused_where_it_stands(value: Any, reason: str) -> None:
    signature = taking(None)
    for wrapped, path in (
        (value, "value"),
        ([{"when": value}], "value[0]['when']"),
        ({"a": [value]}, "value['a'][0]"),
    ):
        with pytest.raises(PayloadError, match=reason) as refused:
            signature.encode((wrapped,), {})
        assert refused.value.path == path
        assert f"fn() argument `{path}` " in str(refused.value)
        with pytest.raises(PayloadError, match=reason) as refused:
            signature.encode_result(wrapped)
        assert refused.value.path == path.replace("value", "result")


MISFITS: list[tuple[Any, Any, str, str]] = [
    (str, 5, "value", "must be `str`, not `int`"),
    (int, True, "value", "must be `int`, not `bool`"),
    (int, 1.0, "value", "must be `int`, not `float`"),
    (int, "1", "value", "must be `int`, not `str`"),
    (float, math.nan, "value", "is nan"),
    (float | None, math.inf, "value", "is inf"),
    (float, 2**53 + 1, "value", "would come back as `float`"),
    (str | None, 5, "value", "must be `str | null`, not `int`"),
    (dict[float, int], {math.nan: 1}, "value", "has the key nan, which is nan, and JSON has only finite"),
    (tuple[int, ...], [1], "value", "of type `list` and would come back as `tuple`"),
    (Sequence[int], (1,), "value", "of type `tuple` and would come back as `list`"),
    (datetime, "2026-03-01T00:00:00Z", "value", "of type `str` and would come back as `datetime`"),
    (Row, SpecialRow("a"), "value", "of type `SpecialRow` and would come back as `Row`"),
    (Row, {"name": "a"}, "value", "of type `dict` and would come back as `Row`"),
    (Options, {"n": 1, "more": 2}, "value", "has keys that would not come back"),
    (list[Row], [Row("a"), Row("b", 5)], "value[1].when", "must be `datetime | null`, not `int`"),  # type: ignore[arg-type]
    (list[Row], [Row("a"), Row("b", None, ["x"])], "value[1].tags", "of type `list` and would come back"),  # type: ignore[arg-type]
    (Row, Row("\ud800"), "value.name", "lone surrogate"),
    (Row, Row(object()), "value.name", "of type `object`"),  # type: ignore[arg-type]
    (Record, Record("x"), "value.n", "must be `int`, not `str`"),  # type: ignore[arg-type]
    (dict[str, int], {"a": 1, "b": 2, "c": "x", "d": 4}, "value['c']", "must be `int`, not `str`"),
    (
        dict[str, dict[str, list[int]]],
        {"a": {}, "b": {"c": [], "d": [1, None]}},
        "value['b']['d'][1]",
        "not `null`",
    ),
    (dict[int, int], {"a": 1, 2: 2}, "value['a']", "has a key that must be `int`, not `str`"),
    (Renamed, Renamed({"a": "x"}), "value.the.counts[...]", "must be `int`"),  # type: ignore[dict-item]
    (dict[int | str, str], {1: "a", "1": "b"}, "value", "has the key 1, which would come back changed"),
    (set[float], {2**53 + 1}, "value", "has the member 9007199254740993, which would come back changed"),
    (list[Any], [msgspec.Raw(b"1,2")], "value", "would come back as .1, 2., which is not the same"),
    (set[Literal[1]], {2}, "value[0]", "cannot be read: Invalid enum value 2"),
    (
        Annotated[int, msgspec.Meta(gt=10)],
        5,
        "value",
        "cannot be read: Expected `int` >= 11",
    ),
    (pathlib.PurePosixPath, 5, "value", "must be `PurePosixPath`, not `int`"),
    (Handle, {"a": 1}, "value", "must be `Handle`, not `dict`"),
    (
        str | datetime,
        datetime(2026, 3, 1, tzinfo=UTC),
        "value",
        "come back as `str`.*its annotation is no help",
    ),
    (
        datetime,
        datetime(2026, 3, 1, tzinfo=timezone(timedelta(seconds=3_661))),
        "value",
        "would come back as",
    ),
    (datetime, datetime(2026, 10, 25, 2, 30, fold=1), "value", "would come back as"),  # noqa: DTZ001
    (time, time(12, 30, tzinfo=BERLIN), "value", "would come back as"),
    (int, -(10**4_299), "value", "cannot be read: Integer value out of range"),
    (AttrsLike, AttrsLike(object()), "value.x", "of type `object`"),
]


@pytest.mark.parametrize(("annotation", "value", "path", "reason"), MISFITS)
def test_p05_what_does_not_fit_its_annotation_is_refused(
    annotation: Any, value: Any, path: str, reason: str
) -> None:
    with pytest.raises(PayloadError, match=reason) as refused:
        taking(annotation).encode((value,), {})
    assert refused.value.path == path
    with pytest.raises(PayloadError):
        taking(annotation).encode_result(value)
