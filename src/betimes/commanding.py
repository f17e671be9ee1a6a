"""The commanding face of a scheduler: external programs as tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, Unpack, cast

from betimes.core.command import OUTPUT_KEPT, CommandLine, CommandResult, make_command
from betimes.core.options import reject_unknown
from betimes.core.retry import RetryPolicy
from betimes.errors import CommandFailed, ConfigurationError
from betimes.executors.command import run_to_end
from betimes.registrar import Registrar
from betimes.tasks import Duration, Task, check_name

if TYPE_CHECKING:
    from betimes.core.restraints import CircuitBreaker, Limit, Rate, RetryBudget
    from betimes.core.triggers import Trigger
    from betimes.schedule_options import MissedPolicy, OverlapPolicy
    from betimes.scheduler import Scheduler

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


def _call(
    *args: str,
    stdin: str | None = None,
    env: Mapping[str, str | None] | None = None,
    cwd: str | None = None,
) -> CommandResult:
    """What every command is called with: its signature is that of each command's task."""
    raise AssertionError(f"only its signature counts: {args} {stdin} {env} {cwd}")


def _gives_task_of(_like: Callable[P, R]) -> Callable[[Callable[Q, Any]], Callable[Q, Task[P, R]]]:
    """Tell type checkers that a function returns a task of that signature; nothing else."""
    return lambda fn: fn


class CommandOptions(TypedDict, total=False):
    """What a command's task takes beside what is the command's own."""

    queue: str
    priority: int
    retry: int | RetryPolicy | None
    timeout: Duration | None
    expires: Duration | None
    keep: Duration | None
    delivery: str
    tags: Iterable[str]
    limit: Limit | Iterable[Limit] | None
    rate: Rate | Iterable[Rate] | None
    retry_budget: RetryBudget | None
    breaker: CircuitBreaker | None
    schedule: Trigger | None
    overlap: OverlapPolicy
    missed: MissedPolicy
    max_catchup: int | None
    jitter: Duration | None


_OWN_OPTIONS = (
    "env",
    "cwd",
    "stdin",
    "ok_codes",
    "retry_codes",
    "max_output",
    "user",
    "inherit_env",
    "grace",
)
_OPTIONS = (*_OWN_OPTIONS, *CommandOptions.__annotations__)


class CommandTask(Task[P, R]):
    """A registered command."""

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        """Run the command itself, here and now, and wait for its end.

        Raises:
            CommandFailed: it did not end well.
            ConfigurationError: an event loop runs here, which it would block.
        """
        if asyncio._get_running_loop() is not None:  # noqa: SLF001 - the same as `get_running_loop`, less a raise
            raise ConfigurationError(
                f"{self.name} would block the event loop: submit a job of it, or call it in a thread"
            )
        line = cast("CommandLine", self.fn(*args, **kwargs))
        end = run_to_end(line, {}, _let_go)
        if isinstance(end, CommandFailed):
            raise end
        return cast("R", end)


class Commanding(Registrar):
    """Registers commands beside functions."""

    @_gives_task_of(_call)
    def command(
        self,
        name: str,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str | None] | None = None,
        cwd: str | Path | None = None,
        stdin: str | None = None,
        ok_codes: int | Iterable[int] = (0,),
        retry_codes: int | Iterable[int] | None = None,
        max_output: int = OUTPUT_KEPT,
        user: str | None = None,
        inherit_env: bool = True,
        grace: Duration | None = None,
        **options: Unpack[CommandOptions],
    ) -> Any:
        """Register an external program as a task, whose jobs return a `CommandResult`.

        `task.submit("a", "b", stdin=…, env=…, cwd=…)` appends its arguments to the list, never to a text: for
        shell text they are `$1`, `$2`, …. What the program writes goes to the job's log, line by line, as it
        comes. At a timeout or a cancel it is sent SIGTERM, together with all that it has started in its
        process group, and SIGKILL after its `grace`; whatever it leaves behind there when it ends
        is killed, also when the scheduler itself is. It finds the job's id in `BETIMES_JOB_ID`, the
        attempt's number in `BETIMES_ATTEMPT`, and what grows with every claim in `BETIMES_FENCE`.

        Args:
            name: of the task; stored with its jobs.
            command: a list of program and arguments, run as it is; or a text, run by `/bin/sh`.
            env: added to this process's environment; None in place of a text removes a variable.
            cwd: its working directory; a relative one, and a program with a relative path, counts from there
                where the worker runs. None: that of the worker.
            stdin: the text that it reads; None: nothing.
            ok_codes: the exit codes that are a success, 0 to 255. Any other is a `CommandFailed`.
            retry_codes: the only exit codes that `retry` holds for; minus a signal's number for a program
                that it killed. None: all.
            max_output: bytes kept of stdout, and of stderr, in the result (1 MiB; up to 4 MiB): the end.
            user: the user that it runs as, by name and with all its groups, and with HOME, LOGNAME, USER and
                SHELL set to fit. Only a worker of root's can run it as another user than its own; elsewhere
                the job fails and says so. None: the worker's own.
            inherit_env: whether it gets the worker's environment; False: only `env`, what `user` sets, and
                the names above.
            grace: how long it has between SIGTERM and SIGKILL; None: as the scheduler says. When the
                scheduler stops, its own counts.
            options: those of `task()`, but for `name` and `executor`; `retry` does not hold for a program
                that cannot be started, since it is not there.

        Raises:
            ConfigurationError: the command or an option is wrong, or the name is taken.
            TypeError: an option is unknown; the text names the nearest.

        Example:
            backup = scheduler.command("backup", ["pg_dump", "--file"], retry=3, timeout="1h")
            job = await backup.submit("/backups/today.sql", env={"PGDATABASE": "shop"})
            print((await job.result()).stderr)
        """
        reject_unknown(options, _OPTIONS, where="command()")
        function = make_command(
            check_name(name, "name"),
            command,
            env=env,
            cwd=cwd,
            stdin=stdin,
            ok_codes=ok_codes,
            retry_codes=retry_codes,
            max_output=max_output,
            user=user,
            inherit_env=inherit_env,
            grace=grace,
        )
        self._register(function, {"name": name, **options})
        return CommandTask(cast("Scheduler", self), self._definitions[name])


def _let_go(text: str, *, source: str) -> None:
    """Take lines that no job keeps."""
