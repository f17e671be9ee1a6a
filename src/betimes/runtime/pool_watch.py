"""Looks after jobs that wait inside a pool for other jobs: whether they can ever go on, and who cannot.

It costs nothing while no job waits for another. While one does, a timer looks every second: first with what
is known here (mostly that settles it: a slot is free, or a neighbour goes on), and only if that leaves a
doubt in the store. What it finds is logged once for each situation, counted in the metrics, and told by
`explain`.

A worker that stops starts nothing more, so whoever then waits for a job that has not started waits in vain:
it is given back, or `stop()` would wait for it for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import Context as Variables

from betimes.core.claiming import is_served
from betimes.core.job import WAITING, Job, JobStatus
from betimes.core.pool import SLOTS_REMEDY, Holder, Lockup, Wanted, lockup
from betimes.core.wording import listed
from betimes.core.worker_state import Phase
from betimes.errors import StoreUnavailable
from betimes.ports import Store
from betimes.runtime.attempt import Attempt
from betimes.runtime.worker import Worker

_log = logging.getLogger("betimes")

LOOK_EVERY_S = 1.0
MOST_LOOKED_UP = 1000
"""How many jobs one look asks the store for; more that are waited for count as able to go on."""

_NOBODY = Lockup()


class PoolWatch:
    """Knows which attempts of one worker wait for which jobs.

    Args:
        store: where the jobs are.
        worker: whose attempts.
        queues: the queues it serves; None: all.

    Attributes:
        found: who could not go on at the last look.
    """

    def __init__(self, store: Store, worker: Worker, queues: tuple[str, ...] | None) -> None:
        self._store = store
        self._worker = worker
        self._state = worker.state
        self._queues = queues
        self._loop = asyncio.get_running_loop()
        self._waits: dict[tuple[int, int], list[Job]] = {}
        self._told: frozenset[int] = frozenset()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self.found = _NOBODY

    @contextmanager
    def waiting(self, attempt: Attempt | None, job: Job) -> Iterator[None]:
        """Note that an attempt's code (None: it is no job's) waits for a job's end while the block lasts."""
        if attempt is None or self._state.in_flight.get(attempt.seq) is not attempt:
            yield
            return
        key = attempt.seq, attempt.fence
        waits = self._waits.setdefault(key, [])
        waits.append(job)
        if self._timer is None:
            self._timer = self._loop.call_later(LOOK_EVERY_S, self._ring)
        try:
            yield
        finally:
            waits.remove(job)
            if not waits:
                self._waits.pop(key, None)
            if attempt.seq in self.found.held:
                self.found = _NOBODY

    def is_waiting(self, attempt: Attempt) -> bool:
        """Say whether an attempt's code waits for another job."""
        return (attempt.seq, attempt.fence) in self._waits

    async def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    def _ring(self) -> None:
        self._timer = None
        if not self._waits:
            return
        if not self._suspects():
            self._tell(_NOBODY)
        elif self._task is None or self._task.done():
            self._task = self._loop.create_task(self._tend(), context=Variables(), name="betimes-pool-watch")
        self._timer = self._loop.call_later(LOOK_EVERY_S, self._ring)

    async def _tend(self) -> None:
        found = await self.look()
        if not self._is_claiming:
            held = self._state.held()
            self._worker.give_back([held[seq] for seq in found.held if seq in held])

    @property
    def _is_claiming(self) -> bool:
        return self._state.phase is Phase.RUNNING

    def _holders(self) -> list[Holder]:
        waits = self._waits
        return [
            Holder(seq=a.seq, lane=a.lane, waits_for=[job.seq for job in waits.get((a.seq, a.fence), ())])
            for a in self._state.in_flight.values()
        ]

    def _lockup(self, wanted: Iterable[Wanted]) -> Lockup:
        free, free_lanes = self._state.room()
        is_claiming = self._is_claiming
        return lockup(self._holders(), wanted, free=free, free_lanes=free_lanes, is_claiming=is_claiming)

    def _awaited(self) -> list[Job]:
        return list({job.seq: job for waits in self._waits.values() for job in waits}.values())

    def _suspects(self) -> Lockup:
        """Who could not go on if all they wait for needed a slot here, and what is held up stayed so."""
        return self._lockup(
            Wanted(
                seq=job.seq,
                lane=job.spec.lane,
                # Nothing starts that waits for itself. The record may be old: then the store knows better.
                waits_for=(job.seq,) if job.status is JobStatus.BLOCKED or job.gates else (),
            )
            for job in self._awaited()
        )

    async def look(self) -> Lockup:
        """Find out who cannot go on, and say so if it is news."""
        suspects = self._suspects()
        if not suspects:
            return self._tell(_NOBODY)
        before = self._holders()
        try:
            wanted = await self._look_up(job for job in self._awaited() if job.seq in suspects.starved)
        except StoreUnavailable as error:
            _log.debug("could not look whether jobs wait in vain: %s", error)
            return self.found
        # What has moved during the look may have moved because nobody is locked up: the next look will tell.
        return self._tell(self._lockup(wanted) if self._holders() == before else _NOBODY)

    async def _look_up(self, jobs: Iterable[Job]) -> list[Wanted]:
        """Ask the store which of the jobs, and of those they depend on, wait for a slot of this worker."""
        waits_for_us_alone = await self._rule()
        wanted: list[Wanted] = []
        seen: set[int] = set()
        todo = deque(jobs)
        while todo and len(seen) < MOST_LOOKED_UP:
            job = todo.popleft()
            if job.seq in seen:
                continue
            seen.add(job.seq)
            found = await self._store.get(job)
            if found is None or not waits_for_us_alone(found):
                continue
            before = await self._before(found) if found.status is JobStatus.BLOCKED else []
            if before or found.status is not JobStatus.BLOCKED:
                seqs = [other.seq for other in before]
                limits = await self._full_limits(found) if found.gates else ()
                wanted.append(Wanted(seq=found.seq, lane=found.spec.lane, waits_for=seqs, limits=limits))
                todo += before
        return wanted

    async def _rule(self) -> Callable[[Job], bool]:
        """Return the test of whether a job waits for this worker alone, and not for something else."""
        is_claiming = self._is_claiming
        paused = await self._store.paused_queues()
        mine = self._worker.id
        others = [info for info, left_us in await self._store.workers() if left_us and info.id != mine]

        def waits_for_us_alone(job: Job) -> bool:
            queue = job.spec.queue
            if job.status not in WAITING or any(is_served(queue, other.queues) for other in others):
                return False
            is_held_up = job.parked is not None or queue in paused or not is_served(queue, self._queues)
            return not is_held_up or not is_claiming

        return waits_for_us_alone

    async def _full_limits(self, job: Job) -> list[list[int]]:
        """Return who holds the places of each limit that is full for a job, where all of them are known."""
        views = await self._store.gates(job.gates)
        full = [view for view in views if view.held and view.held >= view.terms.max_running]
        return [[seq for _, seq, _ in view.holders] for view in full if len(view.holders) == view.held]

    async def _before(self, job: Job) -> list[Job]:
        """Return the jobs that must end before a BLOCKED one is released, as far as they can be found."""
        older = [a.job for a in self._state.in_flight.values() if a.job.id == job.id and a.seq < job.seq]
        found = [await self._store.find(name) for name in job.depends_on]
        return older + [other for other in found if other is not None and not other.status.is_terminal]

    def _tell(self, found: Lockup) -> Lockup:
        """Keep what was found, and log it if somebody is locked up who was not before."""
        news = found.held - self._told
        self._told = found.held
        self.found = found
        if not news:
            return found
        stories = listed([self._story(seq) for seq in sorted(found.held)], most=10)
        if self._is_claiming:
            text = "%d jobs that hold a slot can never go on: %s. Cancel one of them. %s"
            _log.warning(text, len(found.held), stories, SLOTS_REMEDY)
        else:
            text = (
                "the scheduler is stopping, and %d jobs wait for what will not start any more; given back: %s"
            )
            _log.warning(text, len(found.held), stories)
        return found

    def _story(self, seq: int) -> str:
        attempt = self._state.in_flight[seq]
        waits = self._waits[seq, attempt.fence]
        names = listed([f"{job.id} ({job.spec.task})" for job in waits], most=3)
        return f"job {attempt.job.id} ({attempt.task.name}) waits for {names}"
