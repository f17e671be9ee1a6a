"""Start-time fair queueing: each tenant's jobs are numbered in its own time, the earliest number goes first.

The rules (P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queuing", SIGCOMM 1996; a tenant's jobs all cost the
same, so the finish of one is the earliest start of the next):

1. A job gets its start tag when it becomes ready for the first time: the later of the virtual time and the
   finish tag of its tenant's job before it. Its own finish tag is its start tag plus its tenant's cost.
2. The virtual time is the largest start tag of a job that was claimed.

So a tenant that was idle gets no credit (rule 1 lifts it to the virtual time), and one that floods only moves
its own jobs back. Over any time in which two tenants have jobs waiting, each gets its share, give or take one
job. A tag is an ordinary sort key: it never changes, and priority decides between equal ones.

A tag is given out when the job becomes ready and not when it is submitted, because a tenant that submits
a thousand jobs for tomorrow morning would otherwise find them all due at once with tags of yesterday.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from betimes.core.job import Job
from betimes.core.priority import HIGHEST_PRIORITY
from betimes.core.sort_key import LARGEST_KEY, SMALLEST_KEY

UNTAGGED = LARGEST_KEY
"""The sort key of a job that has not been ready yet, under fair share."""

_PRIORITY_BITS = 11  # 2,001 priorities
_FINE_BITS = 10
_FIRST_KEY = SMALLEST_KEY + HIGHEST_PRIORITY
COST = 2520 << _FINE_BITS
"""What one job costs a tenant of weight 1: weights from 1 to 10, and many more, divide it. A sort key has
no room for the fine bits; they keep the shares of other weights right in the long run."""

LAST_TAG = ((1 << (64 - _PRIORITY_BITS)) - 2) << _FINE_BITS
"""The largest tag. One tenant alone, at 25,000 jobs a second, reaches it after four and a half years; a
store that is keyed anew begins at zero."""


def tag_of(key: int) -> int:
    """Return the start tag in a sort key."""
    return (key - SMALLEST_KEY) >> _PRIORITY_BITS << _FINE_BITS


def key_of(tag: int, priority: int) -> int:
    """Return the sort key of a start tag: equal tags by priority, the highest first."""
    return (tag >> _FINE_BITS << _PRIORITY_BITS) + (_FIRST_KEY - priority)


def finish_tag(start: int, cost: int) -> int:
    """Return the finish tag of a job, which is the earliest start of its tenant's next."""
    return min(start + cost, LAST_TAG)


def start_tag(virtual: int, finish: int | None) -> int:
    """Return the start tag of a tenant's next job.

    Args:
        virtual: the virtual time.
        finish: the finish tag of its job before; None: there was none lately.
    """
    return virtual if finish is None or finish < virtual else finish


class Shares:
    """The virtual time and the tenants' finish tags of a store in memory (mutable: each job moves them).

    Attributes:
        virtual: the virtual time.
    """

    __slots__ = ("_finishes", "_tidy_at", "virtual")

    def __init__(self) -> None:
        """Start at zero, without tenants."""
        self.virtual = 0
        self._finishes: dict[str, int] = {}
        self._tidy_at = 1024

    def tag(self, jobs: Iterable[Job]) -> None:
        """Give those of the jobs their sort keys that have a tenant and are ready for the first time."""
        virtual, finishes = self.virtual, self._finishes
        for job in jobs:
            if job.tenant is not None and job.sort_key == UNTAGGED:
                name, cost = job.tenant
                start = start_tag(virtual, finishes.get(name))
                finishes[name] = finish_tag(start, cost)
                job.sort_key = key_of(start, job.spec.priority)
        if len(finishes) >= self._tidy_at:
            self._tidy()

    def claimed(self, jobs: Sequence[Job]) -> None:
        """Move the virtual time on to jobs that were claimed, given in their order."""
        for job in reversed(jobs):
            if job.tenant is not None:
                self.virtual = max(self.virtual, tag_of(job.sort_key))
                return

    def _tidy(self) -> None:
        """Forget the tenants that stand no worse than a new one."""
        self._finishes = {name: at for name, at in self._finishes.items() if at > self.virtual}
        self._tidy_at = max(1024, 2 * len(self._finishes))
