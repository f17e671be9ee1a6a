"""Tables of what was measured: as text while it runs, as Markdown for the document."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path

from bench.conditions import Conditions
from bench.harness import Contender, Measured, Target

BEGIN = "<!-- measured {part}: begin (written by `python -m bench --write-docs {part}`) -->"
END = "<!-- measured {part}: end -->"

PARTS = {
    "jobs": ("memory", "sqlite"),
    "schedules": ("schedules",),
    "restraint": ("restraint",),
    "files": ("files",),
    "postgres": ("postgres",),
}
"""The parts of the document that are written each by itself, and the sections in each."""

SECTIONS = {
    "memory": "In one process, on the memory store",
    "sqlite": "Durable, on a SQLite file",
    "schedules": "Schedules",
    "restraint": "Power and restraint",
    "files": "Files with a rollback journal or with several processes, and starting from a shell",
    "postgres": "Durable, on a PostgreSQL server of the same machine",
}
HEAD = (
    "| who | median (least–greatest) | Betimes against it | target | |",
    "|---|---|---|---|---|",
)


def figure(value: float, unit: str) -> str:
    """Show a figure with three digits that count."""
    if unit == "µs" and value >= 1_000:
        return f"{value / 1_000:,.1f} ms"
    if value < 10:
        return f"{value:.2g} {unit}"
    return f"{value:,.0f} {unit}"


def ratio(value: float) -> str:
    """Show a ratio with as many digits as it can bear."""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _spread(measured: Measured, who: Contender) -> str:
    row = measured.row
    values = measured.figures(who.name)
    if not values:
        return "not installed"
    shown = f"{figure(statistics.median(values), row.unit)} ({_range(min(values), max(values), row.unit)})"
    for other in row.also:
        more = statistics.median(measured.figures(who.name, other))
        shown += f"; {other.partition('_')[0]} {figure(more, row.unit)}"
    return shown


def _range(least: float, greatest: float, unit: str) -> str:
    """Show two figures, with their unit once if it is the same."""
    first, last = figure(least, unit), figure(greatest, unit)
    number, _, first_unit = first.rpartition(" ")
    return f"{number if last.endswith(f' {first_unit}') else first}–{last}"


def _against(measured: Measured, who: Contender) -> str:
    """Say what ours is, divided by this contender's, round by round."""
    if who.name == measured.ours or not measured.runs[who.name] or not measured.runs[measured.ours]:
        return ""
    ratios = measured.ratios(measured.ours, who.name)
    shown = f"{ratio(statistics.median(ratios))} ({ratio(min(ratios))}–{ratio(max(ratios))})"
    if measured.row.shows_cpu and "cpu_rate" in (measured.runs[who.name] or [{}])[0]:
        pairs = zip(
            measured.figures(measured.ours, "cpu_rate"), measured.figures(who.name, "cpu_rate"), strict=True
        )
        shown += f"; by processor time {ratio(statistics.median(mine / its for mine, its in pairs))}"
    return shown


def _bound(target: Target, unit: str) -> str:
    sign, bound = ("≥", target.at_least) if target.at_least is not None else ("≤", target.at_most)
    assert bound is not None
    return f"{sign} {figure(bound, unit) if target.against is None else f'{bound:g}'}"


def _targets(measured: Measured, who: Contender) -> list[Target]:
    """Return the targets to show in a contender's line: ratios beside whom they are against."""
    held = measured.ours
    return [
        each
        for each in measured.row.targets
        if (each.against == who.name or (each.against is None and who.name == (each.of or held)))
    ]


def _lines(measured: Measured) -> Iterable[str]:
    for who in measured.row.contenders:
        name = f"**{who.name}**" if who.role == "ours" else who.name
        name = f"{name} (limit)" if who.role == "limit" else name
        cells = [name, _spread(measured, who), _against(measured, who)]
        targets = _targets(measured, who)
        cells.append("; ".join(_bound(target, measured.row.unit) for target in targets))
        cells.append("; ".join(_verdict(measured, target) for target in targets))
        yield f"| {' | '.join(cells)} |"


def _verdict(measured: Measured, target: Target) -> str:
    reached = measured.reached(target)
    if reached is None:
        return "not measured"
    return "met" if target.is_met(reached) else "**missed**"


def table(measured: Measured) -> str:
    """Return a row's table in Markdown, under a line that says what was done."""
    rounds = max(len(taken or ()) for taken in measured.runs.values())
    head = f"**{measured.row.name}**: {measured.row.work}. {rounds} rounds."
    return "\n".join([head, "", *HEAD, *_lines(measured)])


def summary(results: Iterable[Measured]) -> str:
    """Return all targets in one table, the missed ones included."""
    lines = ["| row | target | reached | |", "|---|---|---|---|"]
    for measured in results:
        for target in measured.row.targets:
            reached = measured.reached(target)
            what = "itself" if target.against is None else f"against {target.against}"
            unit = measured.row.unit
            shown = (
                "" if reached is None else figure(reached, unit) if target.against is None else ratio(reached)
            )
            cells = (measured.row.name, f"{what}: {_bound(target, unit)}", shown, _verdict(measured, target))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def conditions(found: Conditions) -> str:
    """Return the circumstances as a Markdown list."""
    peers = ", ".join(f"{name} {version}" for name, version in found.peers.items()) or "none installed"
    return f"""\
- Measured {found.date}, in {found.minutes:g} minutes; Betimes {found.betimes}.
- {found.python}, SQLite {found.sqlite}, PostgreSQL {found.postgres}.
- {found.system}, {found.cores} × {found.cpu}, {found.memory_gib} GiB.
- Files on {found.filesystem}; an fsync took {found.fsync_us:,} µs (median of 200, before the run).
- Peers: {peers}.
- Load (how many wanted a processor): {found.load_before} before, {found.load_after} after. Where it is
  much more than 1, neighbours were at work, and only the ratios count."""


def markdown(found: Conditions, results: list[Measured], of: str = "") -> str:
    """Return conditions, targets and tables; `of` goes into the first two's headings."""
    parts = [f"### Conditions{of}", conditions(found), f"### Targets{of}", summary(results)]
    for section, title in SECTIONS.items():
        rows = [measured for measured in results if measured.row.section == section]
        if rows:
            parts += [f"### {title}", *(table(measured) for measured in rows)]
    return "\n\n".join(parts)


def write_into(document: Path, part: str, found: Conditions, results: list[Measured]) -> None:
    """Replace what stands between the two marks of one of the document's `PARTS`.

    Raises:
        ValueError: it has no such marks; nothing was written.
    """
    first, last = BEGIN.format(part=part), END.format(part=part)
    before, begin, rest = document.read_text(encoding="utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"{document} lacks the lines {first!r} and {last!r}, between which the tables go")
    text = markdown(found, results, of=f" of the rows on {part}")
    document.write_text(f"{before}{first}\n\n{text}\n\n{last}{after}", encoding="utf-8")
