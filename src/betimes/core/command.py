"""External commands as values: what is to be run, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from betimes.core.durations import duration_s
from betimes.core.wording import shown
from betimes.errors import CommandFailed, ConfigurationError, PayloadError

SHELL = "/bin/sh"
"""What runs shell text."""

OUTPUT_KEPT = 1024 * 1024
"""Bytes kept of each stream, unless the command says otherwise."""

MOST_OUTPUT = 4 * 1024 * 1024
"""Bytes that can be kept of each stream: both must fit into one result."""

STDERR_SHOWN = 2000
"""Characters of stderr in an error's message: the end, where the error stands."""

LARGEST_CODE = 255
LARGEST_SIGNAL = 64

Environment = Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What a command's job returns, once the program has ended with one of its good codes.

    Attributes:
        exit_code: the program's exit code.
        stdout, stderr: what it wrote, as UTF-8 with replacements; the end of it, if there was too much.
        stdout_truncated, stderr_truncated: whether there was.
    """

    exit_code: int
    stdout: str = ""
    stderr: str = ""
    stdout_truncated: bool = False
    stderr_truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """One command with all that its run needs.

    Attributes:
        name: the task's.
        argv: the program and its arguments.
        env: what is added to this process's environment; None removes a variable.
        cwd: its working directory; None: this process's.
        stdin: what it reads; None: nothing (`/dev/null`).
        ok_codes: the exit codes that are a success.
        retry_codes: those that the retry policy is asked about (minus a signal's number for one that kills
            it); None: all.
        max_output: bytes kept of each stream.
        user: the name of the user that it runs as; None: this process's own.
        inherits: whether it gets this process's environment.
        grace_s: seconds between SIGTERM and SIGKILL; None: as the scheduler says.
    """

    name: str
    argv: tuple[str, ...]
    env: Environment = field(default_factory=dict)
    cwd: str | None = None
    stdin: str | None = None
    ok_codes: frozenset[int] = frozenset({0})
    retry_codes: frozenset[int] | None = None
    max_output: int = OUTPUT_KEPT
    user: str | None = None
    inherits: bool = True
    grace_s: float | None = None

    def failure(self, result: CommandResult, how: str) -> CommandFailed | None:
        """Return the error of an end that is no success; None: it is one.

        Args:
            result: what came of the run.
            how: the end in words, such as `exited with code 2`.
        """
        code = result.exit_code
        if code in self.ok_codes:
            return None
        end = result.stderr.rstrip()[-STDERR_SHOWN:]
        said = f"; its stderr ends: {end}" if end else "; it wrote nothing to stderr"
        return CommandFailed(
            f"{self.name} {how}{said}",
            exit_code=code,
            stdout=result.stdout,
            stderr=result.stderr,
            may_retry=self.retry_codes is None or code in self.retry_codes,
        )

    def environment(
        self, inherited: Mapping[str, str], own: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Return the whole environment of the run.

        Args:
            inherited: this process's.
            own: what the run gets whether or not it inherits that.
        """
        whole: dict[str, str | None] = {
            **(inherited if self.inherits else {}),
            **(own or {}),
            **self.env,
        }
        return {name: value for name, value in whole.items() if value is not None}


class Command:
    """The function of a command's task: it makes the line to run of a call's arguments, and runs nothing.

    The annotation says what the job returns; what runs the line makes it.
    """

    def __init__(self, line: CommandLine) -> None:
        self.line = line
        self.__name__ = self.__qualname__ = line.name
        self.__doc__ = f"Run {' '.join(line.argv)}"

    def __call__(
        self,
        *args: str,
        stdin: str | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: str | None = None,
    ) -> CommandResult:
        """Return the `CommandLine` of this call.

        Raises:
            PayloadError: a text holds a NUL, which no program can be given.
        """
        line = self.line
        for index, text in enumerate(args):
            _reject_odd(text, f"args[{index}]")
        changes: dict[str, Any] = {"argv": (*line.argv, *args)}
        if stdin is not None:
            changes["stdin"] = stdin
        if env is not None:
            changes["env"] = {**line.env, **_environment(env, PayloadError)}
        if cwd is not None:
            changes["cwd"] = _directory(cwd, PayloadError)
        return cast("CommandResult", replace(line, **changes))

    def __repr__(self) -> str:
        return f"<Command {self.line.name}>"


