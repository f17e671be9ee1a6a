"""What lets a job be claimed: the predicates that claims and `explain` share, so that both say the same.

A claim looks at whole groups first (is the queue open, has the lane room), then at single jobs (is it
expired, is it held back).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from betimes.core.job import Job, JobStatus, Micros


def is_due(job: Job, now: Micros) -> bool:
    """Say whether the job's earliest start has come."""
    return job.run_at <= now


def is_expired(job: Job, now: Micros) -> bool:
    """Say whether the time is over in which the job had to start for the first time."""
    return job.expires_at is not None and job.started_at is None and job.expires_at <= now


def is_served(queue: str, queues: Collection[str] | None) -> bool:
    """Say whether a worker that serves these queues (None: all) serves this one."""
    return queues is None or queue in queues


def has_room(lane: str, free: Mapping[str, int]) -> bool:
    """Say whether a lane has a free slot; one that is not named has none."""
    return free.get(lane, 0) > 0


def is_open(
    queue: str, lane: str, queues: Collection[str] | None, paused: Collection[str], free: Mapping[str, int]
) -> bool:
    """Say whether jobs of a queue and lane can be claimed: the queue served and open, the lane with room."""
    return queue not in paused and is_served(queue, queues) and has_room(lane, free)


def is_waiting_for_claim(job: Job, now: Micros) -> bool:
    """Say whether nothing of the job's own keeps it from being claimed, once what is due is promoted."""
    if job.status is JobStatus.READY:
        return job.parked is None and not is_expired(job, now)
    return job.status is JobStatus.DELAYED and is_due(job, now) and not is_expired(job, now)
