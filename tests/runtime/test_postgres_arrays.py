"""Arrays come to the server as they were meant, whatever stands in them."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.postgres.server import Server

from betimes.stores.postgres.arrays import array_of, columns_of

TEXTS = st.lists(st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
NUMBERS = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1))
AWKWARD = ["", " ", "NULL", "null", None, '"', "\\", '\\"', "{}", "{,}", ",", "a\nb\tc", "'", "ü☃💩", " x "]


@pytest.fixture(scope="module")
def conn(postgres: Server) -> Iterator[psycopg.Connection]:
    """A connection."""
    with psycopg.connect(postgres.url(), autocommit=True, cursor_factory=psycopg.RawCursor) as made:
        yield made


def read(conn: psycopg.Connection, kind: str, values: list[str | None] | list[int | None]) -> list[object]:
    """What the server has understood."""
    row = conn.execute(f"SELECT $1::{kind}[]", (array_of(values),)).fetchone()
    assert row is not None
    return list(row[0])


@pytest.mark.parametrize("values", [AWKWARD, ['"'] * 3, [None, None], [], ["NULL"], ["a"]])
def test_awkward_texts(conn: psycopg.Connection, values: list[str | None]) -> None:
    assert read(conn, "text", values) == values


@given(values=TEXTS)
def test_any_texts(conn: psycopg.Connection, values: list[str | None]) -> None:
    assert read(conn, "text", values) == values


@given(values=NUMBERS)
def test_any_numbers(conn: psycopg.Connection, values: list[int | None]) -> None:
    assert read(conn, "bigint", values) == values


def test_a_column_of_each_place() -> None:
    assert columns_of([(1, "a", None), (2, None, None)]) == ["{1,2}", '{"a",NULL}', "{NULL,NULL}"]
