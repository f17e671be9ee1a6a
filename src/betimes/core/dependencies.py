"""What waiting for other jobs means: when a need is met, when it is lost, and which graphs are refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Protocol

from betimes.core.events import DependencyFailed, Released
from betimes.core.job import Job, JobStatus, Micros, Need
from betimes.errors import DependencyCycle


class Ended(Protocol):
    """A dependency in its terminal state, as far as it matters to those that wait for it."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def status(self) -> JobStatus:
        """How it has ended."""


def is_met(need: Need, status: JobStatus) -> bool | None:
    """Say whether a need is met by a dependency in this status: yes, never, or (None) not yet."""
    if not status.is_terminal:
        return None
    return need is Need.ENDED or status is JobStatus.COMPLETED


def settle(waiting: Job, need: Need, ended: Ended, at: Micros) -> Released | DependencyFailed | None:
    """Count one ended dependency off a BLOCKED job, and answer the event that follows for it, if any.

    Args:
        waiting: the BLOCKED job; its `unmet` is counted down.
        need: what it needed of the ended one.
        ended: the dependency, in its terminal state.
        at: the instant.
    """
    if not is_met(need, ended.status):
        return DependencyFailed(at, ended.id)
    if waiting.unmet > 1:
        waiting.unmet -= 1
        return None
    return Released(at)


def in_order(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Sort the names so that each stands behind those it depends on.

    Args:
        graph: name → the names it depends on.

    Raises:
        DependencyCycle: names the circle.
    """
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        # graphlib lists the circle so that each name is a dependency of the next.
        cycle = [str(name) for name in error.args[1]]
        raise DependencyCycle(
            f"these jobs wait for each other in a circle: {' → '.join(cycle)}; remove one of these "
            "dependencies",
            cycle=cycle,
        ) from None
