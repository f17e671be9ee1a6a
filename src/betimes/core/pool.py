"""When a pool is locked up for good: its slots are held by attempts that wait for jobs that need these slots.

A job may await the end of another. Where all slots are held by such waiting jobs, and what they wait for
needs one of the slots, nobody moves ever again. So it is with the places of a limit. The question is answered
from the side that can be proved: whoever can still go on is found first, and the rest cannot. What is not
known (a job in another process, or one whose state was not looked up) counts as able to go on, so nobody is
accused who is only slow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

SLOTS_REMEDY = (
    "Then give the pool more slots (concurrency=, threads=), or the limit more places, put the jobs that are "
    "waited for into a queue with a worker of its own, or chain them with depends_on instead of waiting "
    "inside a job."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """An attempt that holds a slot.

    Attributes:
        seq: its job's version.
        lane: the lane whose slot it holds.
        waits_for: `seq` of the jobs whose end its code waits for; none: it goes on by itself.
    """

    seq: int
    lane: str
    waits_for: Collection[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A job that has not started, and that somebody waits for.

    Attributes:
        seq: its version.
        lane: the lane it needs a slot of.
        waits_for: `seq` of the jobs that must end before it is released.
        limits: for each limit that is full for it, `seq` of all that hold its places.
    """

    seq: int
    lane: str
    waits_for: Collection[int] = ()
    limits: Collection[Collection[int]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lockup:
    """Who can never go on as things stand.

    Attributes:
        held: `seq` of the attempts that hold a slot and wait in vain.
        starved: `seq` of the jobs that wait in vain for a slot, or for one of these.
    """

    held: frozenset[int] = frozenset()
    starved: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.held)


def lockup(
    holders: Iterable[Holder],
    wanted: Iterable[Wanted],
    *,
    free: int,
    free_lanes: Mapping[str, int],
    is_claiming: bool = True,
) -> Lockup:
    """Find the attempts that can never go on, and the jobs that can never start because of them.

    An attempt that waits for several jobs goes on as soon as one of them may end; a job that depends on
    several needs them all. A slot becomes free when an attempt that goes on gives it back.

    Args:
        holders: the attempts in flight in one process.
        wanted: the jobs they wait for that have not started and that only this process can run, and what
            those depend on.
        free: free slots in all.
        free_lanes: free slots of each lane.
        is_claiming: False: the worker is stopping, and nothing starts any more.
    """
    held = {holder.seq: holder for holder in holders}
    starved = {job.seq: job for job in wanted if job.seq not in held}
    while True:
        still = held.keys() | starved.keys()
        moving = {
            seq for seq, holder in held.items() if not holder.waits_for or set(holder.waits_for) - still
        }
        # What it gives back counts from now on as free, for whoever needs it.
        free += len(moving)
        lanes = [held.pop(seq).lane for seq in moving]
        free_lanes = {lane: free_lanes.get(lane, 0) + lanes.count(lane) for lane in {*free_lanes, *lanes}}
        starting = {
            seq
            for seq, job in starved.items()
            if is_claiming and free > 0 and free_lanes.get(job.lane, 0) > 0 and _may_start(job, still)
        }
        for seq in starting:
            del starved[seq]
        if not moving and not starting:
            return Lockup(held=frozenset(held), starved=frozenset(starved))


def _may_start(job: Wanted, still: Collection[int]) -> bool:
    """Say whether none it depends on is among those who may never move, and a place of each limit is not."""
    return not set(job.waits_for) & set(still) and all(set(held) - set(still) for held in job.limits)
