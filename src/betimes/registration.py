"""Registering a function: its options checked, its kind found, its definition made."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from betimes.core.command import Command
from betimes.core.durations import duration_s, duration_us
from betimes.core.job import JobSpec
from betimes.core.options import nearest
from betimes.core.payload import Signature
from betimes.core.priority import Priority, check_priority
from betimes.core.retry import RetryPolicy
from betimes.core.task import TaskDefinition
from betimes.core.traits import Traits
from betimes.core.wording import shown
from betimes.errors import ConfigurationError
from betimes.process_rules import check_for_process
from betimes.restraint_options import Restraints
from betimes.runtime.context import Context
from betimes.runtime.timetable import NewSchedule
from betimes.schedule_options import ScheduleOptions, ask, check_trigger
from betimes.tasks import SubmitOptions, check_name, check_tags

COMMAND = "command"
LANES = ("loop", "thread", "process")
_DELIVERIES = ("at_least_once", "at_most_once")

TASK_OPTIONS = (
    "name",
    "queue",
    "executor",
    "priority",
    "retry",
    "timeout",
    "expires",
    "keep",
    "delivery",
    "tags",
    "limit",
    "rate",
    "retry_budget",
    "breaker",
    "schedule",
    "overlap",
    "missed",
    "max_catchup",
    "jitter",
)
"""What the decorator takes."""

_OF_SCHEDULES = ("overlap", "missed", "max_catchup", "jitter")


def define(fn: Callable[..., Any], options: dict[str, Any]) -> TaskDefinition:
    """Make a task's definition.

    Args:
        fn: the function.
        options: the decorator's options, of `TASK_OPTIONS`.

    Raises:
        ConfigurationError: the function cannot be a task, or an option is wrong.
    """
    if not callable(fn):
        raise ConfigurationError(f"a task is made of a function, not of {shown(fn)}")
    name = options.get("name")
    given = options.get
    timeout, expires, keep = given("timeout"), given("expires"), given("keep")
    # Before the name: a lambda that is to run in a process is not helped by one.
    lane = COMMAND if isinstance(fn, Command) else _lane(fn, given("executor"))
    spec = JobSpec(
        task=default_name(fn) if name is None else check_name(name, "name"),
        queue=check_name(given("queue", "default"), "queue"),
        lane=lane,
        priority=check_priority(given("priority", Priority.MEDIUM)),
        at_most_once=_is_at_most_once(given("delivery", "at_least_once")),
        keep_s=None if keep is None else duration_s(keep, name="keep", allow_zero=True),
        tags=check_tags(given("tags", ())),
    )
    restraints = Restraints.of(options, spec.task)
    definition = TaskDefinition(
        fn=fn,
        signature=Signature(fn, Context),
        spec=spec,
        policy=RetryPolicy.of(given("retry")),
        timeout_s=None if timeout is None else duration_s(timeout, name="timeout"),
        expires_us=None if expires is None else duration_us(expires, name="expires"),
        gates=restraints.gates,
        budget=restraints.budget,
        breaker=restraints.breaker,
    )
    Traits(definition)  # refuses a limit by an argument that is not there
    return definition


def declared_schedule(definition: TaskDefinition, options: dict[str, Any]) -> NewSchedule | None:
    """Return the schedule that the decorator's options ask for; None: they ask for none.

    Raises:
        ConfigurationError: an option is wrong, or the function needs arguments, which a schedule of its own
            cannot give it.
    """
    trigger = options.get("schedule")
    given = {name: options[name] for name in _OF_SCHEDULES if name in options}
    if trigger is None:
        if given:
            raise ConfigurationError(f"{next(iter(given))} says how a schedule runs: pass schedule=… with it")
        return None
    check_trigger(trigger, definition.name)
    try:
        payload = definition.signature.encode((), {})
    except TypeError as error:
        raise ConfigurationError(
            f"{definition.name} cannot have schedule=…, because a schedule of its own runs it without "
            f"arguments ({error}): give them defaults, or use add_schedule() with task.bind(…)"
        ) from None
    submit_options = (
        None if definition.expires_us is None else SubmitOptions(expires_us=definition.expires_us)
    )
    return ask(
        definition.name,
        definition.spec,
        payload,
        trigger,
        ScheduleOptions(**given),
        submit_options=submit_options,
        gates=Traits(definition).gates(payload),
        is_declared=True,
    )


def default_name(fn: Callable[..., Any]) -> str:
    """Return `module.qualname`; `__main__` counts as the script's file stem.

    Raises:
        ConfigurationError: the function has no name of its own.
    """
    inner = fn.func if isinstance(fn, partial) else fn
    qualname = getattr(inner, "__qualname__", None)
    if qualname is None or "<lambda>" in qualname:
        raise ConfigurationError(f"{fn!r} has no name to store with its jobs: pass name=…")
    module = getattr(inner, "__module__", None) or ""
    if module in {"__main__", "__mp_main__"}:  # the latter in a process job's own process
        file = getattr(sys.modules.get("__main__"), "__file__", None)
        module = Path(file).stem if file else "__main__"
    return f"{module}.{qualname}".replace(".<locals>.", ".")


def is_async(fn: Callable[..., Any]) -> bool:
    """Say whether calling it gives a coroutine; also for partials and objects with an async `__call__`."""
    while isinstance(fn, partial):
        fn = fn.func
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004


def _lane(fn: Callable[..., Any], executor: str | None) -> str:
    if inspect.isasyncgenfunction(fn) or inspect.isgeneratorfunction(fn):
        raise ConfigurationError(f"{fn!r} is a generator: a task returns one value; loop inside it instead")
    if executor is None:
        return "loop" if is_async(fn) else "thread"
    if executor == COMMAND:
        raise ConfigurationError(
            "external programs are registered with scheduler.command(name, [program, …])"
        )
    if executor not in LANES:
        hint = nearest(str(executor), LANES)
        also = f"; did you mean {hint!r}?" if hint else ""
        raise ConfigurationError(
            f"executor is {executor!r}; it is one of {', '.join(map(repr, LANES))}{also}"
        )
    if executor == "loop" and not is_async(fn):
        raise ConfigurationError(
            f"{fn!r} is a plain function: on the event loop it would block everything else; "
            "make it 'async def', or use executor='thread'"
        )
    if executor == "thread" and is_async(fn):
        raise ConfigurationError(
            f"{fn!r} is a coroutine function: in a thread it would never be awaited; "
            "leave executor out, or make it a plain 'def'"
        )
    if executor == "process":
        check_for_process(fn)
    return executor


def _is_at_most_once(delivery: object) -> bool:
    if delivery not in _DELIVERIES:
        raise ConfigurationError(f"delivery is {delivery!r}; it is 'at_least_once' or 'at_most_once'")
    return delivery == "at_most_once"
