"""Taking new jobs into memory: first everything that can refuse them is looked at, then they are kept."""

from __future__ import annotations

from collections.abc import Sequence

from betimes.core.dependencies import in_order, is_met
from betimes.core.events import DependencyFailed, Superseded
from betimes.core.job import Job, JobEvent, JobStatus, Micros, Need
from betimes.core.lifecycle import place
from betimes.errors import ConfigurationError, DuplicateJob, UnknownJob
from betimes.stores.memory.gates import Gates
from betimes.stores.memory.history import History
from betimes.stores.memory.moves import Moves

RUNNING, BLOCKED = JobStatus.RUNNING, JobStatus.BLOCKED


class Submission:
    """One call of `submit`. `check` changes nothing and may raise; `keep` cannot fail."""

    def __init__(self, jobs: Sequence[Job], history: History, gates: Gates, now: Micros) -> None:
        """Prepare to take these jobs."""
        self._gates = gates
        self._history = history
        self._now = now
        self._given = jobs
        self._kept: list[Job] = []
        self._new: list[Job] = []
        self._fresh: set[Job] = set()
        self._names_ahead = False
        self._named: dict[str, Job] = {}
        self._keys: dict[str, tuple[Job, bytes]] = {}
        self._answers: dict[Job, Job] = {}
        self._needs: dict[Job, list[tuple[Job, Need]]] = {}

    def check(self) -> None:
        """Find for each job whether it is new or known, and resolve its dependencies.

        Raises:
            DuplicateJob, UnknownJob, DependencyCycle, ConfigurationError: as `Store.submit`; nothing has
            changed.
        """
        for job in self._given:
            known = self._known(job)
            if known is None:
                self._gates.check(job)
                self._new.append(job)
                self._named[job.id] = job
            else:
                self._answers[job] = known
            self._kept.append(known or job)
        self._fresh.update(self._new)
        for job in self._new:
            if job.terms is not None and job.terms.depends_on:
                self._needs[job] = [(self._resolve(job, what), need) for what, need in job.terms.depends_on]
        if self._names_ahead:
            names = {job.id: [parent.id for parent, _ in needs] for job, needs in self._needs.items()}
            in_order(
                {name: [parent for parent in parents if parent != name] for name, parents in names.items()}
            )

    def _known(self, job: Job) -> Job | None:
        terms = job.terms
        if terms is not None and terms.key is not None:
            known = self._keys.get(terms.key) or self._history.keyed(terms.key, self._now)
            if known is not None:
                if known[1] != terms.key_digest:
                    raise ConfigurationError(
                        f"key {terms.key!r} stands for job {known[0].id} with another task or other "
                        "arguments; use another key for another request"
                    )
                return known[0]
            self._keys[terms.key] = (job, terms.key_digest)
        if job.id in self._named and not (terms is not None and terms.replace):
            raise DuplicateJob(f"two jobs of this batch have the id {job.id!r}", job_id=job.id)
        before = self._history.find(job.id)
        return None if before is None else self._version_of(job, before)

    def _version_of(self, job: Job, newest: Job) -> Job | None:
        """Return the version that this submission made before; None: the id may have a new one."""
        terms = job.terms
        versions = self._history.versions(job.id)
        if job in versions:
            return job
        if terms is None or not terms.named:
            return newest
        for version in versions:
            if terms.token is not None and self._history.token(version) == terms.token:
                return version
        # An older version can be live though the newest has ended: it runs still, or was taken back by an
        # operator.
        live = [version for version in versions if not version.status.is_terminal]
        if live and not terms.replace:
            status = live[-1].status.name
            raise DuplicateJob(
                f"job {job.id!r} is {status}: wait for it, choose another id, or pass replace=True",
                job_id=job.id,
            )
        return None

    def _resolve(self, job: Job, what: Job | str) -> Job:
        if isinstance(what, str):
            found = self._named.get(what) if what != job.id else None
            self._names_ahead = self._names_ahead or found is not None
            found = found or self._history.find(what)
        else:
            found = self._answers.get(what, what)
            if found.seq == 0 and found not in self._fresh:
                found = None
        if found is None:
            name = what if isinstance(what, str) else what.id
            raise UnknownJob(f"job {job.id!r} depends on {name!r}, which does not exist", job_id=name)
        return found

    def keep(self, moves: Moves) -> list[Job]:
        """Keep the new jobs; return, by position, the job that each call has made or found."""
        last = moves.last_seq
        for job in self._new:
            last += 1
            job.seq = last
        moves.last_seq = last
        for job in self._new:
            terms = job.terms
            if terms is None:
                self._history.add(job)
                moves.arrive(job, place(job, self._now), self._now)
            else:
                self._keep_on_terms(job, moves)
        return self._kept

    def _keep_on_terms(self, job: Job, moves: Moves) -> None:
        terms = job.terms
        assert terms is not None
        job.terms = None
        needs = self._needs.get(job, [])
        job.depends_on = tuple(dependency.id for dependency, _ in needs)
        if terms.replace:
            needs = needs + self._take_over(job, moves)
        self._history.add(job)
        if terms.key is not None:
            job.key = terms.key
            self._history.remember_key(terms.key, job, terms.key_digest, terms.key_until)
        if terms.named and terms.token is not None:
            self._history.remember_token(job, terms.token)
        self._link(job, needs, moves)

    def _take_over(self, job: Job, moves: Moves) -> list[tuple[Job, Need]]:
        """End the versions that have not started; what runs is waited for, and not retried."""
        running = []
        for old in self._history.versions(job.id):
            if old.status is RUNNING:
                running.append((old, Need.ENDED))
            if not old.status.is_terminal:
                moves.move(old, Superseded(self._now))
        return running

    def _link(self, job: Job, needs: list[tuple[Job, Need]], moves: Moves) -> None:
        lost: Job | None = None
        for dependency, need in needs:
            met = is_met(need, dependency.status)
            if met is None:
                job.unmet += 1
                moves.dependents.setdefault(dependency.seq, []).append((job, need))
            elif not met:
                lost = lost or dependency
        if lost is not None:
            job.unmet = max(job.unmet, 1)
        moves.arrive(job, place(job, self._now), self._now)
        if lost is not None:
            moves.move(job, DependencyFailed(self._now, lost.id))


def submit(
    jobs: Sequence[Job], history: History, gates: Gates, moves: Moves, now: Micros
) -> tuple[list[Job], list[JobEvent]]:
    """Take a batch, all or none."""
    submission = Submission(jobs, history, gates, now)
    submission.check()
    kept = submission.keep(moves)
    return kept, moves.take_changes()
