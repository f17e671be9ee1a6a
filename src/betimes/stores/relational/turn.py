"""A turn: what one operation sees and changes within the writer's transaction.

Each job is loaded once, changed as a record by `decide` and `enter`, and written once: `flush` turns what
was changed into a few statements. Whoever reads rows by their state must flush first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from betimes.core.dependencies import Ended, is_met, settle
from betimes.core.events import Event
from betimes.core.job import TERMINAL, Job, JobEvent, JobStatus, Micros
from betimes.core.lifecycle import decide
from betimes.core.transition import Transition, enter, event_of
from betimes.ports import Hint
from betimes.stores.relational.lines import Lines
from betimes.stores.relational.rows import Specs, array, changed_row, finished_row
from betimes.stores.relational.settling import forget_unsettled, note_unsettled, take_edges, unsettled
from betimes.stores.relational.statements import ManyRows, Records, Row, Sql, statement
from betimes.stores.relational.stirred import Stirred, take_stirred
from betimes.stores.relational.tags import Tags, is_untagged
from betimes.stores.relational.tally import Tally
from betimes.stores.relational.upkeep import SetBack

STEP_LIMIT = 500
"""The most jobs promoted, expired, rescued or unparked in one turn; the next turn goes on."""

BLOCKED, READY, RUNNING = JobStatus.BLOCKED, JobStatus.READY, JobStatus.RUNNING

LIVE_BY_SEQ = Records("live_by_seq")
LIVE_IF_FREE = Records("live_if_free")
ENDED_BY_SEQ = Records("ended_by_seq")
ENDED_AS_THEY_ARE = Records("ended_as_they_are")
UPDATE_JOB = ManyRows("update_job")
FINISH_JOB = ManyRows("finish_job")
DELETE_JOB = statement("delete_job")
DELETE_DEPENDENCIES = statement("delete_dependencies")
STILL_WAITING = statement("still_waiting")
NEWEST_LIVE = Records("newest_live")
NEWEST_ENDED = Records("newest_ended")
STATES_BY_SEQ = Records("states_by_seq")
STATES_IF_FREE = Records("states_if_free")
KEEP_PERMIT = ManyRows("keep_permit")
UNTAGGED = Records("untagged")


class Turn:
    """One operation's view of the transaction.

    Attributes:
        sql: the writing connection, inside its transaction.
        specs: the shared memory of specs.
        now: the transaction's instant.
        boottime, boot_id: the same instant on the clock of the leases.
        jobs: the live jobs loaded so far, by number; one record each.
        awaited: numbers of those that others wait for.
        changes: the transitions made, in order, for whoever asked.
        ends_of_fires: the jobs that have ended and were made by schedules, in order (`firing.follow`).
        tally: the jobs counted out of one status and into another, until they are written.
        hints: what subscribers are to hear after the commit.
        set_back: whether the clock was set back.
    """

    __slots__ = (
        "_dirty", "_ended", "_is_claim_ahead", "_is_keeper", "_lines", "_permits", "_stirred", "_tags",
        "_unblocked", "_untagged",
        "awaited", "boot_id", "boottime", "changes", "ends_of_fires", "hints", "jobs", "now",
        "set_back", "specs", "sql", "tally",
    )  # fmt: skip

    def __init__(
        self,
        sql: Sql,
        specs: Specs,
        *,
        now: Micros,
        boottime: Micros,
        boot_id: str,
        hints: set[Hint],
        set_back: SetBack,
    ) -> None:
        self.sql = sql
        self.specs = specs
        self.now = now
        self.boottime = boottime
        self.boot_id = boot_id
        self.hints = hints
        self.set_back = set_back
        self.jobs: dict[int, Job] = {}
        self.awaited: set[int] = set()
        self.changes: list[JobEvent] = []
        self.ends_of_fires: list[Job] = []
        self._dirty: dict[int, Job] = {}
        self._ended: list[Job] = []
        self._unblocked: list[int] = []
        self._untagged: list[Job] = []
        self._permits: list[Row] = []
        self._lines: Lines | None = None
        self._is_claim_ahead = False
        self._is_keeper = sql.is_alone
        self._stirred = Stirred()
        self._tags: Tags | None = None
        self.tally = Tally()

    # lines, gates and tags

    def touch_line(self, job: Job) -> None:
        """Note that a job with gates joins or leaves its line."""
        name = job.spec.queue, job.spec.lane, self.specs.gates_text(job.gates)
        if self._is_keeper:
            self.lines.touch_line(name)
        else:
            self._stirred.touch(name)

    def free_gates(self, keys: Sequence[str]) -> None:
        """Note that permits of gates are back."""
        if self._is_keeper:
            self.lines.free(keys)
        else:
            self._stirred.open(keys)

    def keep_order(self, *, wait: bool = True) -> bool:
        """Become the one who keeps lines, gates and tags until the transaction is over; False: another does.

        What others have left to whoever does that is taken up.
        """
        if self._is_keeper:
            return True
        kept_at = self.sql.keep_order(wait=wait)
        if kept_at is None:
            return False
        # The transaction may have waited since it began. To go by an earlier time than the keeper before is
        # to see the clock set back, which shortens what gates have left to wait.
        self.now = max(self.now, kept_at)
        self._is_keeper = True
        for lines, gates in (take_stirred(self.sql), self._stirred.take()):
            for name in lines:
                self.lines.touch_line(name)
            if gates:
                self.lines.free(gates)
        self._tag_others()
        return True

    def _tag_others(self) -> None:
        """Give those their sort keys who have become ready while nobody kept the order."""
        for job in self.read(UNTAGGED, (STEP_LIMIT,)):
            self._untagged.append(job)
            self._dirty[job.seq] = job
            if job.gates:
                self.touch_line(job)
        self.tag_ready()

    @property
    def lines(self) -> Lines:
        """The lines of jobs with gates that it touches; whoever asks for them keeps the order."""
        self.keep_order()
        if self._lines is None:
            self._lines = Lines(self.sql, self.specs, now=self.now, hints=self.hints)
            self._lines.is_claim_ahead = self._is_claim_ahead
        return self._lines

    @property
    def has_ready_lines(self) -> bool:
        """Whether it has lines that wait nowhere and are not written yet."""
        return self._lines is not None and bool(self._lines.ready_queues())

    def begin_claim(self) -> None:
        """Keep lines unwritten until `end_claim`, since a claim comes next."""
        self._is_claim_ahead = True

    def end_claim(self) -> bool:
        """Write the lines; return whether there was any to look at."""
        self._is_claim_ahead = False
        if self._lines is None:
            return False
        self._lines.is_claim_ahead = False
        self._lines.settle()
        return True

    @property
    def tags(self) -> Tags:
        """What gives tenants' jobs their sort keys."""
        if self._tags is None:
            self._tags = Tags(self.sql)
        return self._tags

    # reading

    def take(self, row: Row) -> Job:
        """Return the record of a row of `betimes_live`, the one of before if it was loaded before."""
        job = self.jobs.get(row[0])
        if job is None:
            job = self.specs.job(row)
            self.jobs[job.seq] = job
            if row[-1]:
                self.awaited.add(job.seq)
        return job

    def read(self, query: Records, values: Row) -> list[Job]:
        """Return the live jobs that a query answers with, in its order."""
        take = self.take
        return [take(row) for row in query.read(self.sql, values)]

    def refer(self, references: Iterable[Job], *, if_free: bool = False) -> dict[int, Job]:
        """Load live jobs of which references are at hand; return all that are loaded.

        With `if_free`, those are left out that another transaction has locked; otherwise, it waits for them.
        """
        given = {job.seq: job for job in references if job.seq not in self.jobs}
        states = STATES_IF_FREE if if_free and not self.sql.is_alone else STATES_BY_SEQ
        for state in states.read(self.sql, (array(given),)):
            seq = state[0]
            self.jobs[seq] = self.specs.current(given[seq], state)
            if state[-1]:
                self.awaited.add(seq)
        return self.jobs

    def load(self, seqs: Iterable[int], *, if_free: bool = False) -> dict[int, Job]:
        """Load live jobs by number, those not loaded yet with one look, and return all that are loaded.

        `if_free`: as for `refer`.
        """
        wanted = [seq for seq in seqs if seq not in self.jobs]
        if wanted:
            records = LIVE_IF_FREE if if_free and not self.sql.is_alone else LIVE_BY_SEQ
            self.read(records, (array(wanted),))
        return self.jobs

    def ended(self, seqs: Sequence[int], *, as_they_are: bool = False) -> dict[int, Job]:
        """Read ended jobs by number; with `as_they_are`, also those that another transaction has locked."""
        if not seqs:
            return {}
        records = ENDED_AS_THEY_ARE if as_they_are and not self.sql.is_alone else ENDED_BY_SEQ
        return {row[0]: self.specs.job(row) for row in records.read(self.sql, (array(seqs),))}

    def version(self, seq: int) -> Job | None:
        """Return one version, live or ended."""
        return self.load((seq,)).get(seq) or self.ended((seq,)).get(seq)

    def newest(self, job_id: str) -> Job | None:
        """Return the newest version of an id, live or ended."""
        live = NEWEST_LIVE.read(self.sql, (job_id,))
        ended = NEWEST_ENDED.read(self.sql, (job_id,))
        if live and (not ended or live[0][0] > ended[0][0]):
            return self.take(live[0])
        return self.specs.job(ended[0]) if ended else None

    # changing

    def apply(self, job: Job, event: Event, *, is_left_running: bool = False) -> Transition:
        """Carry out one event on a loaded job alone; `settle` sees to those that wait for it.

        Args:
            job: the job's record.
            event: what happens to it.
            is_left_running: its code may run on, although its job does not: its permits are held until then.

        Raises:
            IllegalTransition: nothing has changed.
        """
        step = decide(job, event)
        if job.gates:
            self._pass_gates(job, step, is_left_running=is_left_running)
        enter(job, step)
        self._note(job, step.before)
        return step

    def _pass_gates(self, job: Job, step: Transition, *, is_left_running: bool) -> None:
        """Before the step: note that a job with gates moves in its line, or leaves its permits."""
        before, after = step.before, step.after
        if before is READY or after is READY:
            self.touch_line(job)
        if before is RUNNING and after is not RUNNING:
            if is_left_running:
                text = self.specs.gates_text(job.gates)
                self._permits.append((job.seq, job.fence, job.worker, text, job.started_at))
            else:
                self.free_gates(job.gates)

    def _note(self, job: Job, before: JobStatus) -> None:
        """Have a job written that has left one status for another."""
        after = job.status
        self._dirty[job.seq] = job
        if is_untagged(job, after):
            self._untagged.append(job)
        if after is before:
            return
        self.tally.move(job.spec.queue, before, after)
        if before is BLOCKED:
            self._unblocked.append(job.seq)
        if after in TERMINAL:
            self._ended.append(job)
            if job.fire is not None:
                self.ends_of_fires.append(job)

    def move(self, job: Job, event: Event, *, is_left_running: bool = False) -> Transition:
        """Carry out one event, keep it among the changes, and settle what follows from it."""
        step = self.apply(job, event, is_left_running=is_left_running)
        self.changes.append(event_of(job, step))
        if self._ended:
            self.settle()
        return step

    def settle(self) -> None:
        """Release or cancel what waited for the jobs that have ended, and so on down; without recursion."""
        while self._ended:
            ended = {job.seq: job for job in self._ended if job.seq in self.awaited}
            self._ended.clear()
            if ended and (left := self._settle_one_level(ended)):
                note_unsettled(self.sql, {seq: ended[seq] for seq in left}, self.now)
                self.hints.add(Hint.WORK)

    def _settle_one_level(self, ended: Mapping[int, Ended]) -> set[int]:
        """Count the ended off those that wait for them; who has more to wait for need not even be read.

        Returns those of them for which somebody still waits, whom another transaction has locked.
        """
        edges, left = take_edges(self.sql, ended)
        counted = Counter(child for _, child, _ in edges)
        waiting = {child for (child,) in self.sql.execute(STILL_WAITING, (array(counted),))}
        waiting -= {child for parent, child, need in edges if not is_met(need, parent.status)}
        unread = [child for child in counted if child not in waiting and child not in self.jobs]
        jobs = self.load(unread)
        for child in unread:
            if child in jobs and jobs[child].status is BLOCKED:
                jobs[child].unmet += counted[child]
        for parent, child, need in edges:
            job = jobs.get(child)
            if job is None or job.status is not BLOCKED:
                continue
            event = settle(job, need, parent, self.now)
            if event is not None:
                self.changes.append(event_of(job, self.apply(job, event)))
        return left

    def settle_left(self) -> Micros | None:
        """Tell those that could not be told before of jobs' ends, as far as they can be now.

        Returns the latest end of which somebody is still to be told; None: there is no such.
        """
        if self.sql.is_alone or not (noted := unsettled(self.sql, STEP_LIMIT)):
            return None
        left = self._settle_one_level(noted)
        forget_unsettled(self.sql, [seq for seq in noted if seq not in left])
        self.settle()
        return max((noted[seq].ended_at for seq in left), default=None)

    # writing

    def flush(self) -> None:
        """Write what has changed since the last time."""
        self.tag_ready()
        if self._dirty:
            self._write_jobs(self._dirty.values())
            self._dirty = {}
        if self._unblocked:
            self.sql.execute(DELETE_DEPENDENCIES, (array(self._unblocked),))
            self._unblocked = []
        if self._permits:
            KEEP_PERMIT.write(self.sql, self._permits)
            self._permits = []
        if self._tags is not None:
            self._tags.write()
        if self._lines is not None:
            self._lines.settle()
        if self._stirred.write(self.sql):
            self.hints.add(Hint.WORK)
        self.tally.write(self.sql)

    def tag_ready(self) -> None:
        """Give those who have become ready for the first time their sort keys, in that order."""
        if self._untagged and self._is_keeper:  # otherwise, the next keeper does
            self.tags.tag(self._untagged)
        self._untagged = []

    def _write_jobs(self, jobs: Iterable[Job]) -> None:
        changed: list[Row] = []
        finished: list[Row] = []
        gone: list[int] = []
        for job in jobs:
            if job.finished_at is None:
                changed.append(changed_row(job))
                if job.status is not RUNNING:
                    self.hints.add(Hint.WORK)
            else:
                finished.append(finished_row(job))
                gone.append(job.seq)
                self.jobs.pop(job.seq, None)
        sql = self.sql
        if changed:
            UPDATE_JOB.write(sql, changed)
        if finished:
            FINISH_JOB.write(sql, finished)
            sql.execute(DELETE_JOB, (array(gone),))
            self.hints.add(Hint.ENDED)
