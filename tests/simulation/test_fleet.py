"""A small fleet on the virtual loop keeps the promises, also while a third of it dies at once.

A thousand workers, and the traffic that they make: `python -m tests.simulation.fleet`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from tests.simulation.fleet import LONGEST_S, WEIGHTS, Settings, simulate
from tests.simulation.fleet_ledger import Ledger, Lost
from tests.simulation.fleet_report import Report, in_words

from betimes.core.job import Job, JobSpec, Tenant
from betimes.runtime.lease import BEATS_PER_LEASE, RESCUE_EVERY_S

ROOT = Path(__file__).parents[2]
SMALL = Settings(workers=30, jobs=3000, lease_s=15.0)
TINY = ("--workers", "6", "--jobs", "300")
WAYS_S = 0.05
"""More than the ways to the store and back, one after the other, take in one step of the recovery."""


@cache
def small() -> Report:
    """Run it once for all tests."""
    return simulate(SMALL)


def test_p11_a_third_of_the_workers_dies_and_nothing_is_lost_or_done_twice() -> None:
    report = small()
    assert report.ledger.violations == [], in_words(report)
    assert len(report.ledger.dead) == SMALL.workers // 3
    held = len(report.ledger.dead) * SMALL.concurrency
    assert held * 0.9 <= len(report.ledger.lost) <= held, "they were busy when they died"


def test_p24_all_that_the_dead_held_runs_again_within_lease_rescue_and_poll() -> None:
    report = small()
    assert len(report.rescue_s) == len(report.recovery_s) == len(report.ledger.lost)
    rescued_by = SMALL.lease_s + RESCUE_EVERY_S + WAYS_S
    assert SMALL.lease_s * (1 - 1 / BEATS_PER_LEASE) - WAYS_S <= min(report.rescue_s), "no lease is cut short"
    assert max(report.rescue_s) <= rescued_by
    # All slots are taken: each waits for the first that is free.
    assert max(report.recovery_s) <= rescued_by + SMALL.poll_s + LONGEST_S


def test_each_tenant_s_share_of_the_fleet_is_its_weight() -> None:
    ledger = small().ledger
    starts = ledger.shares.total()
    assert starts > 2000
    for tenant, weight in WEIGHTS.items():
        fair = starts * weight / sum(WEIGHTS.values())
        assert abs(ledger.shares[tenant] - fair) <= 1 + SMALL.concurrency, "of one claim several are counted"


def test_p19_a_limit_holds_over_the_fleet() -> None:
    assert small().ledger.most_narrow_seen == SMALL.most_narrow


def test_p16_every_instant_makes_one_job_whoever_fires() -> None:
    report = small()
    assert len(report.ledger.fires) > 10
    assert all(len(jobs) == 1 for jobs in report.ledger.fires.values())


def test_a_seed_gives_the_same_report_again_also_in_another_process() -> None:
    reports = {
        subprocess.run(
            [sys.executable, "-m", "tests.simulation.fleet", *TINY],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=True,
            timeout=50,
        ).stdout
        for hash_seed in ("1", "2")
    }
    (text,) = reports
    assert "6 workers of 4 slots, 300 jobs" in text


def test_two_seeds_give_two_reports() -> None:
    one, other = (simulate(Settings(workers=6, jobs=300, seed=seed)) for seed in (1, 2))
    assert in_words(one).split("\n")[1:] != in_words(other).split("\n")[1:]


# What the ledger must not miss.


def ledger() -> Ledger:
    return Ledger(lambda: 0.0, {"a": 1.0, "b": 1.0}, most_narrow=1)


def job(job_id: str) -> Job:
    return Job(job_id, JobSpec(task="work"), b"{}", submitted_at=0, run_at=0, sort_key=0)


def test_the_ledger_sees_a_job_that_two_hold() -> None:
    books = ledger()
    books.claims("w1", [job("x")])
    books.claims("w2", [job("x")])
    assert len(books.violations) == 1


def test_the_ledger_sees_a_job_that_is_lost() -> None:
    books = ledger()
    books.check(["x"])
    assert len(books.violations) == 1


def test_the_ledger_sees_a_job_that_runs_twice_for_no_reason() -> None:
    books = ledger()
    for host in ("w1", "w2"):
        books.begins(host, "x", "work")
    books.completed["x"] = 1
    books.check(["x"])
    assert len(books.violations) == 1
    books.violations.clear()
    books.lost["x"] = Lost()
    books.check(["x"])
    assert books.violations == []


def test_the_ledger_sees_a_limit_that_is_exceeded() -> None:
    books = ledger()
    books.begins("w1", "x", "narrow")
    books.ends("w1", "x")
    books.begins("w1", "y", "narrow")
    assert books.violations == []
    books.begins("w2", "z", "narrow")
    assert len(books.violations) == 1


@pytest.mark.parametrize(("claims", "is_unfair"), [("aaab", True), ("abab", False), ("abbaab", False)])
def test_the_ledger_sees_a_share_that_is_too_large(claims: str, *, is_unfair: bool) -> None:
    books = ledger()
    books.waiting.update({"a": 9, "b": 9})
    for number, tenant in enumerate(claims):
        one = job(f"x{number}")
        one.tenant = Tenant(tenant, 1)
        books.claims("w", [one])
    assert bool(books.violations) == is_unfair
