"""Runs external commands, each in a process group of its own, and kills what is late or not wanted.

The task's function is ours, and returns the line to run; what the job returns is what came of it. The event
loop reads what the program writes and feeds what it reads; a thread for each waits for its end (`spawned`).
Once the program itself has ended, its end counts: whatever it has started in its group is killed, what is in
the pipes is read, and nothing more is waited for.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from betimes.core.command import CommandLine, CommandResult
from betimes.core.outcome import Outcome, Raised
from betimes.errors import CommandFailed
from betimes.executors.accounts import Account, account_to_run_as
from betimes.executors.guard import Guard
from betimes.executors.pipes import InputPipe, OutputPipe
from betimes.executors.spawned import Exit, Program, Spawned
from betimes.ports import Executor, Run

KILLED_WITHIN_S = 5.0
"""How long the end of what was killed is waited for at the close."""

_MAY_PASS = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY}
"""Why a start may fail that succeeds a little later: no more processes, memory or files, for now, or the
program is still being written."""


class WriteLog(Protocol):
    """Takes what a program writes, line by line, with the name of the stream."""

    def __call__(self, text: str, *, source: str) -> None:
        """Take these lines."""


class RunningCommand:
    """A command that runs; made, and used, on the running loop.

    Args:
        line: what to run.
        env: its whole environment.
        guard: kills it if this process dies.
        write_log: takes its output as it comes.
        ended: is called once, in a later step of the loop, when the program and its group are dead.
        account: the user that it runs as; None: this process's own.

    Raises:
        CommandFailed: there are no files left for its pipes.
    """

    def __init__(
        self,
        line: CommandLine,
        env: dict[str, str],
        guard: Guard,
        write_log: WriteLog,
        ended: Callable[[CommandResult | CommandFailed], None],
        *,
        account: Account | None = None,
    ) -> None:
        self._line = line
        self._ended = ended
        loop = asyncio.get_running_loop()
        pipes: list[OutputPipe | InputPipe] = []
        try:
            most = line.max_output
            self._out = OutputPipe(loop, most, lambda text: write_log(text, source="stdout"))
            pipes.append(self._out)
            self._err = OutputPipe(loop, most, lambda text: write_log(text, source="stderr"))
            pipes.append(self._err)
            self._in = None if line.stdin is None else InputPipe(loop, line.stdin.encode())
        except OSError as error:
            for pipe in pipes:
                os.close(pipe.child_end)
                pipe.close()
            raise _not_started(line, error) from error
        program = Program(
            argv=line.argv,
            env=env,
            cwd=line.cwd,
            stdout=self._out.child_end,
            stderr=self._err.child_end,
            account=account,
        )
        if self._in is not None:
            program = replace(program, stdin=self._in.child_end)
        self._child = Spawned(program, self._exited, guard=guard)

    def terminate(self, grace_s: float) -> None:
        """Send SIGTERM to its group, and SIGKILL after the grace."""
        self._child.terminate(grace_s)

    def kill(self) -> None:
        """Send SIGKILL to its group."""
        self._child.kill()

    def _exited(self, how: Exit) -> None:
        if self._in is not None:
            self._in.close()
        self._out.close()
        self._err.close()
        self._ended(self._end(how))

    def _end(self, how: Exit) -> CommandResult | CommandFailed:
        line = self._line
        if how.error is not None:
            return _not_started(line, how.error)
        out, err = self._out.output, self._err.output
        stdout, stderr = out.text(), err.text()
        if how.code is None:
            return CommandFailed(
                f"how {line.name} ended is not known: other code in this process has waited for its child",
                stdout=stdout,
                stderr=stderr,
            )
        result = CommandResult(
            exit_code=how.code,
            stdout=stdout,
            stderr=stderr,
            stdout_truncated=out.is_truncated,
            stderr_truncated=err.is_truncated,
        )
        which = f" (pid {how.pid})" if how.code < 0 else ""
        return line.failure(result, end_in_words(how.code) + which) or result


class CommandExecutor(Executor):
    """The lane `command`."""

    lane = "command"
    leaves_nothing = True

    def __init__(self, slots: int, *, grace_s: float) -> None:
        """Allow this many runs at once; one that is told to stop has so many seconds for it."""
        self.slots = slots
        self._grace_s = grace_s
        self._desk: _Desk | None = None

    def open(self, ended: Callable[[Run, Outcome], None], begun: Callable[[Run], None]) -> None:
        """Use the running loop."""
        del begun  # each begins at once
        self._desk = _Desk(ended, self._grace_s)

    def start(self, run: Run) -> None:
        """Have the program started in the loop's next turn."""
        assert self._desk is not None, "the executor is not open"
        self._desk.start(run)

    def cancel(self, run: Run) -> None:
        """Send SIGTERM to the program's group, and SIGKILL after the grace; or never start it."""
        if isinstance(run.handle, _Command):
            run.handle.cancel()

    async def close(self) -> None:
        """Kill what still runs, and wait for its end."""
        if self._desk is not None:
            desk, self._desk = self._desk, None
            await desk.close()


