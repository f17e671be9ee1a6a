"""The simulation finds what it is there to find: every planted bug, by the right complaint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.simulation import (
    bugs_of_clocks,
    bugs_of_ends,
    bugs_of_gates,
    bugs_of_leases,
    bugs_of_order,
    bugs_of_schedules,
    bugs_of_shares,
    bugs_of_workers,
)
from tests.simulation.bugs import BUGS
from tests.simulation.settings import (
    FIRST_WITH_RESTRAINTS,
    FIRST_WITH_SCHEDULES,
    PERIOD,
    StoreKind,
    draw,
)
from tests.simulation.world import simulate

OF_SCHEDULES = (bugs_of_schedules, bugs_of_clocks)
OF_RESTRAINTS = (bugs_of_gates, bugs_of_shares)
MODULES = (bugs_of_leases, bugs_of_workers, bugs_of_order, bugs_of_ends, *OF_SCHEDULES, *OF_RESTRAINTS)
SEEDS = range(FIRST_WITH_RESTRAINTS)
WITH_RESTRAINTS = range(FIRST_WITH_RESTRAINTS, FIRST_WITH_SCHEDULES)
WITH_SCHEDULES = range(FIRST_WITH_SCHEDULES, PERIOD)
FOUND_FIRST = {
    "at_most_once_is_given_back-memory": 106,
    "at_most_once_is_rescued-memory": 8,
    "cancel_is_forgotten_at_the_finish-memory": 3,
    "clock_set_back_is_not_noticed-memory": 93,
    "clock_set_back_keeps_gates_closed-memory": 45,
    "clock_set_back_keeps_gates_closed-sqlite": 42,
    "code_that_runs_on_loses_its_permit_at_a_beat-memory": 41,
    "code_that_runs_on_loses_its_permit_at_a_beat-sqlite": 41,
    "fire_is_advanced_apart_from_its_job-memory": 91,
    "fire_is_advanced_apart_from_its_job-sqlite": 93,
    "fixed_delay_ends_with_a_failure-memory": 67,
    "fixed_delay_is_counted_from_the_start-memory": 67,
    "flood_of_one_tenant_delays_the_others-memory": 48,
    "flood_of_one_tenant_delays_the_others-sqlite": 43,
    "held_instant_is_never_released-memory": 61,
    "idle_tenant_gets_credit-memory": 58,
    "idle_tenant_gets_credit-sqlite": 43,
    "innocent_is_charged_for_a_crashed_child-memory": 345,
    "instant_is_fired_again_after_the_clock_was_set_back-memory": 81,
    "instants_are_fired_a_second_early-memory": 61,
    "key_is_checked_before_it_is_taken-memory": 2,
    "lost_change_is_taken_for_a_broken_schedule-memory": 172,
    "lost_claim_is_never_reconciled-sqlite": 4,
    "lost_reply_of_a_fire_means_it_was_not_done-memory": 63,
    "lost_reports_are_forgotten-memory": 6,
    "merged_instants_are_forgotten-memory": 64,
    "next_run_does_not_wait_for_the_one_before-memory": 64,
    "next_run_does_not_wait_for_the_one_before-sqlite": 64,
    "overlap_guard_only_in_one_process-memory": 70,
    "overlap_guard_only_in_one_process-sqlite": 66,
    "permit_freed_before_the_thread_returned-sqlite": 41,
    "permit_is_not_freed_by_a_stale_report-memory": 47,
    "permit_of_a_lost_claim_is_never_given_back-memory": 42,
    "poison_is_swallowed_for_ever-memory": 13,
    "queues_are_dealt_alike-memory": 44,
    "queues_are_dealt_alike-sqlite": 44,
    "refund_is_forgotten-memory": 46,
    "refund_is_forgotten-sqlite": 47,
    "replaced_run_is_not_told_to_stop-memory": 64,
    "replacement_runs_beside_the_old_version-memory": 3,
    "results_are_mixed_up-memory": 3,
    "retry_does_not_wait_for_old_code-memory": 3,
    "retry_does_not_wait_for_old_code-sqlite": 1,
    "run_by_hand_moves_the_grid-memory": 64,
    "scheduled_for_is_the_start-memory": 63,
    "slot_is_released_twice-memory": 2,
    "submit_is_not_recognised-memory": 1,
    "timeout_is_counted_from_the_claim-memory": 41,
    "token_charged_twice-memory": 42,
    "unfenced_finish-memory": 13,
    "unfenced_finish-sqlite": 22,
    "wake_up_is_lost-memory": 6,
    "what_passed_while_paused_is_not_skipped-memory": 68,
    "what_was_missed_is_made_up_for-memory": 63,
}
"""Where a bug was seen before: tried first, to save time. It is the whole range that must find it."""

WORLDS = ((OF_SCHEDULES, WITH_SCHEDULES), (OF_RESTRAINTS, WITH_RESTRAINTS))
"""Where bugs of some modules are looked for; all others in worlds without anything special."""

CASES = [(name, kind) for name, bug in BUGS.items() for kind in bug.stores]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("name", "kind"), CASES, ids=[f"{name}-{kind}" for name, kind in CASES])
def test_it_is_found(name: str, kind: StoreKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = BUGS[name]
    bug.plant(monkeypatch)
    seen = []
    seeds = next(
        (worlds for modules, worlds in WORLDS if bug.plant.__module__ in {one.__name__ for one in modules}),
        SEEDS,
    )
    for seed in (FOUND_FIRST.get(f"{name}-{kind}", seeds[0]), *seeds):
        violations = simulate(draw(seed, kind), tmp_path).violations
        if any(re.search(bug.expected, text) for text in violations):
            return
        seen += violations
        (tmp_path / f"{kind}-{seed}.db").unlink(missing_ok=True)
    pytest.fail(f"{name} was not found by {len(seeds)} runs, which said: {seen}")


def test_the_bugs_that_must_be_found_are_planted() -> None:
    assert {bug.plant.__module__ for bug in BUGS.values()} == {module.__name__ for module in MODULES}
    assert {
        "unfenced_finish",
        "rescue_by_id",
        "slot_is_released_twice",
        "delay_is_ignored",
        "wake_up_is_lost",
        "lost_claim_is_never_reconciled",
        "fire_is_advanced_apart_from_its_job",
        "overlap_guard_only_in_one_process",
        "restart_shifts_the_grid",
        "permit_leaked_by_a_dead_worker",
        "token_charged_twice",
        "permit_freed_before_the_thread_returned",
    } <= set(BUGS)


def test_the_page_on_the_simulation_lists_them_all() -> None:
    page = (Path(__file__).parents[2] / "docs/explanation/simulation.md").read_text("utf-8")
    _, _, table = page.partition("## The planted bugs")
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(BUGS)
