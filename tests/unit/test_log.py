"""A job's log is made of lines that can be stored and shown."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from betimes.core.log import LINE_LENGTH, LogLine, lines_of


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a", ["a"]),
        ("a\nb\r\nc\n", ["a", "b", "c"]),
        ("", [""]),
        ("a\n\nb", ["a", "", "b"]),
        ("a\0b", ["a\\x00b"]),
        ("\ud800", ["\\ud800"]),
        ("\udcff undecodable", ["\\udcff undecodable"]),
        ("1 %\r2 %\r3 %", ["1 %", "2 %", "3 %"]),
        ("\n", [""]),
        ("ü – 🎈\u2028next", ["ü – 🎈", "next"]),
        ("\0" * LINE_LENGTH, [("\\x00" * LINE_LENGTH)[: LINE_LENGTH - 1] + "…"]),
        ("x" * LINE_LENGTH, ["x" * LINE_LENGTH]),
        ("x" * (LINE_LENGTH + 1), ["x" * (LINE_LENGTH - 1) + "…"]),
    ],
)
def test_text_is_cut_into_lines_that_can_be_stored(text: str, lines: list[str]) -> None:
    assert list(lines_of(text)) == lines


def test_a_line_shows_its_text_and_its_instant() -> None:
    line = LogLine(at_us=1_500_000, attempt=1, text="done")
    assert str(line) == "done"
    assert line.at == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
