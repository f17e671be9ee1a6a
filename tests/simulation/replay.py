"""Runs simulations from the command line: many, to look for faults, or one again, to see what happened.

python -m tests.simulation.replay memory 0-999
python -m tests.simulation.replay sqlite 17 --trace
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from tests.simulation.settings import StoreKind, draw
from tests.simulation.tally import Tally
from tests.simulation.world import simulate


def seeds_of(text: str) -> Iterator[int]:
    """Read `17`, `0-99`, or several of these with commas between."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def main() -> int:
    """Run what was asked for; say which runs have failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.replay", description=__doc__)
    parser.add_argument("store", choices=get_args(StoreKind))
    parser.add_argument("seeds", help="17, 0-99, or several of these with commas between")
    parser.add_argument("--trace", action="store_true", help="print all that happened")
    parser.add_argument("--digest", action="store_true", help="print what stands for all that happened")
    asked = parser.parse_args()
    met, failed = Tally(), 0
    for seed in seeds_of(asked.seeds):
        with tempfile.TemporaryDirectory() as folder:
            outcome = simulate(draw(seed, asked.store), Path(folder))
        met.update(outcome.tally)
        failed += bool(outcome.violations)
        if asked.digest:
            print(outcome.trace.digest)
            continue
        if asked.trace:
            print("\n".join(outcome.trace.lines))
        if outcome.violations:
            print(outcome, end="\n\n")
    if not asked.digest:
        print(f"{failed} failed; never met: {', '.join(met.missing) or 'nothing'}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
