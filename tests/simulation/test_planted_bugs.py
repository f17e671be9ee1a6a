"""The simulation finds what it is there to find: every planted bug, by the right complaint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.simulation import bugs_of_ends, bugs_of_leases, bugs_of_order, bugs_of_workers
from tests.simulation.bugs import BUGS
from tests.simulation.settings import StoreKind, draw
from tests.simulation.world import simulate

MODULES = (bugs_of_leases, bugs_of_workers, bugs_of_order, bugs_of_ends)
SEEDS = range(60)
FOUND_FIRST = {
    "at_most_once_is_given_back-memory": 24,
    "at_most_once_is_rescued-memory": 8,
    "cancel_is_forgotten_at_the_finish-memory": 3,
    "key_is_checked_before_it_is_taken-memory": 2,
    "lost_claim_is_never_reconciled-sqlite": 4,
    "lost_reports_are_forgotten-memory": 6,
    "poison_is_swallowed_for_ever-memory": 13,
    "replacement_runs_beside_the_old_version-memory": 3,
    "results_are_mixed_up-memory": 3,
    "retry_does_not_wait_for_old_code-memory": 3,
    "retry_does_not_wait_for_old_code-sqlite": 1,
    "slot_is_released_twice-memory": 2,
    "submit_is_not_recognised-memory": 1,
    "unfenced_finish-memory": 13,
    "unfenced_finish-sqlite": 22,
    "wake_up_is_lost-memory": 6,
}
"""Where a bug was seen before: tried first, to save time. It is the whole range that must find it."""

CASES = [(name, kind) for name, bug in BUGS.items() for kind in bug.stores]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("name", "kind"), CASES, ids=[f"{name}-{kind}" for name, kind in CASES])
def test_it_is_found(name: str, kind: StoreKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = BUGS[name]
    bug.plant(monkeypatch)
    seen = []
    for seed in (FOUND_FIRST.get(f"{name}-{kind}", 0), *SEEDS):
        violations = simulate(draw(seed, kind), tmp_path).violations
        if any(re.search(bug.expected, text) for text in violations):
            return
        seen += violations
        (tmp_path / f"{kind}-{seed}.db").unlink(missing_ok=True)
    pytest.fail(f"{name} was not found by {len(SEEDS)} runs, which said: {seen}")


def test_the_bugs_that_must_be_found_are_planted() -> None:
    assert {bug.plant.__module__ for bug in BUGS.values()} == {module.__name__ for module in MODULES}
    assert {
        "unfenced_finish",
        "rescue_by_id",
        "slot_is_released_twice",
        "delay_is_ignored",
        "wake_up_is_lost",
        "lost_claim_is_never_reconciled",
    } <= set(BUGS)


def test_the_page_on_the_simulation_lists_them_all() -> None:
    page = (Path(__file__).parents[2] / "docs/explanation/simulation.md").read_text("utf-8")
    _, _, table = page.partition("## The planted bugs")
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(BUGS)
