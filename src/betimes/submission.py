"""From a bound call to the new job that a store takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from random import Random
from typing import Any

from betimes.core.dependencies import in_order
from betimes.core.job import FireKey, Job, JobSpec, Micros, Need, Terms
from betimes.core.schedule import ScheduleRecord
from betimes.core.schedule_terms import ScheduleTerms
from betimes.core.shares import UNTAGGED
from betimes.core.strategy import FairShareStrategy, PriorityStrategy, SchedulingStrategy, check_key
from betimes.core.task import Registry
from betimes.core.traits import Traits
from betimes.errors import BetimesError, ConfigurationError, UnknownJob
from betimes.tasks import BoundJob, SubmitOptions


class JobMaker:
    """Makes new jobs: ids, instants and sort keys.

    Args:
        now: the store's clock.
        new_id: makes an id, given the instant.
        strategy: gives each job its key.
        rng: for the jitter of schedules.
        tasks: the registry; it may grow.
    """

    __slots__ = (
        "_is_plain",
        "_is_shared",
        "_new_id",
        "_now",
        "_rng",
        "_seen",
        "_shares",
        "_strategy",
        "_tasks",
        "_traits",
    )

    def __init__(
        self,
        now: Callable[[], Micros],
        new_id: Callable[[Micros], str],
        strategy: SchedulingStrategy,
        rng: Random,
        tasks: Registry,
    ) -> None:
        self._tasks = tasks
        self._traits: dict[str, Traits] = {}
        self._seen = 0
        self._now = now
        self._new_id = new_id
        self._strategy = strategy
        self._rng = rng
        self._is_plain = type(strategy) is PriorityStrategy
        self._is_shared = type(strategy) is FairShareStrategy
        self._shares = strategy if isinstance(strategy, FairShareStrategy) else None

    def make(
        self, spec: JobSpec, payload: bytes, options: SubmitOptions | None, *, after: Iterable[Job] = ()
    ) -> Job:
        """Make the job of one call.

        Args:
            spec: what the job has in common with others.
            payload: its arguments.
            options: the rest of its options; None: none was given.
            after: new jobs of the same batch that it depends on, beside those its options name.

        Raises:
            ConfigurationError: the strategy raised, or its key does not fit.
        """
        now = self._now()
        if options is None and not after:
            job = Job(self._new_id(now), spec, payload, now, now)
        else:
            job = self._on_terms(spec, payload, options or SubmitOptions(), now)
            self._depend(job, options, after)
        # The keys of the library's own strategies, without the checks that a user's strategy needs.
        if self._is_plain:
            job.sort_key = -spec.priority
        else:
            job.sort_key = UNTAGGED if self._is_shared else self._key(job)
        if len(self._tasks) != self._seen:
            self._look_at_tasks()
        if self._traits:
            self._restrain(job)
        return job

    def order(self, job: Job) -> None:
        """Give a job, as a store keeps it, its place in the strategy's order; its gates stay as they are."""
        job.sort_key = self._key(job)
        self._look_at_tasks()
        job.tenant = None
        if self._shares is not None:
            traits = self._traits.get(job.spec.task)
            job.tenant = self._shares.tenant(None if traits is None else traits.tenant(job.payload))

    def forget(self, name: str) -> None:
        """Know no more of a task that was withdrawn; one that takes its name is looked at anew."""
        self._traits.pop(name, None)
        self._seen = -1

    def _look_at_tasks(self) -> None:
        """Find out whose jobs have gates or a tenant; of most programs, none."""
        seen = len(self._tasks)
        by = None if self._shares is None else self._shares.by
        for name, task in list(self._tasks.items()):
            if name not in self._traits and (task.gates or by is not None):
                self._traits[name] = Traits(task, by)
        # Last: another thread that sees the number goes by the traits.
        self._seen = seen

    def _restrain(self, job: Job) -> None:
        """Name the gates that a job must pass, and its tenant."""
        traits = self._traits.get(job.spec.task)
        if traits is not None:
            job.gates = traits.gates(job.payload)
        if self._shares is not None:
            job.tenant = self._shares.tenant(None if traits is None else traits.tenant(job.payload))

    def make_run(self, record: ScheduleRecord, terms: ScheduleTerms, fire: FireKey) -> Job:
        """Make the job of one fire of a schedule.

        Raises:
            ConfigurationError: as `make`.
        """
        now = self._now()
        jitter = self._rng.randint(0, terms.jitter_us) if terms.jitter_us and not fire.by_hand else 0
        run_at = fire.at + jitter
        # However late it is made, and however far the jitter moves it, it may wait as long as was said.
        expires_at = None if terms.expires_us is None else max(now, run_at) + terms.expires_us
        job = Job(self._new_id(now), record.spec, record.payload, now, run_at, expires_at=expires_at)
        job.fire = fire
        job.sort_key = -record.spec.priority if self._is_plain else self._key(job)
        self._look_at_tasks()
        self._restrain(job)
        if record.spec.task not in self._tasks:
            job.gates = terms.gates
        return job

    def _on_terms(self, spec: JobSpec, payload: bytes, options: SubmitOptions, now: Micros) -> Job:
        expires_at = options.expires_at
        if expires_at is None and options.expires_us is not None:
            expires_at = now + options.expires_us
        return Job(
            options.job_id or self._new_id(now),
            spec,
            payload,
            now,
            now + options.delay_us if options.run_at is None else options.run_at,
            expires_at=expires_at,
            terms=self._terms(spec, payload, options, now),
        )

    def _terms(self, spec: JobSpec, payload: bytes, options: SubmitOptions, now: Micros) -> Terms | None:
        if not (options.depends_on or options.is_per_job):
            return None
        return Terms(
            named=options.job_id is not None,
            token=None if options.job_id is None else self._new_id(now),
            replace=options.replace,
            key=options.key,
            key_until=now + options.key_for_us,
            key_digest=b"" if options.key is None else _digest(spec.task, payload),
            depends_on=tuple(
                (each if isinstance(each, str) else each._job, options.need)  # noqa: SLF001
                for each in options.depends_on
            ),
        )

    @staticmethod
    def _depend(job: Job, options: SubmitOptions | None, after: Iterable[Job]) -> None:
        need = Need.COMPLETED if options is None else options.need
        more = tuple((other, need) for other in after)
        if more:
            terms = job.terms or Terms()
            job.terms = replace(terms, depends_on=terms.depends_on + more)

    def _key(self, job: Job) -> int:
        try:
            return check_key(self._strategy.key(job), strategy=self._strategy.name)
        except BetimesError:
            raise
        except Exception as error:
            raise ConfigurationError(
                f"strategy {self._strategy!r} raised {type(error).__name__}: {error}; the job was not "
                "submitted"
            ) from error


def _digest(task: str, payload: bytes) -> bytes:
    return sha256(task.encode() + b"\0" + payload).digest()


def order_graph(graph: Mapping[str, tuple[BoundJob[Any], tuple[str, ...]]]) -> list[str]:
    """Sort a graph's names so that each stands behind those it depends on.

    Args:
        graph: name → the bound call, and the names it depends on.

    Raises:
        UnknownJob: a name stands for nothing in the graph.
        DependencyCycle: the names wait for each other in a circle.
    """
    for name, (_, depends_on) in graph.items():
        for other in depends_on:
            if other not in graph:
                raise UnknownJob(f"{name!r} depends on {other!r}, which is not in the graph", job_id=other)
    return in_order({name: depends_on for name, (_, depends_on) in graph.items()})
