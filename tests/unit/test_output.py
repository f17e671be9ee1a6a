"""What a program writes is kept at its end, within a bound, and told line by line."""

from __future__ import annotations

import pytest

from betimes.core.log import LINE_LENGTH, LINES_KEPT
from betimes.core.output import LARGEST_ENCODED, Output


def told(*chunks: bytes) -> list[str | None]:
    output = Output(100)
    return [*map(output.take, chunks), output.rest()]


def kept(most: int, *chunks: bytes) -> tuple[str, bool]:
    output = Output(most)
    for chunk in chunks:
        output.take(chunk)
    return output.text(), output.is_truncated


def test_lines_are_told_as_they_are_finished() -> None:
    assert told(b"a\nb", b"c\n", b"d") == ["a", "bc", None, "d"]
    assert told(b"a\nb\n") == ["a\nb", None]
    assert told(b"a", b"b") == [None, None, "ab"]


def test_empty_lines_are_lines() -> None:
    assert told(b"\n\na\n") == ["\n\na", None]
    assert told(b"\n") == ["", None]


def test_a_carriage_return_ends_a_line_once() -> None:
    assert told(b"50%\r100%\r\n") == ["50%\n100%", None]
    assert told(b"a\r", b"\nb") == [None, "a", "b"]
    assert told(b"a\r", b"b\n") == [None, "a\nb", None]


def test_a_character_in_two_chunks_is_one() -> None:
    assert told(b"\xc3", b"\xa4\n") == [None, "ä", None]
    assert told(b"a\xff\n\xc3") == ["a�", "�"]


def test_a_line_that_never_ends_takes_no_more_than_a_log_keeps() -> None:
    output = Output(10)
    for _ in range(1000):
        assert output.take(b"x" * 1000) is None
    rest = output.rest()
    assert rest is not None
    assert len(rest) == LINE_LENGTH + 1
    assert output.rest() is None


def test_of_a_burst_no_more_lines_are_told_than_a_log_keeps() -> None:
    lines = Output(10).take(b"\n".join(b"%d" % number for number in range(5000)) + b"\n")
    assert lines is not None
    assert lines.split("\n") == [str(number) for number in range(5000 - LINES_KEPT, 5000)]


@pytest.mark.parametrize("chunk", [1, 3, 10, 64])
def test_the_end_is_kept(chunk: int) -> None:
    data = bytes(range(48, 123)) * 3
    chunks = [data[at : at + chunk] for at in range(0, len(data), chunk)]
    assert kept(10, *chunks) == (data[-10:].decode(), True)
    assert kept(len(data), *chunks) == (data.decode(), False)
    assert kept(0, *chunks) == ("", True)
    assert kept(0) == ("", False)


def test_memory_stays_bounded() -> None:
    output = Output(1000)
    for _ in range(10_000):
        output.take(b"x" * 999 + b"\n")
    assert len(output._kept) <= 2000
    assert output.text() == "x" * 999 + "\n"


def test_no_piece_of_a_character_stands_at_the_cut() -> None:
    assert kept(4, "aää".encode()) == ("ää", True)
    assert kept(3, "aää".encode()) == ("ä", True)
    assert kept(3, "a🎈".encode()) == ("", True)
    assert kept(4, b"\x80" * 9) == ("�", True)  # no text at all: at most one character's worth is left out
    assert kept(9, b"\x80b") == ("�b", False)


def test_what_is_kept_fits_into_a_result_even_if_it_needs_escapes() -> None:
    text, is_truncated = kept(4_000_000, b"\0" * 4_000_000)
    assert is_truncated
    assert len(text) * 6 <= LARGEST_ENCODED
    assert len(text) >= 500_000
