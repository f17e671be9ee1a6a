"""The calls on gates and logs, carried out at the one real store, and witnessed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.simulation.carrying_out import carried_out

from betimes.core.job import Job
from betimes.core.limits import GateTerms, GateView
from betimes.core.log import LogLine, LogPage

if TYPE_CHECKING:
    from tests.simulation.gatekeeping import Gatekeeping
    from tests.simulation.shared_store import SharedStore


class SharedGates:
    """Carries out calls on gates.

    Attributes:
        are_simulated: whether any task has one; else nobody need look.
    """

    def __init__(self, shared: SharedStore) -> None:
        self._shared = shared
        self.are_simulated = False

    @property
    def _seen_by(self) -> Gatekeeping:
        return self._shared.seen_by.gates

    def declare(self, host: str, terms: Sequence[GateTerms]) -> None:
        """Keep rules."""
        carried_out(self._shared.of(host).declare_gates(terms))
        self._seen_by.declared(terms)

    def change(self, host: str, rule: str, terms: GateTerms | None) -> GateTerms | None:
        """Have gates go by other rules."""
        answer = carried_out(self._shared.of(host).change_gates(rule, terms))
        self._seen_by.changed(rule, terms, answer)
        return answer

    def trip(self, host: str, key: str, *, is_open: bool) -> None:
        """Open a circuit, or close it."""
        carried_out(self._shared.of(host).trip(key, is_open=is_open))
        self._seen_by.tripped(key, is_open=is_open)

    def get(self, host: str, keys: Sequence[str], most: int) -> list[GateView]:
        """Look at gates, with holders and waiters."""
        views = carried_out(self._shared.of(host).gates(keys, most=most))
        self._seen_by.look(views)
        self._seen_by.look_at_holders(views)
        return views

    def under(self, host: str, rule: str | None, limit: int) -> list[GateView]:
        """Look at the gates of a rule."""
        return carried_out(self._shared.of(host).gates_under(rule, limit=limit))

    def write_log(self, host: str, pages: Sequence[LogPage]) -> None:
        """Add lines to jobs' logs."""
        carried_out(self._shared.of(host).write_log(pages))

    def log(self, host: str, job: Job, after: int, limit: int) -> list[LogLine]:
        """Read a job's log."""
        own = self._shared.records.get(job.seq, job)
        return carried_out(self._shared.of(host).log(own, after=after, limit=limit))

    def put_back(self, host: str) -> None:
        """Have all gates go by the rules that the code declares."""
        for rule in self._seen_by.rules_changed:
            self.change(host, rule, None)

    def look(self) -> None:
        """Compare all gates that are in use with what has been witnessed."""
        if self.are_simulated:
            self._seen_by.look_at_all(carried_out(self._shared.store.gates_under(None)))
