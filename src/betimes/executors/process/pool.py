"""The children of one opening: which run goes to which, and what becomes of it when a child dies.

A run is in one of two places: `waiting` here, or inside a child. It is in a child's hands only from the
moment at which the child has taken its ticket (`frames`); until then it can be taken back and given to
another, whatever has happened to the first. So a child that dies costs the one run that it had begun.

Ahead of time a run is given to a busy child only while runs are short (`depth`), so that children do not
wait for the next request to arrive. If one that runs takes longer than `PATIENCE_S`, those behind it are
taken back.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Collection

from betimes.core.outcome import Outcome
from betimes.core.recycle import Recycle
from betimes.core.remote import Died
from betimes.executors.guard import Guard
from betimes.executors.process.child import Child, Entry, in_words
from betimes.executors.spawned import Exit
from betimes.ports import Run

_log = logging.getLogger("betimes")

DEPTH = 8
"""The most runs inside one child, while they are short."""

SHORT_S = 0.002
"""Runs that take less, one with another, are short."""

PATIENCE_S = 0.02
"""How long a run may take before those that wait behind it are taken back."""

START_AGAIN_S = 1.0
"""How long the next start waits after one that has failed."""

STARTS_TRIED = 3
"""After how many starts in a row that have failed a job is: one alone may be chance, and nobody's fault."""

SPARES = 2
"""The most children that are started before anybody needs them, where others have been lost."""

KILLED_WITHIN_S = 5.0
"""How long the end of what was killed is waited for at the close."""

_LAST_WORDS = 2000


