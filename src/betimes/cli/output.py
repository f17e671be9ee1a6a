"""How answers are shown: tables for people, JSON for machines.

On a terminal, and where `rich` is installed (`pip install 'betimes[cli]'`), tables are drawn by it: on a
narrow one without the columns that can be spared. Elsewhere they are plain columns, two blanks apart, whole
and without colours, so that `grep` and `awk` can read them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

GAP = "  "
NARROWEST = 16
"""Characters that are left of the last column, at least, if it is broken into several lines."""


def json_option(fn: F) -> F:
    """Give a command `--json`."""
    option = click.option(
        "--json", "as_json", is_flag=True, allow_from_autoenv=False, help="Print JSON, for machines."
    )
    return option(fn)


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        title: its heading.
        of: what stands in it for a record.
        spare: on a terminal that is too narrow for all columns the one with the most goes first; 0: it stays.
    """

    title: str
    of: Callable[[Any], object]
    spare: int = 0


def show_table(
    records: Iterable[object], columns: Sequence[Column], *, as_json: bool, empty: str = "nothing"
) -> None:
    """Print records: a table of some columns, or a JSON list of all their fields.

    Args:
        records: dataclasses or dicts.
        columns: for people.
        as_json: whether a machine reads it.
        empty: what people read where there is no record.
    """
    records = list(records)
    if as_json:
        show_json(records)
        return
    if not records:
        click.echo(empty)
        return
    rows = [[_cell(column.of(record)) for column in columns] for record in records]
    if not _show_rich(columns, rows):
        _show_plain([column.title for column in columns], rows)


def show_json(value: object) -> None:
    """Print a value as JSON, on lines of its own; instants in ISO format, with their zone."""
    import json  # noqa: PLC0415 - tables do without

    click.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False))


def show_json_line(value: object) -> None:
    """Print a value as JSON on one line, for answers that come one after the other."""
    import json  # noqa: PLC0415 - tables do without

    click.echo(json.dumps(_plain(value), ensure_ascii=False))


def show_record(record: object, *, leave_out: Sequence[str] = ()) -> None:
    """Print the fields of a dataclass that have a value, one a line, for people; no text is no value."""
    assert is_dataclass(record)
    shown = {field.name: getattr(record, field.name) for field in fields(record)}
    shown = {
        name: value for name, value in shown.items() if name not in leave_out and value not in (None, (), "")
    }
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        text = ", ".join(map(str, value)) if isinstance(value, tuple) else _cell(value)
        click.echo(f"{name.replace('_', ' ').ljust(width)}  {text}")


def _plain(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    names = getattr(type(value), "__struct_fields__", None)
    if names is not None:
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, Enum):
        return _plain(value.value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(str(value).split())


def _show_rich(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> bool:
    if not sys.stdout.isatty():
        return False
    try:
        from rich.cells import cell_len  # noqa: PLC0415 - loaded late: it takes as long as all the rest
        from rich.console import Console  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415
    except ImportError:
        return False
    console = Console()
    titles = [column.title for column in columns]
    widths = [max(map(cell_len, column)) for column in zip(titles, *rows, strict=True)]
    kept = fitting(widths, [column.spare for column in columns], console.width)
    if not kept:
        return False  # each line whole, and the terminal breaks it: an id in three pieces is no id
    table = Table(box=None, pad_edge=False, padding=(0, len(GAP), 0, 0), header_style="bold")
    for place in kept:
        is_last = place == kept[-1]
        table.add_column(titles[place], overflow="fold", no_wrap=not is_last)
    for row in rows:
        table.add_row(*(Text(row[place]) for place in kept))
    console.print(table)
    return True


def fitting(widths: Sequence[int], spares: Sequence[int], room: int) -> list[int]:
    """Return the places of the columns that fit beside each other; none: what must stay does not fit.

    Args:
        widths: of the columns; the last one that is kept may be cut down to a readable rest.
        spares: as in `Column`.
        room: the width of the terminal.
    """
    kept = list(range(len(widths)))
    while kept:
        fixed = sum(widths[place] + len(GAP) for place in kept[:-1])
        if fixed + min(widths[kept[-1]], NARROWEST) <= room:
            return kept
        gone = max(kept, key=lambda place: (spares[place], place))
        if not spares[gone]:
            break
        kept.remove(gone)
    return []


def _show_plain(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(GAP.join(cells).rstrip())
