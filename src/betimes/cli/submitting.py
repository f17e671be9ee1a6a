"""What `betimes submit` does, once it is known what is asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from betimes.cli.calls import app_of, bind_line, bind_texts, find_task
from betimes.cli.exits import Exit, Failure
from betimes.cli.ids import whole_id
from betimes.cli.opening import application, as_client
from betimes.cli.output import show_json
from betimes.cli.progress import bar
from betimes.core.priority import Priority
from betimes.errors import ConfigurationError, JobCancelled, JobFailed, JobTimedOut
from betimes.handles import JobHandle
from betimes.scheduler import Scheduler
from betimes.tasks import BoundJob, Submitter, Task

MOST_LINES = 1_000_000
"""The most jobs that one command submits."""

AT_ONCE = 1000
"""How many of them go in one atomic write."""

_GIVEN = ("delay", "run_at", "queue", "key", "key_for", "job_id", "timeout", "retry", "expires")
"""Options that `using()` takes as they are, and only if they were given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked for.

    Attributes:
        scheduler, task: of which application, and of which task in it.
        using: options of `using()`, but for `depends_on`.
        depends_on: ids of jobs, or beginnings of them.
        waits: whether the job's end is waited for.
        wait_s: the most seconds to wait; None: as long as it takes.
        is_dry: whether nothing is to be submitted.
        as_json: whether a machine reads what is printed.
    """

    scheduler: Scheduler
    task: Task[..., Any]
    using: dict[str, Any]
    depends_on: tuple[str, ...]
    waits: bool
    wait_s: float | None
    is_dry: bool
    as_json: bool

    @classmethod
    def of(cls, app: str | None, task: str, options: dict[str, Any]) -> Asked:
        """Read it from the options of the command.

        Raises:
            click.UsageError: they do not go together, or no application is named.
            ConfigurationError, UnknownTask, Failure: there is no such application or task.
        """
        if options["stdin"]:
            _refuse_for_many(options)
        if not app:
            found = app_of(task)
            app, task = found if found is not None else (app, task)
        scheduler = application(app)
        if not scheduler._store.is_durable and not options["dry_run"]:  # noqa: SLF001 - as in `opening`
            raise Failure(
                "its jobs are in the memory of the process that runs them, and none can be submitted from "
                'here; with a store in a file, as Scheduler("jobs.db"), they can',
                Exit.SETTINGS,
            )
        using = {name: options[name] for name in _GIVEN if options[name] is not None}
        if options["priority"] is not None:
            using["priority"] = _priority(options["priority"])
        return cls(
            scheduler=scheduler,
            task=find_task(scheduler, task),
            using=using
            | {
                "replace": options["replace"],
                "tags": options["tag"],
                "on_dependency_failure": options["on_dependency_failure"],
            },
            depends_on=options["depends_on"],
            waits=options["wait"] or options["wait_timeout"] is not None,
            wait_s=options["wait_timeout"],
            is_dry=options["dry_run"],
            as_json=options["as_json"],
        )

    def submitter(self, depends_on: Sequence[str] = ()) -> Submitter[..., Any]:
        """Return the task with the options.

        Raises:
            click.UsageError: one of them is wrong.
        """
        try:
            return self.task.using(**self.using, depends_on=depends_on)
        except ConfigurationError as error:
            raise click.UsageError(str(error)) from error

    async def whole(self) -> list[str]:
        """Return the whole ids of the jobs to wait for."""
        return [await whole_id(self.scheduler, each) for each in self.depends_on]


def _refuse_for_many(options: dict[str, Any]) -> None:
    for name in ("job_id", "key", "wait_timeout"):
        if options[name] is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} is for one job, and not for --stdin")
    if options["wait"]:
        raise click.UsageError("--wait is for one job, and not for --stdin")


def _priority(text: str | int) -> int:
    names = {each.name.lower(): int(each) for each in Priority}
    name = str(text).strip().lower()
    try:
        return names[name] if name in names else int(name)
    except ValueError:
        raise click.UsageError(
            f"--priority is {text!r}; it is a number from -1000 to 1000, or one of {', '.join(names)}"
        ) from None


def submit_one(asked: Asked, texts: Sequence[str]) -> None:
    """Submit one job, and print its id; or its result, if it is waited for.

    Raises:
        Failure: the call does not fit the task, or what was waited for came out badly, or not in time.
    """
    bound = bind_texts(asked.submitter(), asked.task, texts)
    if asked.is_dry:
        _show_bound([bound], as_json=asked.as_json)
        return

    async def go(scheduler: Scheduler) -> None:
        if asked.depends_on:
            again = bind_texts(asked.submitter(await asked.whole()), asked.task, texts)
            (job,) = await scheduler.submit_many([again])
        else:
            (job,) = await scheduler.submit_many([bound])
        if asked.waits:
            await _wait(job, asked)
        elif asked.as_json:
            show_json(_shown(job, asked.task))
        else:
            click.echo(job.id)

    as_client(asked.scheduler, go, may_make=True)


def _shown(job: JobHandle[Any], task: Task[..., Any]) -> dict[str, Any]:
    return {"id": job.id, "task": task.name}


async def _wait(job: JobHandle[Any], asked: Asked) -> None:
    """Wait for a job's end; print its result, or say how it ended otherwise."""
    if not asked.as_json:
        click.echo(job.id, err=True)
    record: dict[str, Any] = _shown(job, asked.task)
    failure: Failure | None = None
    try:
        await job.wait(asked.wait_s)
        result = await job.result(timeout=asked.wait_s)
        record |= {"status": "completed", "result": _plain(asked.task, result)}
    except TimeoutError as error:
        record |= {"status": str(await job.status())}
        failure = Failure(str(error), Exit.UNFINISHED)
    except (JobFailed, JobTimedOut, JobCancelled) as error:
        record |= {"status": str(await job.status()), "error": str(error)}
        failure = Failure(str(error), Exit.NO)
    if asked.as_json:
        show_json(record)
    elif failure is None:
        show_json(record["result"])
    if failure is not None:
        raise failure


