"""Planted bugs: permits, tokens, and circuits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from tests.simulation.bugs import STORES, bug, change_exchange
from tests.simulation.wire import SentReport

from betimes.core.events import Errored
from betimes.core.guard import Guard
from betimes.core.job import Job, Micros
from betimes.core.limits import Gate, GateKind
from betimes.ports import Beat, Report, Store
from betimes.stores.memory import MemoryStore
from betimes.stores.memory.lines import Lines
from betimes.stores.memory.permits import Permits


def change_reports(patch: pytest.MonkeyPatch, change: Callable[[SentReport], None]) -> None:
    """Change what is said of attempts, behind the witness's back."""

    def changed(reports: Sequence[Report]) -> list[Report]:
        sent = [SentReport(report) for report in reports]
        for report in sent:
            change(report)
        return list(sent)

    change_exchange(patch, reports=changed)


def keep_permits(patch: pytest.MonkeyPatch, during: str) -> None:
    """Give no permits of a whole worker back while this call is carried out."""
    kept: list[str] = []
    release_all, call = Permits.release_all, getattr(MemoryStore, during)

    async def carry_out(self: MemoryStore, *args: Any) -> Any:
        kept.append(during)
        try:
            return await call(self, *args)
        finally:
            kept.clear()

    def release(self: Permits, *args: Any) -> None:
        if not kept:
            release_all(self, *args)

    patch.setattr(MemoryStore, during, carry_out)
    patch.setattr(Permits, "release_all", release)


# --- permits

HELD = "permits of .* are held, and these are out|was left"


@bug(HELD)
def permit_leaked_by_a_dead_worker(patch: pytest.MonkeyPatch) -> None:
    """A rescue takes jobs back, and leaves the permits out."""
    keep_permits(patch, "rescue")


@bug(HELD)
def permit_of_a_lost_claim_is_never_given_back(patch: pytest.MonkeyPatch) -> None:
    """A beat gives back what its worker does not know of, but for its permits."""
    keep_permits(patch, "beat")


@bug("was claimed, but limit|permits of .* are held", "memory", "sqlite")
def permit_freed_before_the_thread_returned(patch: pytest.MonkeyPatch) -> None:
    """The outcome gives the permit back, while the code goes on after its timeout."""

    def say_so(report: SentReport) -> None:
        report.has_returned = True

    change_reports(patch, say_so)


@bug("was claimed, but limit|permits of .* are held", "memory", "sqlite")
def code_that_runs_on_loses_its_permit_at_a_beat(patch: pytest.MonkeyPatch) -> None:
    """A beat keeps the permits of those only whose outcome is not known."""

    def plant(store: type[Store]) -> None:
        original = store.beat

        async def beat(self: Store, worker: str, held: Mapping[int, int], running: Mapping[int, int]) -> Beat:
            del running
            return await original(self, worker, held, {})

        patch.setattr(store, "beat", beat)

    for store in STORES:
        plant(store)


@bug(HELD)
def permit_is_not_freed_by_a_stale_report(patch: pytest.MonkeyPatch) -> None:
    """A report that does not count is dropped whole: also what it says of its code."""

    def drop(report: SentReport) -> None:
        if report.fence != report.job.fence:
            report.has_returned = False

    change_reports(patch, drop)


# --- lines


@bug("was passed over")
def line_is_looked_at_out_of_order(patch: pytest.MonkeyPatch) -> None:
    """Who waits at a gate goes last in, first out."""
    push = Lines.push

    def push_first(self: Lines, job: Job) -> None:
        sort_key, job.sort_key = job.sort_key, -job.seq
        push(self, job)
        job.sort_key = sort_key

    patch.setattr(Lines, "push", push_first)


@bug("it could start in .*, and does not")
def gate_never_reopens_by_itself(patch: pytest.MonkeyPatch) -> None:
    """Nobody is told when the next token comes."""
    patch.setattr(Lines, "next_at", lambda self, now: None)


@bug("was left|could start|is full in|have not ended", "memory", "sqlite")
def clock_set_back_keeps_gates_closed(patch: pytest.MonkeyPatch) -> None:
    """A bucket fills when the clock shows again what it showed."""
    patch.setattr(Gate, "heed", lambda self, now: False)


# --- tokens


@bug("is full in|was left", "memory", "sqlite")
def token_charged_twice(patch: pytest.MonkeyPatch) -> None:
    """A claim takes two tokens of a rate."""
    charge = Gate.charge

    def charge_twice(self: Gate, now: Micros) -> None:
        charge(self, now)
        if self.terms.kind is GateKind.RATE:
            charge(self, now)

    patch.setattr(Gate, "charge", charge_twice)


@bug("is full in|was left", "memory", "sqlite")
def refund_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A claim that began nothing costs a token."""
    patch.setattr(Gate, "refund", lambda self, claimed_at: None)


@bug("is full in|has its next token", "memory", "sqlite")
def started_attempt_is_refunded(patch: pytest.MonkeyPatch) -> None:
    """Who fails has its token back."""

    def refund(report: SentReport) -> None:
        if isinstance(report.event, Errored):
            report.has_begun = False

    change_reports(patch, refund)


# --- circuits and budgets


@bug("the circuit .* is closed, and was opened|was left", "memory", "sqlite")
def breaker_is_never_closed(patch: pytest.MonkeyPatch) -> None:
    """A probe that succeeds proves nothing."""
    patch.setattr(Gate, "is_proof", lambda self, claimed_at: False)


@bug("the circuit .* is open", "memory", "sqlite")
def open_circuit_lets_everything_through(patch: pytest.MonkeyPatch) -> None:
    """A trip is acknowledged, and nothing more."""
    patch.setattr(Gate, "trip", lambda self, now: None)


@bug("is closed, and was opened|the circuit .* is open", "memory", "sqlite")
def success_of_before_the_trip_closes_the_circuit(patch: pytest.MonkeyPatch) -> None:
    """Any success closes a circuit, also of what was claimed while all was well."""
    patch.setattr(Gate, "is_proof", lambda self, claimed_at: self.is_tripped)


@bug("its budget is")
def retry_budget_is_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Everything is retried as its policy says."""
    patch.setattr(Guard, "may_retry", lambda self, now: True)
