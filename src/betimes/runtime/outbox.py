"""The outbox: what has ended here, on its way to the store; it counts as sent when the store has answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from betimes.core.events import Succeeded
from betimes.core.job import Micros
from betimes.core.transition import Transition
from betimes.ports import Exchange, Report
from betimes.runtime.attempt import Attempt, Refusal

Returned: TypeAlias = list[tuple[int, int]]
"""Attempts (number, fence) reported earlier, whose code has returned since."""


class Outbox:
    """Outcomes that wait to be sent.

    Attributes:
        reports: of attempts that have ended, and of jobs that were refused.
        returned: attempts reported earlier, whose code has returned since.
    """

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.returned: Returned = []

    def take(self) -> tuple[list[Report], Returned]:
        """Take all that has gathered, to send it."""
        taken = self.reports, self.returned
        self.reports, self.returned = [], []
        return taken

    def put_back(self, reports: list[Report], returned: Returned) -> None:
        """Have all of it go out again: nobody knows whether it has arrived."""
        self.reports = reports + self.reports
        self.returned = returned + self.returned

    def settle(
        self, sent: list[Report], exchange: Exchange
    ) -> tuple[list[Report], Sequence[Transition | None]]:
        """Return the reports that the store has taken, with their steps; the others go out again."""
        if not exchange.not_now:
            return sent, exchange.steps
        not_now = set(exchange.not_now)
        again = [sent[place] for place in exchange.not_now]
        self.reports = [each for each in again if not _is_given_up(each)] + self.reports
        taken = [place for place in range(len(sent)) if place not in not_now]
        return [sent[place] for place in taken], [exchange.steps[place] for place in taken]

    def drop(self, attempt: Attempt) -> None:
        """Forget what an attempt has to tell."""
        self.reports = [report for report in self.reports if report is not attempt]

    def refused(self) -> dict[int, int]:
        """Return the fences of jobs that are on their way back to the store without having been started."""
        return {report.job.seq: report.fence for report in self.reports if isinstance(report, Refusal)}


def date(reports: Sequence[Report], now: Micros) -> None:
    """Give successes their instant: one look at the clock for all that go together."""
    for report in reports:
        if type(report.event) is Succeeded and not report.event.at:
            report.event.at = now


def _is_given_up(report: Report) -> bool:
    return isinstance(report, Attempt) and report.is_recorded