def _plain(task: Task[..., Any], result: Any) -> Any:
    """Return a result as plain JSON values, as it is stored."""
    import msgspec  # noqa: PLC0415 - waiting alone needs it

    return msgspec.json.decode(task._task.signature.encode_result(result))  # noqa: SLF001 - as in `opening`


def submit_lines(asked: Asked) -> None:
    """Submit a job for each line of stdin, and print their ids; all lines are checked before.

    Raises:
        Failure: a line is wrong, which is named, and nothing was submitted; or there are too many.
    """
    lines = _numbered(sys.stdin)
    bound = _bind_all(asked.submitter(), lines)
    if asked.is_dry:
        _show_bound(bound, as_json=asked.as_json)
        return
    ids: list[str] = []

    async def go(scheduler: Scheduler) -> None:
        jobs = bound
        if asked.depends_on:
            jobs = _bind_all(asked.submitter(await asked.whole()), lines)
        with bar("Submitting", len(jobs)) as advance:
            for start in range(0, len(jobs), AT_ONCE):
                made = [job.id for job in await scheduler.submit_many(jobs[start : start + AT_ONCE])]
                ids.extend(made)
                advance(len(made))
                if not asked.as_json:
                    click.echo("\n".join(made))

    try:
        as_client(asked.scheduler, go, may_make=True)
    except BaseException:
        if ids:
            click.echo(f"{len(ids)} of {len(bound)} jobs were submitted before this:", err=True)
        raise
    if asked.as_json:
        show_json([{"id": each, "task": asked.task.name} for each in ids])


def _numbered(stream: Iterable[str]) -> list[tuple[int, str]]:
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(stream, start=1):
        if line.strip():
            lines.append((number, line))
        if len(lines) > MOST_LINES:
            raise Failure(f"there are more than {MOST_LINES:,} lines: submit them in parts", Exit.USAGE)
    return lines


def _bind_all(submitter: Submitter[..., Any], lines: Sequence[tuple[int, str]]) -> list[BoundJob[Any]]:
    bound: list[BoundJob[Any]] = []
    for number, line in lines:
        try:
            bound.append(bind_line(submitter, line))
        except Failure as error:
            raise Failure(f"line {number} {error.message}; nothing was submitted", Exit.USAGE) from error
    return bound


def _show_bound(bound: Sequence[BoundJob[Any]], *, as_json: bool) -> None:
    """Show what would be submitted."""
    import msgspec  # noqa: PLC0415 - as above

    if as_json:
        show_json(
            [{"task": each.task.name, "arguments": msgspec.json.decode(each.payload)} for each in bound]
        )
        return
    for each in bound:
        click.echo(f"{each.task.name} {each.payload.decode()}")
    click.echo(f"{len(bound)} to submit; nothing was submitted", err=True)
