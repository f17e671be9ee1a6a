"""`python -m bench`: measure Betimes, its peers and the limit side by side."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from bench import conditions, files, memory, postgres, report, restraint, schedules, sqlite
from bench.harness import ROOT, Measured, Plan, Row, RunFailed, measure
from bench.server import running_server

PARTS = (memory, sqlite, schedules, restraint, files, postgres)
ROWS = {row.name: row for part in PARTS for row in part.ROWS}
DOCUMENT = ROOT / "docs" / "explanation" / "performance.md"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"which rows: {', '.join(ROWS)} (all short ones)"
    )
    parser.add_argument("--growth", action="store_true", help="the long rows, too: those with a million jobs")
    parser.add_argument(
        "--runs", type=int, metavar="N", help="rounds for every row (as each row says: 5 or 3)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny work, two rounds: to see that all of it runs"
    )
    parser.add_argument("--json", action="store_true", help="print every figure of every run as JSON")
    parser.add_argument(
        "--write-docs",
        nargs="?",
        const="all",
        choices=("all", *report.PARTS),
        help="measure all rows, or all of one part, the long ones too, and put the tables into "
        f"{DOCUMENT.relative_to(ROOT)}",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="where to make files: on the disk whose fsync counts (the temporary folder)",
    )
    chosen = parser.parse_args()
    for name in chosen.rows:
        if name not in ROWS:
            parser.error(f"there is no row {name!r}; the rows are {', '.join(ROWS)}")
    if chosen.write_docs and (chosen.rows or chosen.quick):
        parser.error("--write-docs measures all rows of a part in full: leave out the rows and --quick")
    return chosen


def _parts(arguments: argparse.Namespace) -> list[str]:
    """Return the parts of the document to write."""
    chosen = arguments.write_docs
    return [part for part in report.PARTS if chosen in ("all", part)]


def _chosen(arguments: argparse.Namespace) -> list[Row]:
    if arguments.rows:
        return [ROWS[name] for name in arguments.rows]
    if arguments.write_docs:
        sections = {section for part in _parts(arguments) for section in report.PARTS[part]}
        return [row for row in ROWS.values() if row.section in sections]
    return [row for row in ROWS.values() if arguments.growth or not row.is_long]


def _write(arguments: argparse.Namespace, found: conditions.Conditions, results: list[Measured]) -> None:
    for part in _parts(arguments):
        rows = [each for each in results if each.row.section in report.PARTS[part]]
        report.write_into(DOCUMENT, part, found, rows)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Measure, print, and write the document if asked; 1 if a run failed."""
    arguments = _arguments()
    folder = arguments.folder or Path(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(prefix="betimes-bench-", dir=folder) as own, ExitStack() as stack:

        @cache
        def server() -> str:
            return stack.enter_context(running_server())

        plan = Plan(
            folder=Path(own), rounds=arguments.runs, is_quick=arguments.quick, say=_say, server=server
        )
        return _measure(arguments, plan)


def _measure(arguments: argparse.Namespace, plan: Plan) -> int:
    began = time.monotonic()
    found = conditions.look(plan.folder)
    results: list[Measured] = []
    failed = False
    for row in _chosen(arguments):
        try:
            results.append(measure(row, plan))
        except RunFailed as failure:
            failed = True
            _say(f"{row.name}: {failure}")
    found = found.after(began)
    if arguments.json:
        runs = {measured.row.name: measured.runs for measured in results}
        print(json.dumps({"conditions": found.as_dict(), "rows": runs}, indent=1))
    else:
        print(report.markdown(found, results))
    if arguments.write_docs:
        if failed:
            _say(f"{DOCUMENT} was left as it is: not every row could be measured")
        else:
            _write(arguments, found, results)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
