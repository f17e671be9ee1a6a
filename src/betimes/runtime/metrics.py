"""What a scheduler counts of itself, and the snapshot it shows."""

from __future__ import annotations

from dataclasses import dataclass, field

from betimes.core.job import JobStatus
from betimes.core.quantiles import Histogram, Quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """A snapshot. Depths come from the store; counters and durations from this process since its start.

    Attributes:
        ready, delayed, blocked, running: live jobs by status, over all workers of the store.
        workers: attempts this process may have in flight at once (its `concurrency`).
        in_flight: attempts that hold one of its slots now.
        peak_running: the most that ever did.
        submitted: jobs taken by `submit` here.
        completed, failed, timed_out, cancelled: jobs whose end was recorded here.
        attempts: attempts started here.
        retries: attempts that ended in another try to come.
        retries_denied: retries that a retry budget refused here.
        circuits_opened: how often a circuit breaker opened here.
        circuits_open: circuits that are open now, over all workers of the store.
        snoozes: attempts that asked to run again later.
        oldest_due_s: for how long, in seconds, the oldest claimable job of the store has been due, as far as
            a bounded look tells; those of paused queues do not count. It grows while nobody works.
        schedule_lag: started − run_at, in seconds: how long due jobs waited in their queues (those that had
            to wait for others, for that too). The first sign of too few workers.
        run_time: of attempts, in seconds.
        heap_size, heap_live: entries of the store's in-memory heaps, and those of live jobs; 0 without such.
        lost_leases: how often this worker's lease was over before it was renewed.
        stale_reports: outcomes the store refused, because the job was no longer this worker's.
        rescued: jobs taken back from workers that died.
        stuck_threads: threads whose job's outcome is recorded while its function still runs.
        stuck: the same for all kinds of attempts.
        deadlocked: attempts that hold a slot and wait for jobs that can never go on, at the last look.
        loop_stalls: how often the event loop was blocked for longer than the watchdog allows.
        longest_stall_s: the longest of these, in seconds, once it was over.
        fires: instants of schedules that became jobs here.
        skipped_fires: instants of schedules that did not: overlapping, missed, or passed while paused.
        store_errors: calls of the store that failed.
        store_stalled_s: for how long, in seconds, this worker has tried in vain to report and to claim; 0.0,
            or next to it, while the store answers. It grows while a lock, a full disk or an outage blocks it.
        events_dropped: events a listener's full buffer lost.
        listener_errors: exceptions that listeners raised.
    """

    ready: int = 0
    delayed: int = 0
    blocked: int = 0
    running: int = 0
    workers: int = 0
    in_flight: int = 0
    peak_running: int = 0
    submitted: int = 0
    completed: int = 0
    failed: int = 0
    timed_out: int = 0
    cancelled: int = 0
    attempts: int = 0
    retries: int = 0
    retries_denied: int = 0
    circuits_opened: int = 0
    circuits_open: int = 0
    snoozes: int = 0
    oldest_due_s: float = 0.0
    schedule_lag: Quantiles = field(default_factory=Quantiles)
    run_time: Quantiles = field(default_factory=Quantiles)
    heap_size: int = 0
    heap_live: int = 0
    lost_leases: int = 0
    stale_reports: int = 0
    rescued: int = 0
    stuck_threads: int = 0
    stuck: int = 0
    deadlocked: int = 0
    loop_stalls: int = 0
    longest_stall_s: float = 0.0
    fires: int = 0
    skipped_fires: int = 0
    store_errors: int = 0
    store_stalled_s: float = 0.0
    events_dropped: int = 0
    listener_errors: int = 0


class Counters:
    """The counters behind `Metrics` (mutable: they are raised for every job).

    Attributes:
        ended: jobs whose end was recorded here, by final status.
        loop_stalls, longest_stall_s: written by the watchdog's thread, and by nobody else.
        turn_began: since when the worker's turn with the store is under way or failing, on the loop's clock.
    """

    __slots__ = (
        "attempts",
        "circuits_opened",
        "ended",
        "fires",
        "longest_stall_s",
        "loop_stalls",
        "lost_leases",
        "rescued",
        "retries",
        "retries_denied",
        "run_time",
        "schedule_lag",
        "skipped_fires",
        "snoozes",
        "stale_reports",
        "store_errors",
        "submitted",
        "turn_began",
    )

    def __init__(self) -> None:
        """Start at zero."""
        self.submitted = 0
        self.attempts = 0
        self.retries = 0
        self.retries_denied = 0
        self.circuits_opened = 0
        self.snoozes = 0
        self.rescued = 0
        self.lost_leases = 0
        self.stale_reports = 0
        self.store_errors = 0
        self.turn_began: float | None = None
        self.fires = 0
        self.skipped_fires = 0
        self.loop_stalls = 0
        self.longest_stall_s = 0.0
        self.ended = dict.fromkeys(
            (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.TIMED_OUT, JobStatus.CANCELLED), 0
        )
        self.schedule_lag = Histogram()
        self.run_time = Histogram()
