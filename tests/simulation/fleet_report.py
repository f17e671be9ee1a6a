"""What a fleet's run has come to, in figures and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulation.fleet_ledger import Ledger
from tests.simulation.fleet_store import Traffic

if TYPE_CHECKING:
    from tests.simulation.fleet import Settings

COLUMNS = {
    "exchange": "turns",
    "empty": "empty claims",
    "without a claim": "turns without a claim",
    "claimed": "jobs claimed",
    "beat": "beats",
    "rescue": "rescues asked for",
    "parked": "looks for parked jobs",
    "next_fire": "looks for the next fire",
    "schedules": "looks for due schedules",
    "fire": "fires tried",
    "fired in vain": "fires that another was first with",
    "notifications": "notifications sent",
    "notifications heard": "notifications delivered",
}
"""What is counted, and what it is called in the report."""
NOT_CALLS = {"empty", "without a claim", "claimed", "fired in vain", "notifications", "notifications heard"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase.

    Attributes:
        name: its name.
        users: how many workers live.
        lasted_s: how long it took, in virtual seconds.
        completed: how many ends were recorded.
        traffic: what the store was asked.
    """

    name: str
    users: int
    lasted_s: float
    completed: int
    traffic: Traffic

    def rate(self, name: str) -> float:
        """How often a second."""
        return self.traffic.calls[name] / self.lasted_s

    @property
    def calls(self) -> float:
        """All calls of the store in a second."""
        own = (number for name, number in self.traffic.calls.items() if name not in NOT_CALLS)
        return sum(own) / self.lasted_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One run.

    Attributes:
        settings: the fleet.
        phases: in their order.
        seconds: the calls of the store by the virtual second.
        ledger: the books.
        died_at: when a third of the workers died.
        tick_lags, single_lags: how late the jobs of a schedule began while the fleet was busy, and single
            jobs while it was idle.
    """

    settings: Settings
    phases: Sequence[Phase]
    seconds: Counter[int]
    ledger: Ledger
    died_at: float
    tick_lags: Sequence[float]
    single_lags: Sequence[float]

    @property
    def rescue_s(self) -> list[float]:
        """How long after their workers' death jobs were taken back."""
        found = (lost.rescued_at for lost in self.ledger.lost.values())
        return [at - self.died_at for at in found if at is not None]

    @property
    def recovery_s(self) -> list[float]:
        """How long after their workers' death jobs began again."""
        found = (lost.started_at for lost in self.ledger.lost.values())
        return [at - self.died_at for at in found if at is not None]

    def shares(self) -> dict[str, float]:
        """The share of each tenant in the starts while all had work."""
        starts = self.ledger.shares
        return {tenant: starts[tenant] / max(1, starts.total()) for tenant in self.ledger.weights}


def spread(values: Sequence[float]) -> str:
    """Say how values are spread."""
    if not values:
        return "none"
    ordered = sorted(values)
    parts = [
        f"p{share} {ordered[min(len(ordered) - 1, len(ordered) * share // 100)]:.3f}" for share in (50, 99)
    ]
    return f"{len(ordered)}: {ordered[0]:.3f} to {ordered[-1]:.3f} s, {', '.join(parts)}"


def in_words(report: Report) -> str:
    """Say what has come of it."""
    settings, ledger = report.settings, report.ledger
    weights = ledger.weights
    fleet = f"{settings.workers:,} workers of {settings.concurrency} slots, {settings.jobs:,} jobs"
    how = f"poll {settings.poll_s:g} s, lease {settings.lease_s:g} s, seed {settings.seed}"
    lines = [f"{fleet}, {how}", "", *_table(report.phases), ""]
    worst, calls = report.seconds.most_common(1)[0]
    lines.append(f"store calls in the worst second: {calls:,} (second {worst} of {max(report.seconds)})")
    lines.append(
        "shares of starts while all had work: "
        + ", ".join(
            f"{tenant} {share:.4f} (weight {weights[tenant] / sum(weights.values()):.4f})"
            for tenant, share in report.shares().items()
        )
        + f", of {ledger.shares.total():,} starts"
    )
    lines.append(f"under the limit at most {ledger.most_narrow_seen} of {settings.most_narrow} at once")
    lines.append(f"lag of a schedule's jobs, busy: {spread(report.tick_lags)}")
    lines.append(f"lag of single jobs, idle: {spread(report.single_lags)}")
    lines.append(
        f"{len(ledger.dead):,} workers died; their jobs were taken back after: {spread(report.rescue_s)}"
    )
    lines.append(f"and began again after: {spread(report.recovery_s)}")
    lines += ["", f"broken promises: {len(ledger.violations)}", *ledger.violations[:20]]
    return "\n".join(lines)


def _table(phases: Sequence[Phase]) -> list[str]:
    """Rates of each phase, a second; and, in brackets, of each worker."""
    rows = [["a second (each worker)", *(phase.name for phase in phases)]]
    rows.append(["virtual seconds", *(f"{phase.lasted_s:.1f}" for phase in phases)])
    rows.append(["jobs completed", *(f"{phase.completed / phase.lasted_s:,.1f}" for phase in phases)])
    rows.append(["all calls", *(_rate(phase.calls, phase.users) for phase in phases)])
    for name, title in COLUMNS.items():
        rows.append([title, *(_rate(phase.rate(name), phase.users) for phase in phases)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def _rate(rate: float, users: int) -> str:
    return f"{rate:,.1f} ({rate / users:.2f})" if rate else "0"
