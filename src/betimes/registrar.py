"""The registering face of a scheduler: the `task` decorator."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from betimes.core.options import reject_unknown
from betimes.core.retry import RetryPolicy
from betimes.core.task import TaskDefinition
from betimes.errors import ConfigurationError
from betimes.registration import TASK_OPTIONS, declared_schedule, define, is_async
from betimes.restraint_options import check_alike
from betimes.runtime.context import Context
from betimes.tasks import AsyncTask, Duration, Task

if TYPE_CHECKING:
    from betimes.core.restraints import CircuitBreaker, Limit, Rate, RetryBudget
    from betimes.core.triggers import Trigger
    from betimes.runtime.timetable import NewSchedule
    from betimes.schedule_options import MissedPolicy, OverlapPolicy
    from betimes.scheduler import Scheduler
    from betimes.submission import JobMaker

P = ParamSpec("P")
R = TypeVar("R")


class TaskDecorator(Protocol):
    """What `scheduler.task(…)` with options returns: the decorator itself."""

    @overload
    def __call__(
        self, fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Task[P, R]: ...


class Registrar:
    """Keeps the tasks by name."""

    _registered: Callable[[NewSchedule | None], None]
    """Is told of each new task, and of the schedule it asks for."""

    _maker: JobMaker
    """Knows the tasks, too."""

    def __init__(self) -> None:
        self._definitions: dict[str, TaskDefinition] = {}

    @overload
    def task(self, fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...
    @overload
    def task(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...
    @overload
    def task(self, fn: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...
    @overload
    def task(self, fn: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(
        self,
        fn: None = None,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        executor: str | None = None,
        priority: int = 1,
        retry: int | RetryPolicy | None = None,
        timeout: Duration | None = None,
        expires: Duration | None = None,
        keep: Duration | None = None,
        delivery: str = "at_least_once",
        tags: Iterable[str] = (),
        limit: Limit | Iterable[Limit] | None = None,
        rate: Rate | Iterable[Rate] | None = None,
        retry_budget: RetryBudget | None = None,
        breaker: CircuitBreaker | None = None,
        schedule: Trigger | None = None,
        overlap: OverlapPolicy = "skip",
        missed: MissedPolicy = "latest",
        max_catchup: int | None = None,
        jitter: Duration | None = None,
    ) -> TaskDecorator: ...

    def task(self, fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Register a function as a task, as a decorator with or without options.

        Args:
            fn: the function; a coroutine function runs on the event loop, a plain one in a thread.
            options: `name` and the others, as follows.
            name: stored with its jobs; `module.qualname` unless given (for `__main__`, its file's stem).
            queue: where its jobs wait.
            executor: `"loop"` or `"thread"`; as the function is, unless given.
            priority: of its jobs, -1000 to 1000; larger first.
            retry: a number of attempts, or a `RetryPolicy`; None: one attempt.
            timeout: for each attempt; None: none.
            expires: how long its jobs may wait for their first start, or be cancelled; None: for ever.
            keep: how long its jobs stay after their end; None: as the scheduler says.
            delivery: `"at_least_once"`; `"at_most_once"`: never again after an error, a timeout or a crash.
            tags: of its jobs, for finding them again.
            limit: a `Limit`, or several: how many of its jobs run at once, in all processes together.
            rate: a `Rate`, or several: how many start in a length of time.
            retry_budget: a `RetryBudget`: what share of its starts may be retries.
            breaker: a `CircuitBreaker`: when to leave it alone for a while, since it only fails.
            schedule: when to run it by itself, without arguments: a schedule named as the task, made by
                `cron`, `every`, `calendar` or `at`. It is kept when the scheduler starts.
            overlap: of that schedule, as for `add_schedule`; so are the next three.
            missed: what of instants that passed while nothing could fire.
            max_catchup: how many of them `missed="all"` makes up for.
            jitter: each run starts up to so much later.

        Raises:
            ConfigurationError: the function cannot be a task, an option is wrong, or the name is taken.
            TypeError: an option is unknown; the text names the nearest.
        """
        reject_unknown(options, TASK_OPTIONS, where="task()")
        if fn is None:
            return lambda fn: self._register(fn, options)
        return self._register(fn, options)

    def _register(self, fn: Callable[..., Any], options: dict[str, Any]) -> Task[Any, Any]:
        if isinstance(fn, Task):
            raise ConfigurationError(
                f"{fn!r} is a task already: register its function, {fn.name}.fn, under another name"
            )
        definition = define(fn, options)
        if definition.name in self._definitions:
            raise ConfigurationError(
                f"a task named {definition.name!r} is registered already: give one of them another name=…"
            )
        check_alike(definition, self._definitions.values())
        asked = declared_schedule(definition, options)
        self._definitions[definition.name] = definition
        self._registered(asked)
        return (AsyncTask if is_async(fn) else Task)(cast("Scheduler", self), definition)

    def _withdraw(self, name: str) -> None:
        """Take a task back, so that another may have its name; attempts that run go on by what they know.

        For programs whose tasks change while they run. A job of a task that is not there waits for it.
        """
        del self._definitions[name]
        self._maker.forget(name)
