"""How tables are shown on terminals of any width."""

from __future__ import annotations

import io
import sys

import pytest

from betimes.cli.output import Column, fitting, show_table


class Terminal(io.StringIO):
    """A terminal that keeps what is written to it."""

    def isatty(self) -> bool:
        return True


def table_on(width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Show two records on a terminal of this width; return its lines."""
    terminal = Terminal()
    with monkeypatch.context() as here:
        here.setattr(sys, "stdout", terminal)
        here.setenv("COLUMNS", str(width))
        here.setenv("TERM", "xterm")
        here.setenv("NO_COLOR", "1")
        columns = [
            Column("id", lambda row: row[0]),
            Column("status", lambda row: row[1]),
            Column("when", lambda _: "2026-03-01 09:00:00", spare=2),
            Column("why", lambda row: row[2], spare=1),
        ]
        records = [("01a22e62-f428-7101", "failed", "ValueError: bad is no address"), ("☃", "ready", None)]
        show_table(records, columns, as_json=False)
    return terminal.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()


def test_a_wide_terminal_shows_every_column(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = table_on(100, monkeypatch)
    assert lines[0].split() == ["id", "status", "when", "why"]
    assert lines[1].split("  ")[-1].rstrip() == "ValueError: bad is no address"


def test_a_narrow_terminal_does_without_what_can_be_spared_and_breaks_no_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = table_on(50, monkeypatch)
    assert lines[0].split() == ["id", "status", "why"]
    assert lines[1].startswith("01a22e62-f428-7101  failed  ValueError")
    assert lines[2].strip()  # the rest of the last column
    assert all(len(line) <= 50 for line in lines)
    assert table_on(30, monkeypatch)[0].split() == ["id", "status"]


def test_what_fits_no_terminal_is_left_whole_for_it_to_break(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = table_on(10, monkeypatch)
    assert lines[0].split() == ["id", "status", "when", "why"]
    assert lines[1].startswith("01a22e62-f428-7101  failed ")


@pytest.mark.parametrize(
    ("room", "kept"),
    [(100, [0, 1, 2]), (38, [0, 1, 2]), (37, [0, 2]), (26, [0, 2]), (25, [])],
)
def test_columns_go_in_the_order_of_how_well_they_can_be_spared(room: int, kept: list[int]) -> None:
    assert fitting([8, 10, 40], [0, 1, 0], room) == kept


def test_among_equals_the_last_goes_first() -> None:
    assert fitting([5, 5, 5], [0, 1, 1], 12) == [0, 1]