class Pool:
    """Starts children, gives them runs, and replaces them.

    Args:
        slots: the most children.
        grace_s: how long a child that is told to stop may take.
        recycle: when a child is replaced.
        new_token: makes what nobody prints by accident.
        ended: is told of the end of each run.
        begun: is told when the code of a run begins.
    """

    def __init__(
        self,
        slots: int,
        grace_s: float,
        recycle: Recycle,
        *,
        new_token: Callable[[], str],
        ended: Callable[[Run, Outcome], None],
        begun: Callable[[Run], None],
    ) -> None:
        self._slots = slots
        self._grace_s = grace_s
        self._recycle = recycle
        self._new_token = new_token
        self._ended = ended
        self._begun = begun
        self._loop = asyncio.get_running_loop()
        self._guard = Guard()
        self._waiting: deque[Run] = deque()
        self._children: list[Child] = []
        self._is_dealing = False
        self._is_closed = False
        self._is_deferring = False
        self._starts_at = 0.0
        self._failed_starts = 0
        self._typical_s = 1.0
        self._watch: asyncio.TimerHandle | None = None
        self._watched: dict[Child, Entry] = {}
        self._is_empty = asyncio.Event()

    @property
    def ahead(self) -> int:
        """How many runs it takes beyond its slots."""
        return self._slots * (self._depth - 1)

    @property
    def _depth(self) -> int:
        return DEPTH if self._typical_s < SHORT_S else 1

    # --- from the worker

    def start(self, run: Run) -> None:
        """Take a run."""
        run.handle = self
        self._waiting.append(run)
        self._deal_soon()

    def cancel(self, run: Run) -> None:
        """Have a run's code stopped; one that has not begun never does."""
        child = run.handle
        if isinstance(child, Child):
            self._is_deferring = True  # whoever cancels does not expect to hear of other ends meanwhile
            self._take_back(child)
            self._is_deferring = False
            if run.handle is child:
                child.doom(self._grace_s)
                self._restock()
        if run.handle is self and run in self._waiting:
            self._waiting.remove(run)
            self._is_deferring = True
            self._end(run, run.raised(CancelledError()))
            self._is_deferring = False

    def _take_back(self, child: Child) -> None:
        """Have the runs in a child that have not begun wait here again, before all others."""
        back = child.withdraw()
        for run in back:
            run.handle = self
        self._waiting.extendleft(reversed(back))
        self._deal_soon()

    async def close(self) -> None:
        """End all children, and wait until they are dead; what runs is told to stop, or killed."""
        self._is_closed = True
        if self._watch is not None:
            self._watch.cancel()
        for child in list(self._children):
            self._take_back(child)
            child.doom(self._grace_s)
        while self._waiting:
            run = self._waiting.popleft()
            self._end(run, run.raised(CancelledError()))
        if self._children:
            try:
                async with asyncio.timeout(self._grace_s + KILLED_WITHIN_S):
                    await self._is_empty.wait()
            except TimeoutError:
                pids = [child.process.pid for child in self._children]
                _log.warning("processes %s were killed, and have not ended", pids)
        self._guard.close()

    def _end(self, run: Run, outcome: Outcome) -> None:
        run.handle = None
        if self._is_deferring:
            self._loop.call_soon(self._ended, run, outcome)
        else:
            self._ended(run, outcome)

    # --- who gets what

    def _deal_soon(self) -> None:
        if not self._is_dealing:
            self._is_dealing = True
            self._loop.call_soon(self._deal)

    def _deal(self) -> None:
        self._is_dealing = False
        if self._is_closed or not self._waiting:
            return
        given: set[Child] = set()
        while self._waiting and (child := self._taker(self._waiting[0])) is not None:
            run = self._waiting.popleft()
            try:
                child.give(run)
            except Exception as error:  # noqa: BLE001 - a call that cannot be sent is this run's own failure
                self._end(run, run.raised(error))
                continue
            given.add(child)
            child.is_leaving = self._is_used_up(child)
            if len(child.inside) == 1:
                self._begun(run)
        for child in given:
            child.flush()
        self._start_for(len(self._waiting))
        if self._watch is None and any(len(child.inside) > 1 for child in given):
            self._watch = self._loop.call_later(PATIENCE_S, self._look)

    def _taker(self, run: Run) -> Child | None:
        """Return the child to take this run: one with nothing in it, or, ahead of time, with little in it."""
        best: Child | None = None
        for child in self._children:
            if child.is_ready and not child.is_leaving:
                if not child.inside:
                    return child
                if best is None or len(child.inside) < len(best.inside):
                    best = child
        if best is None or len(best.inside) >= self._depth or run.job.spec.at_most_once:
            return None
        return best if self._has_all() else None

    def _has_all(self) -> bool:
        """Whether all children that there can be are there: else another is started for what waits."""
        return sum(not child.is_leaving for child in self._children) >= self._slots

    def _start_for(self, needed: int) -> None:
        """Start children until so many are starting, as far as there may be more."""
        staying = [child for child in self._children if not child.is_leaving]
        more = min(needed - self._starting(), self._slots - len(staying))
        if more <= 0 or self._loop.time() < self._starts_at:
            return
        for _ in range(more):
            try:
                child = Child(self, token=self._new_token(), recycle=self._recycle, guard=self._guard)
            except OSError as error:
                self._fail_first(f"a process could not be started: {error}")
                break
            self._children.append(child)
            self._is_empty.clear()

    def _starting(self) -> int:
        return sum(not (child.is_ready or child.is_leaving) for child in self._children)

    def _restock(self) -> None:
        """Start another in place of one that was lost; not many at once, since a start takes its time."""
        if not self._is_closed:
            self._start_for(min(self._starting() + 1, SPARES))

    def _fail_first(self, how: str) -> None:
        """End the run that waits first, so that what cannot be started is not tried for ever.

        If there are children that can run it, or will be, it waits for them; and if it may have been chance,
        it waits for the next start. That comes after a while.
        """
        has_others = any(not child.is_leaving for child in self._children)
        self._failed_starts += not has_others
        if has_others or self._failed_starts < STARTS_TRIED:
            what = "what waits is left to the other processes for now" if has_others else "it is tried again"
            _log.warning("%s; %s", how, what)
            self._starts_at = self._loop.time() + START_AGAIN_S
            self._loop.call_later(START_AGAIN_S, self._deal_soon)
        elif self._waiting:
            run = self._waiting.popleft()
            self._end(run, run.answered(Died(how)))
        self._deal_soon()

    def _look(self) -> None:
        """Take back what waits behind a run that takes its time."""
        self._watch = None
        before, self._watched = self._watched, {}
        for child in [each for each in self._children if len(each.inside) > 1]:
            child.read()
            if len(child.inside) <= 1:
                continue
            if before.get(child) is not child.inside[0]:
                self._watched[child] = child.inside[0]
                continue
            self._typical_s = max(self._typical_s, PATIENCE_S)
            self._take_back(child)
        if self._watched:
            self._watch = self._loop.call_later(PATIENCE_S, self._look)

    # --- from the children

    def ready(self, child: Child) -> None:
        """Hear that a child has started."""
        del child
        self._failed_starts = 0
        self._deal_soon()

    def answered(self, child: Child, entries: Collection[Entry]) -> None:
        """Hear that the code of these has ended."""
        now = self._loop.time()
        self._typical_s += ((now - child.since) / len(entries) - self._typical_s) / 2
        child.since = now
        for entry in entries:
            if entry is child.doomed:
                # Its run is over when the child, and what it has started, is dead: that can be at once.
                child.process.kill()
            else:
                assert entry.outcome is not None
                self._end(entry.run, entry.outcome)
        if child.inside:
            self._begun(child.inside[0].run)
        elif child.is_leaving and child.doomed is None:
            child.dismiss(self._grace_s)
        if self._waiting:
            self._deal_soon()

    def _is_used_up(self, child: Child) -> bool:
        return self._recycle.is_due(jobs=child.served, age_s=self._loop.time() - child.born_at)

    def dead(self, child: Child) -> None:
        """Hear that a child is dead."""
        self._take_back(child)

    def lost(self, child: Child, how: Exit) -> None:
        """Hear that nothing of a dead child is left."""
        self._children.remove(child)
        self._watched.pop(child, None)
        for entry in (*child.inside, *(() if child.doomed is None else (child.doomed,))):
            if entry.outcome is not None and entry.run.handle is child:
                self._end(entry.run, entry.outcome)
        if not (child.is_ready or child.is_leaving):
            words = child.last_words[-_LAST_WORDS:].decode("utf-8", "backslashreplace").strip()
            self._fail_first(f"a process did not start: {in_words(how)}; it wrote: {words or 'nothing'}")
        elif child.inside:
            self._restock()
        self._deal_soon()
        if not self._children:
            self._is_empty.set()
