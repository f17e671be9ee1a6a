"""Asking what was submitted: assertions whose failure tells what was submitted instead."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Any

from betimes.core.wording import shown
from betimes.errors import ConfigurationError
from betimes.scheduler import Scheduler
from betimes.tasks import BoundJob, Task
from betimes.testing.recording import MadeJob, RecordingStore, SameCall, SubmittedCall, call_of

SHOWN = 20
"""The most calls that a message lists."""


class Submissions:
    """Knows every job that a scheduler under test has made: by a submit, or by a schedule.

    A call is given as the task and its arguments, or as a bound call, `task.bind(…)`. It is compared as it is
    stored: arguments passed by position or by name, and defaults passed or left out, make the same call.
    """

    _scheduler: Scheduler | None = None
    _store: RecordingStore

    def submitted(self, task: Task[Any, Any] | None = None) -> list[SubmittedCall]:
        """Return the jobs that were made, in order.

        Args:
            task: only those of this task; None: all.
        """
        scheduler = self._known()
        name = None if task is None else self._own(task).name
        tasks = scheduler._definitions  # noqa: SLF001 - it belongs to the scheduler
        return [call_of(made, tasks) for made in self._store.made if name is None or made.spec.task == name]

    def assert_submitted(
        self,
        task: Task[Any, Any] | BoundJob[Any],
        /,
        *args: Any,
        times: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Fail the test unless such a job was made; the message lists those that were.

        Args:
            task: a task, or a bound call.
            args: the task's arguments; without any, its jobs with whatever arguments count. The call with no
                arguments is `task.bind()`.
            times: exactly how many jobs; None: at least one. It is no argument of the task: where the task's
                function has a parameter `times` itself, give the call as `task.bind(…)`.
            kwargs: more of the task's arguments.

        Raises:
            AssertionError: there was none, or another number of them.
            TypeError: the arguments do not fit the task.

        Example:
            jobs.assert_submitted(send)
            jobs.assert_submitted(send, "ada", urgent=True)
            jobs.assert_submitted(send.bind("ada"), times=2)
        """
        __tracebackhide__ = True
        if times is not None and isinstance(task, Task):
            _refuse_if_it_takes_times(task)
        if times is not None and (isinstance(times, bool) or not isinstance(times, int) or times < 0):
            raise ConfigurationError(f"times is {shown(times)}; it is a whole number from 0 on, or None")
        found, call = self._matching(task, args, kwargs)
        if times is None and not found:
            raise AssertionError(self._story(f"{call} was not submitted", task))
        if times is not None and len(found) != times:
            raise AssertionError(
                self._story(f"{call} was submitted {_times(len(found))}, not {_times(times)}", task)
            )

    def assert_not_submitted(
        self, task: Task[Any, Any] | BoundJob[Any], /, *args: Any, **kwargs: Any
    ) -> None:
        """Fail the test if such a job was made; arguments as for `assert_submitted`.

        Raises:
            AssertionError: there was one.
            TypeError: the arguments do not fit the task.
        """
        __tracebackhide__ = True
        found, call = self._matching(task, args, kwargs)
        if found:
            raise AssertionError(self._story(f"{call} was submitted {_times(len(found))}", task))

    # --- how

    def _known(self) -> Scheduler:
        """Return the scheduler under test."""
        assert self._scheduler is not None, "there is no scheduler under test"
        return self._scheduler

    def _own(self, task: object) -> Task[Any, Any]:
        if not isinstance(task, Task):
            hint = "; options such as delay are seen in submitted()" if hasattr(task, "submit") else ""
            raise ConfigurationError(f"this takes a task, or a bound call, not {shown(task)}{hint}")
        if task._scheduler is not self._known():  # noqa: SLF001 - it belongs to the scheduler
            raise ConfigurationError(f"{task.name} is a task of another scheduler than the one under test")
        return task

    def _matching(
        self, task: Task[Any, Any] | BoundJob[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[MadeJob], str]:
        """Return the jobs of a call, and the call in words."""
        if isinstance(task, BoundJob):
            if args or kwargs:
                raise ConfigurationError("a bound call has its arguments already: pass no others beside it")
            bound = self._plain(task)
        elif not args and not kwargs:
            name = self._own(task).name
            return [made for made in self._store.made if made.spec.task == name], name
        else:
            bound = self._own(task).bind(*args, **kwargs)
        is_same = SameCall(bound.task, bound.payload)
        name = bound.task.name
        found = [made for made in self._store.made if made.spec.task == name and is_same(made.payload)]
        arguments = bound.task.signature.arguments(bound.payload)
        return found, f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"

    def _plain(self, bound: BoundJob[Any]) -> BoundJob[Any]:
        """Return a bound call, if all that it says is the task and its arguments."""
        if bound.scheduler is not self._known():
            raise ConfigurationError(
                f"{bound.task.name} is a task of another scheduler than the one under test"
            )
        task = Task[Any, Any](bound.scheduler, bound.task)
        if (bound.spec, bound.options) != (task._spec, task._options):  # noqa: SLF001 - as above
            raise ConfigurationError(
                "the options of a call are not compared: bind the arguments alone, with task.bind(…), and "
                "look at run_at, queue, priority and tags in submitted()"
            )
        return bound

    def _story(self, head: str, task: Task[Any, Any] | BoundJob[Any]) -> str:
        name = task.task.name if isinstance(task, BoundJob) else task.name
        calls = self.submitted()
        same = [call for call in calls if call.task == name]
        lines = [head, f"jobs of {name}:" if same else f"there were no jobs of {name}"]
        lines += [f"  {call}" for call in same[:SHOWN]]
        if len(same) > SHOWN:
            lines.append(f"  and {len(same) - SHOWN:,} more")
        others = Counter(call.task for call in calls if call.task != name)
        if others:
            lines.append("others: " + ", ".join(f"{each} ({number})" for each, number in others.items()))
        return "\n".join(lines)


def _refuse_if_it_takes_times(task: Task[Any, Any]) -> None:
    parameters = inspect.signature(task.fn).parameters.values()
    if any(one.name == "times" or one.kind is one.VAR_KEYWORD for one in parameters):
        raise ConfigurationError(
            f"whether times= is meant for {task.name}() or for the assertion cannot be told: give the call "
            "as a bound one, assert_submitted(task.bind(…), times=…)"
        )


def _times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number:,} times")
