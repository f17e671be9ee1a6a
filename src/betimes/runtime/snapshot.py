"""Puts together, at one instant, what a scheduler knows of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from betimes.core.job import JobStatus
from betimes.core.worker_state import WorkerState
from betimes.runtime.attempt import Attempt
from betimes.runtime.journal import Journal
from betimes.runtime.metrics import Metrics
from betimes.runtime.settings import Settings


def snapshot(
    depths: Mapping[JobStatus, int],
    journal: Journal,
    settings: Settings,
    *,
    state: WorkerState[Attempt] | None,
    heap: tuple[int, int],
    deadlocked: int,
    circuits_open: int,
    oldest_due_s: float,
) -> Metrics:
    """Take a snapshot.

    Args:
        depths: live jobs by status, from the store.
        journal: what was counted here.
        settings: the numbers.
        state: the slots of the worker that runs or ran last; None: none did.
        heap: entries of the store's in-memory heaps, and the live ones among them.
        deadlocked: attempts that wait in vain.
        circuits_open: circuits that are open now.
        oldest_due_s: for how long the oldest claimable job has been due.
    """
    zombies = list(state.zombies.values()) if state else []
    return replace(
        _counted(journal),
        ready=depths[JobStatus.READY],
        delayed=depths[JobStatus.DELAYED],
        blocked=depths[JobStatus.BLOCKED],
        running=depths[JobStatus.RUNNING],
        workers=settings.concurrency,
        in_flight=len(state.in_flight) if state else 0,
        peak_running=state.peak if state else 0,
        circuits_open=circuits_open,
        heap_size=heap[0],
        heap_live=heap[1],
        stuck_threads=sum(attempt.lane == "thread" for attempt in zombies),
        stuck=len(zombies),
        deadlocked=deadlocked,
        oldest_due_s=oldest_due_s,
        store_stalled_s=_since(journal.counters.turn_began),
    )


def _counted(journal: Journal) -> Metrics:
    """Return what this process has counted."""
    counters, listeners = journal.counters, journal.listeners
    return Metrics(
        submitted=counters.submitted,
        completed=counters.ended[JobStatus.COMPLETED],
        failed=counters.ended[JobStatus.FAILED],
        timed_out=counters.ended[JobStatus.TIMED_OUT],
        cancelled=counters.ended[JobStatus.CANCELLED],
        attempts=counters.attempts,
        retries=counters.retries,
        retries_denied=counters.retries_denied,
        circuits_opened=counters.circuits_opened,
        snoozes=counters.snoozes,
        schedule_lag=counters.schedule_lag.summary(),
        run_time=counters.run_time.summary(),
        lost_leases=counters.lost_leases,
        stale_reports=counters.stale_reports,
        rescued=counters.rescued,
        loop_stalls=counters.loop_stalls,
        longest_stall_s=counters.longest_stall_s,
        fires=counters.fires,
        skipped_fires=counters.skipped_fires,
        store_errors=counters.store_errors,
        events_dropped=listeners.dropped,
        listener_errors=listeners.errors,
    )


def _since(began: float | None) -> float:
    return 0.0 if began is None else asyncio.get_running_loop().time() - began
