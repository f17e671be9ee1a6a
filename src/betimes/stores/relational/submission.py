"""Taking jobs that ask for more than to be kept: names, replacement, keys, dependencies.

A record given by a caller is not touched before the commit: a turn that is rolled back must leave it as it
was, so that it can be submitted again. The jobs are kept one by one, each with all that follows from it,
in the order given; numbers are given out before, so that a job may wait for one that stands behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from betimes.core.dependencies import in_order, is_met
from betimes.core.events import DependencyFailed, Superseded
from betimes.core.job import Job, JobEvent, JobStatus, Need, Terms
from betimes.core.lifecycle import place
from betimes.core.limits import named
from betimes.errors import ConfigurationError, DuplicateJob, UnknownJob
from betimes.ports import Hint
from betimes.stores.relational.arrivals import INSERT_JOB, known_ids, undeclared
from betimes.stores.relational.rows import array
from betimes.stores.relational.statements import ManyRows, Records, Row, statement
from betimes.stores.relational.tags import is_untagged
from betimes.stores.relational.turn import Turn

READY, RUNNING = JobStatus.READY, JobStatus.RUNNING

LIVE_BY_ID = Records("live_by_id")
BY_TOKEN = statement("by_token")
KEY_BY_NAME = statement("key_by_name")
REMEMBER_KEY = statement("remember_key")
ADD_DEPENDENCY = ManyRows("add_dependency")
MARK_AWAITED = statement("mark_awaited")

NO_TERMS = Terms()
NO_WAITS: Mapping[int, Sequence[Job]] = MappingProxyType({})
SETTLED_AT_SUBMIT = (
    "seq",
    "status",
    "run_at",
    "sort_key",
    "unmet",
    "depends_on",
    "key",
    "reason",
    "finished_at",
    "terms",
)
"""The fields of a record that a submit fills in."""


class Submission:
    """One call of `submit`; it works on copies, inside a savepoint: what it raises leaves nothing behind.

    Args:
        turn: the operation's view of the transaction.
        jobs: the records given.
        waits: by the identity of a record, live jobs whose end it waits for besides what its terms say.
    """

    def __init__(
        self, turn: Turn, jobs: Sequence[Job], waits: Mapping[int, Sequence[Job]] = NO_WAITS
    ) -> None:
        self._turn = turn
        self._given = jobs
        self._waits = waits
        self._new: list[tuple[Job, Terms]] = []
        self._named: dict[str, Job] = {}
        self._keys: dict[str, tuple[Job, bytes]] = {}
        # By the identity of a given record: the copy or the known job that stands for it; and back.
        self._standing: dict[int, Job] = {}
        self._origin: dict[int, Job] = {}
        self._known_ids: set[str] = set()
        self._awaited: set[int] = set()
        self._names_ahead = False
        # What is to be written with the next statement: few statements, however many jobs.
        self._rows: list[Row] = []
        self._edges: list[tuple[int, int, str]] = []

    def run(self) -> None:
        """Keep the jobs, or raise as `Store.submit` does."""
        self._refuse_undeclared_gates()
        self._turn.sql.lock_names(self._names())
        self._known_ids = known_ids(self._turn, {job.id for job in self._given})
        for job in self._given:
            self._standing[id(job)] = self._known(job) or self._copy(job)
        numbers = self._turn.sql.numbers(len(self._new))
        for seq, (job, _) in zip(numbers, self._new, strict=True):
            job.seq = seq
            self._turn.jobs[seq] = job
        parents = self._parents()
        needs = [self._needs(job, terms, parents) for job, terms in self._new]
        if self._names_ahead:
            self._refuse_circles()
        for (job, terms), needed in zip(self._new, needs, strict=True):
            self._keep(job, terms, needed)
        self._write()
        if self._awaited:
            # Last, when every parent has its row: a job may wait for one that stands behind it.
            self._turn.sql.execute(MARK_AWAITED, (array(self._awaited),))

    def acknowledge(self) -> tuple[list[Job], list[JobEvent]]:
        """Write what became of the jobs into the records given; return by position what was made or found."""
        kept = []
        for given in self._given:
            standing = self._standing[id(given)]
            origin = self._origin.get(id(standing))
            if origin is given:
                for name in SETTLED_AT_SUBMIT:
                    setattr(given, name, getattr(standing, name))
            kept.append(origin or standing)
        return kept, self._turn.changes

    def numbers(self) -> list[int]:
        """Return by position the number of the job that was made or found."""
        return [self._standing[id(given)].seq for given in self._given]

    def _names(self) -> set[str]:
        """Return what only one at a time may look up and then take: ids given by users, and keys."""
        terms = [(job.id, job.terms) for job in self._given if job.terms is not None]
        ids = {f"id {job_id}" for job_id, each in terms if each.named}
        return ids | {f"key {each.key}" for _, each in terms if each.key is not None}

    def _refuse_undeclared_gates(self) -> None:
        found = undeclared(self._turn, self._given)
        if found is not None:
            job, key = found
            kind, name, _ = named(key)
            raise ConfigurationError(
                f"job {job.id!r} of {job.spec.task} names the {kind.value} {name!r}, whose terms the store "
                "does not know; declare it first"
            )

    def _copy(self, job: Job) -> Job:
        copy = job.copy()
        copy.terms = None
        terms = job.terms or NO_TERMS
        if (live := self._waits.get(id(job))) is not None:
            ends = tuple((other, Need.ENDED) for other in live)
            terms = replace(terms, depends_on=(*terms.depends_on, *ends))
        self._new.append((copy, terms))
        self._named[copy.id] = copy
        self._origin[id(copy)] = job
        if terms.key is not None:
            self._keys[terms.key] = (copy, terms.key_digest)
        return copy

    # looking

    def _known(self, job: Job) -> Job | None:
        """Return the job that this submission made before, or that its key stands for; None: it is new."""
        terms = job.terms or NO_TERMS
        if terms.key is not None and (found := self._keyed(terms.key, terms.key_digest)) is not None:
            return found
        if job.seq and (mine := self._turn.version(job.seq)) is not None and mine.id == job.id:
            return mine
        if job.id in self._named and not terms.replace:
            raise DuplicateJob(f"two jobs of this batch have the id {job.id!r}", job_id=job.id)
        if job.id not in self._known_ids:
            return None
        if not terms.named:
            return self._turn.newest(job.id)
        if terms.token is not None:
            row = self._turn.sql.execute(BY_TOKEN, (job.id, terms.token)).fetchone()
            if row is not None:
                return self._turn.version(row[0])
        live = self._turn.read(LIVE_BY_ID, (job.id,))
        if live and not terms.replace:
            status = live[-1].status.name
            raise DuplicateJob(
                f"job {job.id!r} is {status}: wait for it, choose another id, or pass replace=True",
                job_id=job.id,
            )
        return None

    def _keyed(self, key: str, digest: bytes) -> Job | None:
        known = self._keys.get(key)
        if known is None:
            row = self._turn.sql.execute(KEY_BY_NAME, (key, self._turn.now)).fetchone()
            found = None if row is None else self._turn.version(row[0])
            if row is None or found is None:
                return None
            known = found, row[1]
        if known[1] != digest:
            raise ConfigurationError(
                f"key {key!r} stands for job {known[0].id} with another task or other arguments; "
                "use another key for another request"
            )
        return known[0]

    def _parents(self) -> dict[int, Job]:
        """Read, with one look, the jobs that are not of this batch and that records given refer to."""
        references = [
            what
            for _, terms in self._new
            for what, _ in terms.depends_on
            if isinstance(what, Job) and what.seq and id(what) not in self._standing
        ]
        if not references:
            return {}
        live = self._turn.refer(references)
        return live | self._turn.ended([what.seq for what in references if what.seq not in live])

    def _needs(self, job: Job, terms: Terms, parents: dict[int, Job]) -> dict[int, tuple[Job, Need]]:
        """Resolve what a job depends on, by number; of two needs of one job, the stricter counts."""
        needs: dict[int, tuple[Job, Need]] = {}
        names = []
        for what, need in terms.depends_on:
            if isinstance(what, str):
                name, parent = what, self._named_parent(job, what)
            else:
                name, parent = what.id, self._standing.get(id(what)) or parents.get(what.seq)
            if parent is None:
                raise UnknownJob(f"job {job.id!r} depends on {name!r}, which does not exist", job_id=name)
            names.append(parent.id)
            if parent.seq not in needs or need is Need.COMPLETED:
                needs[parent.seq] = parent, need
        job.depends_on = tuple(names)
        return needs

    def _named_parent(self, job: Job, name: str) -> Job | None:
        found = self._named.get(name) if name != job.id else None
        self._names_ahead = self._names_ahead or found is not None
        return found or self._turn.newest(name)

    def _refuse_circles(self) -> None:
        """Names can refer ahead within the batch; records cannot, unless the caller has sorted them."""
        graph = {
            job.id: [what if isinstance(what, str) else what.id for what, _ in terms.depends_on]
            for job, terms in self._new
        }
        in_order({name: [parent for parent in parents if parent != name] for name, parents in graph.items()})

    # keeping

    def _keep(self, job: Job, terms: Terms, needs: dict[int, tuple[Job, Need]]) -> None:
        turn = self._turn
        if terms.replace:
            self._take_over(job, needs)
        if terms.key is not None:
            job.key = terms.key
            turn.sql.execute(REMEMBER_KEY, (terms.key, job.seq, terms.key_digest, terms.key_until))
        lost = self._link(job, needs)
        job.status = place(job, turn.now)
        if is_untagged(job, job.status):
            turn.tag_ready()  # those first who were released by what it replaces
            if turn.sql.is_alone:  # otherwise, the next keeper sees to it
                turn.tags.tag([job])
        if job.gates and job.status is READY:
            turn.touch_line(job)
        # An id that a user has given has a token, which tells its versions apart; a generated one has none.
        token = (terms.token or f"#{job.seq}") if terms.named else None
        self._rows.append(turn.specs.new_row(job, seq=job.seq, status=job.status, token=token))
        turn.tally.move(job.spec.queue, None, job.status)
        turn.hints.add(Hint.WORK)
        turn.changes.append(JobEvent(job, None, job.status, at_us=turn.now))
        if lost is not None:
            self._write()
            turn.move(job, DependencyFailed(turn.now, lost.id))

    def _write(self) -> None:
        """Write what has gathered; before anything moves, since what moves must be there."""
        turn = self._turn
        INSERT_JOB.write(turn.sql, self._rows)
        ADD_DEPENDENCY.write(turn.sql, self._edges)
        turn.flush()
        self._rows, self._edges = [], []

    def _take_over(self, job: Job, needs: dict[int, tuple[Job, Need]]) -> None:
        """End the versions that have not started; what runs is waited for, and not retried."""
        turn = self._turn
        self._write()
        for old in turn.read(LIVE_BY_ID, (job.id,)):
            if old.status is RUNNING:
                needs.setdefault(old.seq, (old, Need.ENDED))
            turn.move(old, Superseded(turn.now))

    def _link(self, job: Job, needs: dict[int, tuple[Job, Need]]) -> Job | None:
        """Count what is unmet, and return the first job that can never meet it."""
        turn = self._turn
        lost: Job | None = None
        for parent, need in needs.values():
            met = is_met(need, parent.status)
            if met is None:
                job.unmet += 1
                self._edges.append((parent.seq, job.seq, need.value))
                turn.awaited.add(parent.seq)
                self._awaited.add(parent.seq)
            elif not met:
                lost = lost or parent
        if lost is not None:
            job.unmet = max(job.unmet, 1)
        return lost
