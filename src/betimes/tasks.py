"""Tasks as users hold them: still the plain function, and the ways to submit jobs of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, Never, ParamSpec, TypeAlias, TypeVar, cast

from betimes.core.durations import duration_s, duration_us, instant_us
from betimes.core.job import JobSpec, Micros, Need
from betimes.core.options import reject_unknown
from betimes.core.priority import check_priority
from betimes.core.retry import RetryPolicy
from betimes.core.task import TaskDefinition
from betimes.errors import ConfigurationError

if TYPE_CHECKING:
    from betimes.blocking_scheduler import BlockingJob
    from betimes.handles import JobHandle
    from betimes.scheduler import Scheduler

P = ParamSpec("P")
R = TypeVar("R")

Duration: TypeAlias = float | timedelta | str
"""Seconds, a `timedelta`, or text such as `"1h30m"`."""

NAME_LENGTH = 500
"""The most characters of a name, an id, a key or a tag."""

_KEY_FOR_US = 24 * 3600 * 1_000_000


class _Unset:
    """Marks an option that was not given, where None means something."""

    def __repr__(self) -> str:
        return "(not given)"


UNSET: Any = _Unset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """What `using(…)` asks of one submit, beside what is in the spec.

    Attributes:
        delay_us, run_at: the earliest start, relative or absolute; at most one of them.
        depends_on: handles or ids; `need` says what of them.
        job_id, replace: the id, and whether it replaces older versions.
        key, key_for_us: the idempotency key, and how long it is remembered.
        expires_us, expires_at: by when it must have started, relative or absolute.
        conn: the connection in whose transaction it is to be submitted; None: in one of the store's own.
    """

    delay_us: int = 0
    run_at: Micros | None = None
    depends_on: tuple[JobHandle[Any] | str, ...] = ()
    need: Need = Need.COMPLETED
    job_id: str | None = None
    replace: bool = False
    key: str | None = None
    key_for_us: int = _KEY_FOR_US
    expires_us: int | None = None
    expires_at: Micros | None = None
    conn: object = None

    @property
    def is_per_job(self) -> bool:
        """Whether they can hold for one job only."""
        return self.job_id is not None or self.key is not None


@dataclass(frozen=True, slots=True)
class BoundJob(Generic[R]):
    """A task with its arguments, checked and encoded: not a job yet, but all that a submit needs.

    Attributes:
        task: the task's definition.
        spec: what the job has in common with others of the same options.
        options: the rest of the options; None: none was given.
        payload: the arguments as JSON.
    """

    task: TaskDefinition
    spec: JobSpec
    options: SubmitOptions | None
    payload: bytes
    scheduler: Scheduler = field(repr=False, compare=False)


class Submitter(Generic[P, R]):
    """A task with options, ready to be submitted any number of times. Made by `Task.using`."""

    __slots__ = ("_options", "_scheduler", "_spec", "_task")

    def __init__(
        self, scheduler: Scheduler, task: TaskDefinition, spec: JobSpec, options: SubmitOptions | None
    ) -> None:
        self._scheduler = scheduler
        self._task = task
        self._spec = spec
        self._options = options

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> BoundJob[R]:
        """Check and encode the arguments, for `submit_many` and `submit_threadsafe`.

        Raises:
            TypeError: the call does not fit the function's signature.
            PayloadError: an argument cannot be stored.
        """
        return self._bound(self._task.signature.encode(args, kwargs))

    def _bound(self, payload: bytes) -> BoundJob[R]:
        return BoundJob(self._task, self._spec, self._options, payload, self._scheduler)

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, JobHandle[R]]:
        """Submit one job with these arguments; await it for the handle.

        When it returns, the job is stored as durably as the store can.

        Raises:
            TypeError: the call does not fit the function's signature.
            PayloadError: an argument cannot be stored; nothing was written.
            SchedulerClosed: the scheduler is not open, or stopping.
            DuplicateJob, UnknownJob, ConfigurationError: as the options say.

        With `using(conn=…)` it is stored when the connection's transaction commits, by whoever commits it; it
        may be awaited on any event loop.
        """
        payload = self._task.signature.encode(args, kwargs)
        return self._scheduler._submit(self._spec, self._options, payload)  # noqa: SLF001

    def submit_blocking(self, *args: P.args, **kwargs: P.kwargs) -> BlockingJob[R]:
        """Submit one job from code without an event loop; the scheduler is open in another thread.

        With `using(conn=…)` all that touches the connection is done in the calling thread.

        Raises:
            SchedulerClosed: it is not open.
            ConfigurationError: called on the event loop itself, which it would block.
        """
        return self._scheduler._submit_blocking(self.bind(*args, **kwargs))  # noqa: SLF001


class Task(Submitter[P, R]):
    """A registered function. Call it as before, or submit jobs of it.

    Attributes:
        name: stored with its jobs.
        fn: the function itself.
    """

    payload_hint = "code is not stored: pass its `.name`, or the `.id` of a job of it"

    def __init__(self, scheduler: Scheduler, definition: TaskDefinition) -> None:
        options = None if definition.expires_us is None else SubmitOptions(expires_us=definition.expires_us)
        super().__init__(scheduler, definition, definition.spec, options)
        self.name = definition.name
        self.fn: Callable[..., Any] = definition.fn
        update_wrapper(cast("Callable[..., Any]", self), definition.fn)

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        """Call the function itself, here and now."""
        return cast("R", self.fn(*args, **kwargs))

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    def using(
        self,
        *,
        priority: int = UNSET,
        delay: Duration = UNSET,
        run_at: datetime = UNSET,
        depends_on: Iterable[JobHandle[Any] | str] | JobHandle[Any] | str = (),
        on_dependency_failure: str = "cancel",
        job_id: str | None = None,
        replace: bool = False,
        key: str | None = None,
        key_for: Duration = UNSET,
        queue: str = UNSET,
        timeout: Duration | None = UNSET,
        retry: int | RetryPolicy | None = UNSET,
        expires: Duration | datetime | None = UNSET,
        tags: Iterable[str] = (),
        conn: object = None,
        **unknown: Never,
    ) -> Submitter[P, R]:
        """Return the task with options for its next submits.

        Args:
            priority: −1000…1000, larger first.
            delay: how long after the submit it may start; not with `run_at`.
            run_at: the instant from which on it may start; aware.
            depends_on: handles or ids of the jobs that must have ended first.
            on_dependency_failure: `"cancel"`: it is cancelled unless all of them complete; `"run"`: it runs
                once all have ended.
            job_id: its id; a live job of that id is a `DuplicateJob`, unless `replace`.
            replace: it becomes the only version of `job_id` that can start.
            key: idempotency key: a second submit under it returns the first job.
            key_for: how long the key is remembered (24 h).
            queue: where it waits.
            timeout: for each attempt; None: none, whatever the task says.
            retry: a number of attempts or a `RetryPolicy`; None: one attempt.
            expires: a duration or an aware instant; not started by then, it is cancelled. None: never.
            tags: for finding it again.
            conn: a connection of yours to the store's database (an `sqlite3.Connection` to its file; one of
                psycopg or asyncpg; or SQLAlchemy's over these): the job exists if and only if the transaction
                open on it commits. Nothing is told of the submit to listeners, and `result()` of a job that
                was rolled back raises `UnknownJob`.
            unknown: anything else is refused.

        Raises:
            ConfigurationError: an option is wrong; the text names it.
            TypeError: an option is unknown; the text names the nearest.
        """
        reject_unknown(unknown, _OPTIONS, where="using()")
        spec = self._spec_with(priority=priority, queue=queue, timeout=timeout, retry=retry, tags=tags)
        options = SubmitOptions(
            depends_on=_dependencies(depends_on, self._scheduler),
            need=_need(on_dependency_failure),
            job_id=_text(job_id, "job_id"),
            replace=_replaces(replace, job_id),
            key=_text(key, "key"),
            key_for_us=_key_for_us(key_for, key),
            expires_us=self._task.expires_us if expires is UNSET else None,
            conn=conn,
        )
        options = _with_start(options, delay, run_at)
        if isinstance(expires, datetime):
            options = _replace(options, expires_at=instant_us(expires, name="expires"))
        elif expires is not UNSET and expires is not None:
            options = _replace(options, expires_us=duration_us(expires, name="expires"))
        return Submitter(self._scheduler, self._task, spec, options)

    def _spec_with(
        self,
        *,
        priority: int,
        queue: str,
        timeout: Duration | None,
        retry: int | RetryPolicy | None,
        tags: Iterable[str],
    ) -> JobSpec:
        spec = self._task.spec
        changes: dict[str, Any] = {}
        if priority is not UNSET:
            changes["priority"] = check_priority(priority)
        if queue is not UNSET:
            changes["queue"] = check_name(queue, "queue")
        if timeout is not UNSET:
            changes["timeout_s"] = 0.0 if timeout is None else duration_s(timeout, name="timeout")
        if retry is not UNSET:
            policy = self._task.policy
            own = RetryPolicy(1) if retry is None else RetryPolicy.of(retry, like=policy)
            changes["retry"] = _stored_retry(own, policy)
        if tags:
            changes["tags"] = check_tags(tags)
        return replace(spec, **changes) if changes else spec


class AsyncTask(Task[P, R]):
    """A registered coroutine function."""

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, R]:  # type: ignore[override]
            """Call the coroutine function itself; await what it returns."""


_OPTIONS = (
    "priority",
    "delay",
    "run_at",
    "depends_on",
    "on_dependency_failure",
    "job_id",
    "replace",
    "key",
    "key_for",
    "queue",
    "timeout",
    "retry",
    "expires",
    "tags",
    "conn",
)
_replace = replace


def _stored_retry(own: RetryPolicy, policy: RetryPolicy) -> Mapping[str, object]:
    return cast("Mapping[str, object]", own.override_of(policy))


def _with_start(options: SubmitOptions, delay: Duration, run_at: datetime) -> SubmitOptions:
    if delay is not UNSET and run_at is not UNSET:
        raise ConfigurationError("delay and run_at both say when the job may start: pass one of them")
    if delay is not UNSET:
        return _replace(options, delay_us=duration_us(delay, name="delay", allow_zero=True))
    if run_at is not UNSET:
        return _replace(options, run_at=instant_us(run_at, name="run_at"))
    return options


def _dependencies(
    depends_on: Iterable[JobHandle[Any] | str] | JobHandle[Any] | str, scheduler: Scheduler
) -> tuple[JobHandle[Any] | str, ...]:
    from betimes.handles import JobHandle  # noqa: PLC0415 - handles speak of tasks, too

    several: Iterable[Any] = (depends_on,)
    if isinstance(depends_on, Iterable) and not isinstance(depends_on, str):
        several = depends_on
    found: list[JobHandle[Any] | str] = []
    for each in several:
        if isinstance(each, JobHandle):
            # What another store's handle holds means nothing to ours; its id may.
            found.append(each if each._is_of(scheduler) else each.id)  # noqa: SLF001
        elif isinstance(each, str):
            found.append(each)
        else:
            raise ConfigurationError(
                f"depends_on takes job handles or job ids, and was given {type(each).__name__}"
                + ("; await the submit first" if hasattr(each, "__await__") else "")
            )
    return tuple(found)


def _key_for_us(key_for: Duration, key: str | None) -> int:
    if key_for is UNSET:
        return _KEY_FOR_US
    if key is None:
        raise ConfigurationError("key_for says how long a key is remembered only together with key=…")
    return duration_us(key_for, name="key_for")


def _need(on_dependency_failure: str) -> Need:
    needs = {"cancel": Need.COMPLETED, "run": Need.ENDED}
    if on_dependency_failure not in needs:
        raise ConfigurationError(
            f"on_dependency_failure is {on_dependency_failure!r}; it is 'cancel' or 'run'"
        )
    return needs[on_dependency_failure]


def _replaces(replace_: bool, job_id: str | None) -> bool:
    if replace_ and job_id is None:
        raise ConfigurationError("replace=True says which id to replace only together with job_id=…")
    return bool(replace_)


def _text(value: str | None, name: str) -> str | None:
    return None if value is None else check_name(value, name)


def check_name(value: object, name: str) -> str:
    """Return a name that can be stored and shown: text of 1 to 500 printable characters.

    Raises:
        ConfigurationError: it is not.
    """
    if not isinstance(value, str) or not value or len(value) > NAME_LENGTH or not value.isprintable():
        raise ConfigurationError(
            f"{name} must be text of 1 to {NAME_LENGTH} printable characters, not {value!r:.100}"
        )
    return value


def check_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags as a sorted tuple without repetition.

    Raises:
        ConfigurationError: one of them is not a name, or a single text was given instead of several.
    """
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise ConfigurationError(f"tags takes several texts: write tags=[{tags!r}]")
    return tuple(sorted({check_name(tag, "tags") for tag in tags}))
