"""What must hold of each submit: one job for one request, however often it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.simulation.lives import Life
from tests.simulation.reckoning import Reckoning
from tests.simulation.tally import Met

from betimes.core.dependencies import is_met
from betimes.core.job import Job, JobStatus, Need, Terms

BLOCKED, RUNNING = JobStatus.BLOCKED, JobStatus.RUNNING


class Arrivals:
    """Enters new jobs into the model, and knows again what was submitted before."""

    def __init__(self, model: Reckoning) -> None:
        self.model = model
        self._told: dict[tuple[str, ...], int] = {}
        self._first_new = 0

    def take(self, asked: Sequence[tuple[Job, Terms | None]], kept: Sequence[Job], sent_at: int) -> None:
        """Follow one submit: what was asked, by position, and what was kept."""
        batch = {job.id: record.seq for (job, _), record in zip(asked, kept, strict=True)}
        self._first_new = min((job.seq for job in kept if job.seq not in self.model.lives), default=0)
        for (job, asked_for), record in zip(asked, kept, strict=True):
            terms = asked_for or Terms()
            before = self._known(job, terms)
            if before is not None and record.seq != before:
                self.model.fail(f"submitted again, #{before} ({job.id}) became #{record.seq}")
            elif before is None and record.seq in self.model.lives:
                self.model.fail(f"{job.id} is new, and was answered with #{record.seq}")
            elif before is None:
                self._begin(job, terms, record, batch, sent_at)

    def _known(self, job: Job, terms: Terms) -> int | None:
        tally, lives = self.model.tally, self.model.lives
        if terms.key is not None and (seq := self._told.get(("key", terms.key))) is not None:
            tally[Met.KEY_FOUND] += 1
            return seq
        label = ("token", job.id, terms.token or "") if terms.named else ("id", job.id)
        seq = self._told.get(label)
        if seq is not None:
            tally[Met.SUBMIT_REPEATED] += 1
            tally[Met.SUBMIT_REPEATED_LATE] += lives[seq].status.is_terminal
        return seq

    def _begin(self, job: Job, terms: Terms, record: Job, batch: Mapping[str, int], sent_at: int) -> None:
        lives, seq = self.model.lives, record.seq
        self._told["token", job.id, terms.token or ""] = seq
        if terms.named:
            self.model.tokens.add(terms.token)
        else:
            self._told["id", job.id] = seq
        if terms.key is not None:
            self._told["key", terms.key] = seq
        life = Life(
            seq=seq,
            id=job.id,
            spec=job.spec,
            # Under fair share it is the store that gives it.
            sort_key=record.sort_key if self.model.has_tenants else job.sort_key,
            expires_at=job.expires_at,
            status=BLOCKED,
            earliest=job.run_at,
            gates=job.gates,
            tenant=None if job.tenant is None else job.tenant.name,
            default_attempts=self.model.attempts.get(job.spec.task, 1),
        )
        self._take_over(life, terms)
        for what, need in terms.depends_on:
            self._wait_for(life, self._parent(job, what, batch), need, sent_at)
        lives.add(life)

    def _parent(self, job: Job, what: Job | str, batch: Mapping[str, int]) -> int:
        """Return the dependency that is meant: a name may mean one of the batch, but never the job itself."""
        if not isinstance(what, str):
            return what.seq or batch[what.id]
        if what in batch and what != job.id:
            return batch[what]
        # Its own name means the newest version that was there before the batch.
        return max(life.seq for life in self.model.lives.versions(what) if life.seq < self._first_new)

    def _take_over(self, life: Life, terms: Terms) -> None:
        for old in self.model.lives.versions(life.id):
            if old.status.is_terminal:
                continue
            if not terms.replace:
                self.model.fail(f"{life} was taken while {old} lives")
            elif old.status is RUNNING:
                old.is_superseded = True
                life.unmet[old.seq] = Need.ENDED
                self.model.tally[Met.REPLACED_RUNNING] += 1
            else:
                self.model.tally[Met.REPLACED_WAITING] += 1

    def _wait_for(self, life: Life, parent: int, need: Need, sent_at: int) -> None:
        if parent not in self.model.lives:  # of the same batch, behind it
            life.unmet[parent] = need
            return
        other = self.model.lives[parent]
        met = is_met(need, other.status)
        if met is None:
            if life.unmet.get(parent) is not Need.COMPLETED:
                life.unmet[parent] = need
        elif not met:
            life.is_lost = True
            life.unmet[parent] = need
        if other.ended_at is not None and other.ended_at >= sent_at:
            self.model.tally[Met.ENDED_DURING_SUBMIT] += 1