class _Desk:
    """The runs of one opening."""

    def __init__(self, ended: Callable[[Run, Outcome], None], grace_s: float) -> None:
        self.grace_s = grace_s
        self.guard = Guard()
        self._loop = asyncio.get_running_loop()
        self._ended = ended
        self._commands: set[_Command] = set()
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    def start(self, run: Run) -> None:
        run.handle = command = _Command(run, self)
        self._commands.add(command)
        self._is_empty.clear()
        self._loop.call_soon(command.begin)

    def end(self, command: _Command, outcome: Outcome) -> None:
        self._commands.discard(command)
        if not self._commands:
            self._is_empty.set()
        command.run.handle = None
        self._ended(command.run, outcome)

    async def close(self) -> None:
        for command in list(self._commands):
            command.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(KILLED_WITHIN_S):
                await self._is_empty.wait()
        self.guard.close()


class _Command:
    """One run, from its start."""

    def __init__(self, run: Run, desk: _Desk) -> None:
        self.run = run
        self._desk = desk
        self._is_told = False
        self._grace_s = desk.grace_s
        self._running: RunningCommand | None = None

    def begin(self) -> None:
        run = self.run
        if self._is_told:
            self._desk.end(self, run.raised(asyncio.CancelledError()))
            return
        try:
            line = run.context.run(run.invoke)
            assert isinstance(line, CommandLine), f"a command's task returns its line, not {line!r:.100}"
            account = account_of(line)
            env = environment_of(line, own_names(run), account)
            guard = self._desk.guard
            self._grace_s = self._desk.grace_s if line.grace_s is None else line.grace_s
            self._running = RunningCommand(line, env, guard, run.write_log, self._end, account=account)
        except CommandFailed as error:
            self._end(error)
        except BaseException as error:  # noqa: BLE001 - as in a thread: it ends this run, and nothing else
            self._desk.end(self, run.raised(error))

    def cancel(self) -> None:
        self._is_told = True
        if self._running is not None:
            self._running.terminate(self._grace_s)

    def kill(self) -> None:
        self._is_told = True
        if self._running is not None:
            self._running.kill()

    def _end(self, end: CommandResult | CommandFailed) -> None:
        self._desk.end(self, outcome_of_end(self.run, end))


def account_of(line: CommandLine) -> Account | None:
    """Return the user that a command runs as; None: this process's own, whoever that is.

    Raises:
        CommandFailed: there is no such user, or this process may not run programs as somebody else.
    """
    return None if line.user is None else account_to_run_as(line.user, command=line.name)


def own_names(run: Run) -> dict[str, str]:
    """Return the variables that say which run it is."""
    call = run.call()  # with the numbers of the claim, wherever the job's record has moved on to
    return {
        "BETIMES_JOB_ID": call.job_id,
        "BETIMES_ATTEMPT": str(call.attempt),
        "BETIMES_FENCE": str(call.fence),
    }


def environment_of(line: CommandLine, own: Mapping[str, str], account: Account | None) -> dict[str, str]:
    """Return a run's whole environment, what comes later before what comes first.

    They are: what this process has (unless the command does without), who its user is, the names that are
    passed here, and what the command adds.
    """
    user = {} if account is None else account.environment
    return line.environment(os.environ, {**user, **own})


def outcome_of_end(run: Run, end: CommandResult | CommandFailed) -> Outcome:
    """Turn a command's end into its run's outcome."""
    if isinstance(end, CommandResult):
        return run.returned(end)
    outcome = run.raised(end)
    if isinstance(outcome, Raised) and not end.may_retry:
        return replace(outcome, may_retry=False)
    return outcome


def run_to_end(
    line: CommandLine, own: Mapping[str, str], write_log: WriteLog
) -> CommandResult | CommandFailed:
    """Run a command in this very thread, and wait for its end; not on a running event loop.

    Args:
        line: what to run.
        own: variables that say which run it is.
        write_log: takes its output as it comes.
    """

    async def main() -> CommandResult | CommandFailed:
        guard = Guard()
        end: asyncio.Future[CommandResult | CommandFailed] = asyncio.get_running_loop().create_future()
        try:
            account = account_of(line)
            env = environment_of(line, own, account)
            running = RunningCommand(line, env, guard, write_log, end.set_result, account=account)
            try:
                return await asyncio.shield(end)
            except asyncio.CancelledError:
                running.kill()
                await end
                raise
        except CommandFailed as failed:
            return failed
        finally:
            guard.close()

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        return runner.run(main())


def _not_started(line: CommandLine, error: Exception) -> CommandFailed:
    number = getattr(error, "errno", None)
    where = getattr(error, "filename", None)
    program = line.argv[0]
    if line.cwd is not None and where == line.cwd:
        why = f"its working directory {line.cwd!r} cannot be entered ({os.strerror(number or 0)})"
    elif number == errno.ENOENT and _is_there(line):
        why = f"{program!r} is there, and the interpreter that its first line names, or its loader, is not"
    elif number == errno.ENOENT:
        why = f"there is no program {program!r}: install it, give its path, or see to PATH"
    elif number == errno.EACCES:
        why = f"{program!r} may not be executed: see to its permissions"
    elif number == errno.ENOEXEC:
        why = f"{program!r} is no program of this system: a script begins with a line such as '#!/bin/sh'"
    else:
        why = f"{program!r}: {error}"
    # A RuntimeError is what Python says when there are no more threads.
    may_retry = number in _MAY_PASS or isinstance(error, RuntimeError)
    return CommandFailed(f"{line.name} could not be started: {why}", may_retry=may_retry)


def _is_there(line: CommandLine) -> bool:
    """Whether the program was given by a path, and there is such a file."""
    program = line.argv[0]
    return "/" in program and Path(line.cwd or "", program).exists()


def end_in_words(code: int) -> str:
    """Return how a program ended, such as `exited with code 2` or `was killed by SIGTERM`."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
