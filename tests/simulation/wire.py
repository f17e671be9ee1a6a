"""What crosses the store's boundary crosses as a copy, as between two processes.

A process never sees the store's own records, a record it gave to a submit does not change before the reply
has come, and what it was handed out does not change at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from betimes.core.job import Job, Micros, Terms
from betimes.ports import Cancellation, ClaimRequest, Exchange, Report

FILLED_IN = ("seq", "status", "run_at", "unmet", "depends_on", "key", "reason", "finished_at", "terms")
"""What a submit writes into a record that was given."""


class Parcel:
    """The jobs of one submit on their way: copies for the store, made anew for every try.

    Attributes:
        twins: the copies, by position.
        asked: each copy with the terms it came with.
    """

    def __init__(self, jobs: Sequence[Job], records: Mapping[int, Job]) -> None:
        self._jobs = jobs
        twins = {id(job): job.copy() for job in jobs}
        for twin in twins.values():
            twin.terms = _readdressed(twin.terms, twins, records)
        self.twins = list(twins.values())
        self.asked: list[tuple[Job, Terms | None]] = [(twin.copy(), twin.terms) for twin in self.twins]

    def reply(self, kept: Sequence[Job]) -> list[tuple[bool, Job]]:
        """Copy what was kept, now; say of each whether it is the one that was given."""
        return [(job is twin, job.copy()) for twin, job in zip(self.twins, kept, strict=True)]

    def fill_in(self, reply: Sequence[tuple[bool, Job]]) -> list[Job]:
        """Write the reply into the records given; return the jobs by position."""
        kept: list[Job] = []
        for job, (is_own, record) in zip(self._jobs, reply, strict=True):
            if is_own:
                for name in FILLED_IN:
                    setattr(job, name, getattr(record, name))
            kept.append(job if is_own else record)
        return kept


def _readdressed(terms: Terms | None, twins: Mapping[int, Job], records: Mapping[int, Job]) -> Terms | None:
    """Let dependencies refer to the copies, or to the store's own records."""
    if terms is None or not terms.depends_on:
        return terms
    needs = tuple(
        (what if isinstance(what, str) else twins.get(id(what)) or records.get(what.seq, what), need)
        for what, need in terms.depends_on
    )
    return replace(terms, depends_on=needs)


def copied(job: Job | None) -> Job | None:
    """Copy a record on its way out."""
    return None if job is None else job.copy()


def copied_exchange(exchange: Exchange) -> Exchange:
    """Copy a turn's answer on its way out."""
    claimed = [job.copy() for job in exchange.claimed]
    return Exchange(list(exchange.steps), claimed, list(exchange.changes), exchange.next_at, exchange.not_now)


def copied_cancellation(answer: Cancellation) -> Cancellation:
    """Copy a cancel's answer on its way out."""
    return replace(answer, job=copied(answer.job), changes=list(answer.changes))


class SentReport(Report):
    """A report as it was when it was sent: its code may have returned since."""

    __slots__ = ("has_begun", "has_returned")

    def __init__(self, report: Report, job: Job | None = None) -> None:
        """Copy a report; let it refer to another record of the job, if one is given."""
        super().__init__(report.job if job is None else job, report.fence, report.event)
        self.has_begun = report.has_begun
        self.has_returned = report.has_returned


@dataclass(frozen=True, slots=True)
class Turn:
    """A worker's turn on its way.

    Attributes:
        reports, claim, returned: what is said and asked for.
        sent_at: when.
    """

    reports: Sequence[Report]
    claim: ClaimRequest | None
    returned: Sequence[tuple[int, int]]
    sent_at: Micros

    @classmethod
    def sent(
        cls,
        reports: Sequence[Report],
        claim: ClaimRequest | None,
        returned: Sequence[tuple[int, int]],
        now: Micros,
    ) -> Turn:
        """Copy what a worker sends."""
        asked = claim and ClaimRequest(
            claim.worker, claim.limit, dict(claim.lanes), claim.queues, tuple(claim.hold), claim.shares
        )
        return cls([SentReport(report) for report in reports], asked, tuple(returned), now)


def readdressed(reports: Sequence[Report], records: Mapping[int, Job]) -> list[Report]:
    """Let reports refer to the store's own records."""
    return [SentReport(report, records.get(report.job.seq, report.job)) for report in reports]
