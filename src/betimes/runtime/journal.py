"""What is made known of every transition: counters, listeners, and those who wait for a job's end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from betimes.core.job import TERMINAL, Arrivals, Job, JobEvent, JobStatus
from betimes.core.transition import Transition
from betimes.ports import Report
from betimes.runtime.attempt import Attempt, Refusal
from betimes.runtime.endings import Ending, Endings
from betimes.runtime.listeners import Listeners
from betimes.runtime.metrics import Counters

_FOLD_AT = 1000

READY, RUNNING, DELAYED = JobStatus.READY, JobStatus.RUNNING, JobStatus.DELAYED


class Journal:
    """The one place that hears of every transition this process makes.

    Attributes:
        counters, listeners, endings: who is told of them.
        on_claimed: called when jobs were claimed here, just before they start.
        on_recorded: called when the outcomes of attempts were recorded, and their slots are free.
    """

    def __init__(self) -> None:
        """Start with nothing told."""
        self.counters = Counters()
        self.listeners = Listeners()
        self.endings = Endings()
        self.on_claimed: Callable[[], None] | None = None
        self.on_recorded: Callable[[], None] | None = None

    def changes(self, events: Sequence[JobEvent]) -> None:
        """Tell of transitions that a store reported."""
        counters = self.counters
        if isinstance(events, Arrivals):
            counters.submitted += len(events.jobs)
            if self.listeners.are_there:
                self.listeners.tell(events)
            return
        for event in events:
            after = event.after
            if event.before is None:
                counters.submitted += 1
            if after in TERMINAL:
                counters.ended[after] += 1
                if event.seq in self.endings.waiting:
                    self.endings.settle(event.seq, Ending(status=after, reason=event.error))
        if self.listeners.are_there:
            # A job that was only marked (told to stop, superseded, unparked) has not changed its status.
            self.listeners.tell([event for event in events if event.before is not event.after])

    def claimed(self, jobs: Sequence[Job]) -> None:
        """Tell of jobs that were claimed here."""
        if self.on_claimed is not None:
            self.on_claimed()
        counters = self.counters
        record = counters.schedule_lag.record
        for job in jobs:
            record((job.started_at or 0) - job.run_at)
        counters.schedule_lag.fold(if_more_than=_FOLD_AT)
        counters.run_time.fold(if_more_than=_FOLD_AT)
        if self.listeners.are_there:
            self.listeners.tell([JobEvent(job, READY, RUNNING, at_us=job.started_at or 0) for job in jobs])

    def steps(self, reports: Sequence[Report], steps: Sequence[Transition | None]) -> None:
        """Tell of what the reports of attempts did."""
        counters, waiting = self.counters, self.endings.waiting
        ended = counters.ended
        for report, step in zip(reports, steps, strict=True):
            if step is None:
                counters.stale_reports += 1
            elif step.after in TERMINAL:
                ended[step.after] += 1
                if waiting and report.job.seq in waiting:
                    ending = Ending(
                        status=step.after, result=step.result, error=step.error, reason=step.reason
                    )
                    self.endings.settle(report.job.seq, ending)
            elif step.outcome == "snoozed":
                counters.snoozes += 1
            elif step.uses_attempt:
                counters.retries += 1
        if self.listeners.are_there:
            pairs = zip(reports, steps, strict=True)
            self.listeners.tell([_event(report, step) for report, step in pairs if step is not None])
        if reports and self.on_recorded is not None:
            self.on_recorded()


def _event(report: Report, step: Transition) -> JobEvent:
    text = str(step.error) if step.error else step.reason
    event = JobEvent(report.job, RUNNING, step.after, at_us=step.at, error=text)
    if isinstance(report, Attempt | Refusal):
        event.attempt = report.number
    return event
