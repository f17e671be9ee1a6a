"""A schedule, as stores keep it: what to run, and the one instant at which it fires next."""

from __future__ import annotations

from dataclasses import dataclass

from betimes.core.job import EMPTY_PAYLOAD, JobSpec, Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRecord:
    """A stored trigger + task + arguments.

    Attributes:
        id: chosen by the user.
        spec, payload: the jobs it makes.
        definition: trigger and policies as JSON text; a store only keeps it.
        next_fire_at: the instant of the next fire; None: there is none.
        version: grows with each change of the schedule and each fire; every write compares it.
        paused: fires nothing while set.
        last_fire_at: the instant of the last fire, skipped ones included.
        fired, skipped: how many instants became jobs, and how many did not.
    """

    id: str
    spec: JobSpec
    payload: bytes = EMPTY_PAYLOAD
    definition: str = "{}"
    next_fire_at: Micros | None = None
    version: int = 1
    paused: bool = False
    last_fire_at: Micros | None = None
    fired: int = 0
    skipped: int = 0