def make_command(
    name: str,
    argv: object,
    *,
    env: object,
    cwd: object,
    stdin: object,
    ok_codes: object,
    retry_codes: object,
    max_output: object,
    user: object = None,
    inherit_env: object = True,
    grace: object = None,
) -> Command:
    """Check what a command is registered with.

    Raises:
        ConfigurationError: something is wrong with it; the text names what.
    """
    if stdin is not None and (not isinstance(stdin, str) or not _is_text(stdin)):
        raise ConfigurationError(f"stdin is {shown(stdin)}; it is the text that {name} reads, or None")
    good = _codes(ok_codes, "ok_codes", least=0)
    if not good:
        raise ConfigurationError("ok_codes is empty: name the exit codes that are a success, such as (0,)")
    retried = None if retry_codes is None else _codes(retry_codes, "retry_codes", least=-LARGEST_SIGNAL)
    if retried is not None and retried & good:
        raise ConfigurationError(
            f"{min(retried & good)} stands in ok_codes and in retry_codes: a success is not retried"
        )
    return Command(
        CommandLine(
            name=name,
            argv=_argv(name, argv),
            env={} if env is None else _environment(env, ConfigurationError),
            cwd=None if cwd is None else _directory(cwd, ConfigurationError),
            stdin=stdin,
            ok_codes=good,
            retry_codes=retried,
            max_output=_output(max_output),
            user=None if user is None else _user(user),
            inherits=_switch(inherit_env, "inherit_env"),
            grace_s=None if grace is None else duration_s(grace, name="grace", allow_zero=True),
        )
    )


def _user(user: object) -> str:
    if not isinstance(user, str) or not user or not user.isprintable():
        raise ConfigurationError(
            f"user is {shown(user)}; it is the name of a user of the worker's machine, or None"
        )
    return user


def _switch(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} is {shown(value)}; it is True or False")
    return value


def _argv(name: str, argv: object) -> tuple[str, ...]:
    if isinstance(argv, str):
        if not argv.strip():
            raise ConfigurationError(f"the shell text of {name} is empty: write what the shell is to run")
        _reject_odd(argv, "the shell text", ConfigurationError)
        return (SHELL, "-c", argv, name)
    if not isinstance(argv, Sequence) or isinstance(argv, (bytes, bytearray)):
        raise ConfigurationError(
            f"a command is a list such as ['tar', '-c', 'data'], or a text for the shell, not {shown(argv)}"
        )
    if not argv or argv[0] == "":
        raise ConfigurationError(f"the command of {name} is empty: the list begins with the program")
    for index, part in enumerate(argv):
        if not isinstance(part, str):
            raise ConfigurationError(
                f"the command of {name} has {shown(part)} at place {index}; all of it is text: write str(…)"
            )
        _reject_odd(part, f"the command's place {index}", ConfigurationError)
    return tuple(argv)


def _environment(env: object, refused: type[ConfigurationError | PayloadError]) -> dict[str, str | None]:
    if not isinstance(env, Mapping):
        raise refused(f"env is {shown(env)}; it is a dict from variables to text, or None to remove one")
    for name, value in env.items():
        if not isinstance(name, str) or not name or "=" in name:
            raise refused(f"env has {shown(name)} for a name; that is text without '='")
        if value is not None and not isinstance(value, str):
            raise refused(f"env[{name!r}] is {shown(value)}; it is text, or None to remove the variable")
        _reject_odd(name, f"env[{name!r}]", refused)
        _reject_odd(value or "", f"env[{name!r}]", refused)
    return dict(env)


def _directory(cwd: object, refused: type[ConfigurationError | PayloadError]) -> str:
    text = str(cwd) if hasattr(type(cwd), "__fspath__") else cwd
    if not isinstance(text, str) or not text:
        raise refused(f"cwd is {shown(cwd)}; it is the path of a directory, or None for this process's own")
    if text.startswith("~"):
        raise refused(f"cwd is {text!r}, and nothing expands '~' here: write the path itself")
    _reject_odd(text, "cwd", refused)
    return text


def _codes(codes: object, name: str, *, least: int) -> frozenset[int]:
    given = (codes,) if isinstance(codes, int) else codes
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigurationError(f"{name} is {shown(codes)}; it is exit codes, such as (0, 1)")
    found = list(given)
    for code in found:
        if isinstance(code, bool) or not isinstance(code, int) or not least <= code <= LARGEST_CODE:
            raise ConfigurationError(
                f"{name} has {shown(code)}; an exit code is a whole number from 0 to {LARGEST_CODE}"
                + ("" if least == 0 else f", or minus a signal's, down to {least}")
            )
    return frozenset(found)


def _output(max_output: object) -> int:
    if isinstance(max_output, bool) or not isinstance(max_output, int) or not 0 <= max_output <= MOST_OUTPUT:
        raise ConfigurationError(
            f"max_output is {shown(max_output)}; it is a number of bytes from 0 to {MOST_OUTPUT:,}"
        )
    return max_output


def _reject_odd(
    text: str, where: str, refused: type[ConfigurationError | PayloadError] = PayloadError
) -> None:
    if "\0" in text:
        raise refused(f"{where} holds a NUL character, and no program can be given one")
    if not _is_text(text, "surrogateescape"):
        raise refused(f"{where} holds a lone surrogate, and no program can be given one")


def _is_text(text: str, errors: str = "strict") -> bool:
    """Whether it can be written as UTF-8; `surrogateescape` lets the odd bytes of file names pass, too."""
    try:
        text.encode("utf-8", errors)
    except UnicodeEncodeError:
        return False
    return True
