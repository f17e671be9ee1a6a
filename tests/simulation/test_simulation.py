"""The real runtime on simulated time, with faults: every run must keep the promises.

More runs than these: `python -m tests.simulation.replay memory 0-1000`, or the same tests with
`BETIMES_SIMULATION_SEEDS=0-300`. A run that fails is named by its store and seed, and can be replayed alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from tests.simulation.replay import seeds_of
from tests.simulation.settings import StoreKind, draw
from tests.simulation.tally import Tally
from tests.simulation.world import Outcome, simulate

ROOT = Path(__file__).parents[2]
SEEDS: dict[StoreKind, str] = {
    "memory": "0-17,40-51,55,80-95",
    "sqlite": "24-28,41,43,44,75-79",
    "sqlite-each": "32-36,46,48,49,80-84",
}
"""Of each hundred, those from 60 on are worlds with schedules, and those from 40 on with restraints."""
GIVEN = os.environ.get("BETIMES_SIMULATION_SEEDS")
USUAL_RUNS = [(kind, seed) for kind, few in SEEDS.items() for seed in seeds_of(few)]
RUNS = USUAL_RUNS if GIVEN is None else [(kind, seed) for kind in SEEDS for seed in seeds_of(GIVEN)]


@cache
def run(kind: StoreKind, seed: int) -> Outcome:
    """Run it once for all tests of this session."""
    with tempfile.TemporaryDirectory() as folder:
        return simulate(draw(seed, kind), Path(folder))


def test_every_kind_of_store_is_simulated() -> None:
    assert {kind for kind, _ in RUNS} == set(get_args(StoreKind))


@pytest.mark.parametrize(("kind", "seed"), RUNS, ids=[f"{kind}-{seed}" for kind, seed in RUNS])
def test_p06_to_p26_hold_whatever_goes_wrong(kind: StoreKind, seed: int) -> None:
    outcome = run(kind, seed)
    assert not outcome.violations, str(outcome)
    assert outcome.jobs >= 10, "there was hardly anything to do"


@pytest.mark.timeout(600)
def test_the_usual_runs_meet_all_that_they_are_made_for() -> None:
    met = Tally()
    for kind, seed in USUAL_RUNS:
        met.update(run(kind, seed).tally)
    assert met.missing == []


def test_a_seed_gives_the_same_run_again_also_in_another_process() -> None:
    """Replaying is worth nothing if the order of a set decides."""
    digests = set()
    for hash_seed in ("1", "2"):
        answer = subprocess.run(
            [sys.executable, "-m", "tests.simulation.replay", "--digest", "sqlite", "77"],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=True,
            timeout=50,
        )
        digests.add(answer.stdout.strip())
    assert digests == {run("sqlite", 77).trace.digest}


def test_two_seeds_give_two_runs() -> None:
    assert run("memory", 0).trace.digest != run("memory", 1).trace.digest
