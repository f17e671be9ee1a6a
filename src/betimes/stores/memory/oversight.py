"""What operators and the code around the jobs ask of the memory store: queues, gates, logs, schedules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from betimes.core.job import Job, JobEvent, JobStatus, Micros
from betimes.core.limits import GateTerms, GateView, rule_of
from betimes.core.log import LogLine, LogPage
from betimes.core.queue_view import Pause, QueueView
from betimes.core.schedule import Advance, Fire, Fired, ScheduleRecord
from betimes.core.vitals import Vitals
from betimes.errors import ConfigurationError
from betimes.ports import Hint, ScheduleFilter
from betimes.stores.memory.firing import fire
from betimes.stores.memory.gates import Rule
from betimes.stores.memory.parts import MemoryParts
from betimes.stores.memory.queue_looks import look_at_queue, oldest_due
from betimes.stores.memory.showing import show, show_used

RUNNING = JobStatus.RUNNING


class MemoryOversight(MemoryParts):
    """The part of the contract that is not about single jobs and their attempts."""

    # queues

    async def pause_queue(self, name: str, *, by: str | None = None) -> None:
        """Let nothing of this queue be claimed."""
        if name not in self._paused:
            self._paused = self._paused | {name: Pause(at=self._clock.now(), by=by)}

    async def resume_queue(self, name: str) -> None:
        """Undo `pause_queue`."""
        self._paused = {queue: pause for queue, pause in self._paused.items() if queue != name}
        self._moves.work_appeared = True
        self._tell()

    async def paused_queues(self) -> dict[str, Pause]:
        """Return the paused queues, by name."""
        return self._paused

    async def queue(self, name: str) -> QueueView:
        """Show what stands first in a queue, and what is kept back."""
        return look_at_queue(self._waiting, name, self._clock.now())

    async def oldest_due(self) -> dict[str, Micros]:
        """Return since when the oldest claimable job has been due, by queue."""
        return oldest_due(self._waiting, self._history, self._clock.now())

    # the store

    async def vitals(self, *, full: bool = False) -> Vitals:
        """Say that there is nothing to look at but the jobs."""
        del full  # memory is not damaged
        latest = max((job.submitted_at for job in self._history.all()), default=None)
        return Vitals(kind="memory", is_durable=False, strategy=self._strategy, latest=latest)

    # gates

    async def declare_gates(self, terms: Sequence[GateTerms]) -> None:
        """Keep the rules that the code declares."""
        for each in terms:
            rule = self._gates.rules.get(each.rule)
            if rule is None:
                self._gates.rules[each.rule] = Rule(each)
            elif rule.declared != each:
                rule.declared = each
                self._go_by(each.rule, rule)
        self._tell()

    async def change_gates(self, rule: str, terms: GateTerms | None) -> GateTerms | None:
        """Have all gates of a rule go by other rules, or by what was declared."""
        known = self._gates.rules.get(rule)
        if known is None:
            return None
        known.changed = terms
        self._go_by(rule, known)
        self._tell()
        return known.terms

    def _go_by(self, name: str, rule: Rule) -> None:
        now = self._clock.now()
        self._waiting.lines.heed(now)
        for door in self._gates.under(name):
            door.change(rule.terms, now)
            self._waiting.lines.opened(door, now)
        # Even where nothing is free now, the next token may come earlier than was said.
        self._moves.work_appeared = True

    async def trip(self, key: str, *, is_open: bool) -> None:
        """Open the circuit of a breaker, or close it."""
        if rule_of(key) in self._gates.rules:
            door = self._gates.door(key)
            if is_open:
                self._permits.trip(door)
            else:
                self._permits.reset(door)
            self._moves.work_appeared = True
            self._tell()

    async def gates(self, keys: Sequence[str], *, most: int = 100) -> list[GateView]:
        """Show these gates, with the first holders and waiters."""
        return show(keys, self._gates, self._waiting.lines, self._permits, most=most, now=self._clock.now())

    async def gates_under(self, rule: str | None, *, limit: int = 1000) -> list[GateView]:
        """Show the gates of a rule, or of all, that are in use."""
        return show_used(rule, self._gates, self._waiting.lines, limit=limit, now=self._clock.now())

    # the jobs' logs

    async def write_log(self, pages: Sequence[LogPage]) -> None:
        """Add lines to the logs of jobs that are remembered, under the fences that are theirs."""
        for page in pages:
            job = page.job
            if job.fence == page.fence and job in self._history.versions(job.id):
                self._logs.write(job.seq, page.lines)

    async def log(self, job: Job, *, after: int = 0, limit: int = 1000) -> list[LogLine]:
        """Return the lines of a job's log whose number is larger."""
        return self._logs.read(job.seq, after, limit)

    # the order

    async def rekey(self, *, strategy: str, assign: Callable[[Job], None]) -> int:
        """Order all live jobs by another strategy."""
        boottime = self._clock.boottime()
        for lease in self._leases.all():
            if lease.holds_at(boottime):
                raise ConfigurationError(
                    f"worker {lease.info.id} of this store runs: stop all its schedulers first, then order "
                    "its jobs anew"
                )
        live = [job for job in self._history.all() if not job.status.is_terminal]
        ranks = [(job, job.sort_key, job.tenant) for job in live]
        try:
            for job in live:
                assign(job)
        except BaseException:
            for job, sort_key, tenant in ranks:
                job.sort_key, job.tenant = sort_key, tenant
            raise
        self._waiting.order_anew(live)
        self._strategy = strategy
        self._moves.work_appeared = True
        self._tell()
        return len(live)

    # schedules

    async def save_schedule(
        self, record: ScheduleRecord, *, expected_version: int | None, fires: Sequence[Fire] = ()
    ) -> bool:
        """Insert or replace a schedule by compare-and-set."""
        is_saved = self._schedules.save(record, expected_version, fires)
        self._tell()
        return is_saved

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule and its fires."""
        return self._schedules.remove(schedule_id)

    async def schedule(self, schedule_id: str) -> ScheduleRecord | None:
        """Return a schedule."""
        return self._schedules.get(schedule_id)

    async def schedules(self, which: ScheduleFilter) -> list[ScheduleRecord]:
        """List schedules by id, or those due, earliest first."""
        return self._schedules.matching(which)

    async def next_fire(self) -> Micros | None:
        """Return the earliest next fire."""
        return self._schedules.next_fire()

    async def fire(self, advances: Sequence[Advance]) -> tuple[list[Fired | None], Sequence[JobEvent]]:
        """Carry out steps of schedules."""
        fired = fire(
            advances,
            self._schedules,
            self._history,
            self._moves,
            gates=self._gates,
            now=self._clock.now(),
        )
        changes = self._moves.take_changes()
        if any(event.after is RUNNING for event in changes):
            for hear in self._subscribers:
                hear(Hint.CANCEL)
        self._tell()
        return fired, changes

    async def fires(self, schedule_id: str, *, before: Micros | None = None, limit: int = 100) -> list[Fire]:
        """List what became of a schedule's instants, newest first."""
        return list(self._schedules.fires(schedule_id, before, limit))
