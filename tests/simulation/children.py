"""The lane `process` on virtual time: children that run one job after the other, and that die at times.

A request may lie in a child behind the one that runs. When a child dies, that one has died; the others go to
the next child, as if they had never been sent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.simulation.evidence import RETURNED
from tests.simulation.plans import End
from tests.simulation.settings import Settings
from tests.simulation.tally import Met, Tally
from tests.simulation.work import Bench, Call, Worksite

from betimes.core.outcome import Outcome
from betimes.core.remote import Died, Returned
from betimes.errors import Cancel
from betimes.ports import Executor, Run

SPAWN_S = 0.05
GRACE_S = 0.3


@dataclass(slots=True, eq=False)
class Child:
    """One child process.

    Attributes:
        run, call, timer: what it runs, if it does, and what will happen next to it.
        behind: what lies in it, and has not begun.
        is_told: what it runs has been told to stop.
    """

    run: Run | None = None
    call: Call | None = None
    timer: asyncio.TimerHandle | None = None
    behind: deque[Run] = field(default_factory=deque)
    is_told: bool = False


class VirtualChildren(Executor):
    """Runs jobs in children that are not there."""

    lane = "process"
    tells_begun = True

    def __init__(self, settings: Settings, site: Worksite, rng: Random, tally: Tally) -> None:
        self.slots = min(settings.children, settings.concurrency)
        self._deaths = settings.child_deaths
        self._depth = settings.buffered
        self._site = site
        self._rng = rng
        self._tally = tally
        self.end: Callable[[Run, Outcome], None] = _nobody
        self._begun: Callable[[Run], None] = _nobody_else
        self._children = [Child() for _ in range(self.slots)]

    @property
    def ahead(self) -> int:
        """As many as may lie behind others."""
        return self._depth * self.slots

    def open(self, ended: Callable[[Run, Outcome], None], begun: Callable[[Run], None]) -> None:
        """Use the running loop."""
        self.end, self._begun = ended, begun

    def start(self, run: Run) -> None:
        """Send it to the child that has the least to do."""
        child = min(self._children, key=lambda one: (one.run is not None) + len(one.behind))
        child.behind.append(run)
        self._tally[Met.LAY_BEHIND] += child.run is not None
        if child.run is None and child.timer is None:
            self._next(child, self._rng.choice((0.0, 0.001)))

    def _next(self, child: Child, after_s: float) -> None:
        child.run = child.call = None
        child.is_told = False
        child.timer = asyncio.get_running_loop().call_later(after_s, self._begin, child)

    def _begin(self, child: Child) -> None:
        child.timer = None
        if not child.behind:
            return
        run = child.run = child.behind.popleft()
        self._begun(run)
        run.call()
        site = Bench.site = self._site
        site.in_thread = None
        try:
            result = run.context.run(run.invoke)
            outcome = run.answered(Returned(str(result).encode()))
        except BaseException as error:  # noqa: BLE001 - as the real one: whatever it raises is its outcome
            outcome = run.raised(error)
        call = child.call = site.in_thread
        assert call is not None
        if call.act.end is End.DIE and site.die():
            return
        loop = asyncio.get_running_loop()
        if site.is_calm() or self._rng.random() >= self._deaths:
            child.timer = loop.call_later(call.act.seconds, self._return, child, run, outcome)
        else:
            child.timer = loop.call_later(call.act.seconds * self._rng.random(), self.die, child)

    def _return(self, child: Child, run: Run, outcome: Outcome) -> None:
        assert child.call is not None
        act = child.call.act
        how = RETURNED if act.end in {End.RETURN, End.DIE} else act.end.value
        self._site.evidence.end(child.call.execution, how)
        self._next(child, 0.0)
        self.end(run, outcome)

    def die(self, child: Child) -> None:
        """Lose a child under what it runs; what lay behind it begins in the next one."""
        run, call = child.run, child.call
        assert run is not None
        assert call is not None
        self._tally[Met.CHILD_DIED] += 1
        self._tally[Met.DIED_BEFORE_OTHERS] += bool(child.behind)
        self._site.evidence.died(call.execution)
        self._next(child, SPAWN_S)
        self.end(run, run.answered(Died("the process was killed by SIGKILL")))

    def cancel(self, run: Run) -> None:
        """Have it end soon, by its own doing or by a SIGKILL; what has not begun ends at once."""
        for child in self._children:
            if run in child.behind:
                child.behind.remove(run)
                self.end(run, run.raised(asyncio.CancelledError()))
            elif child.run is run and child.call is not None and not child.is_told:
                child.is_told = True
                if child.timer is not None:
                    child.timer.cancel()
                after_s = GRACE_S if child.call.act.swallows else 0.01
                child.timer = asyncio.get_running_loop().call_later(after_s, self._stop, child)

    def _stop(self, child: Child) -> None:
        assert child.run is not None
        assert child.call is not None
        run = child.run
        self._site.evidence.end(child.call.execution, "cancelled")
        self._next(child, SPAWN_S)
        self.end(run, run.raised(Cancel("told to stop")))

    async def close(self) -> None:
        """Nothing to end."""


def _nobody(_run: Run, _outcome: Outcome) -> None:
    """Tell nobody."""


def _nobody_else(_run: Run) -> None:
    """Tell nobody."""
