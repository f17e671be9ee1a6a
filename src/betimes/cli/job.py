"""`betimes job …`: jobs listed, shown, taken back, cancelled; their logs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from betimes.cli.changes import Change, Chosen
from betimes.cli.ids import shortened, whole_id
from betimes.cli.opening import as_client, store_options, target
from betimes.cli.output import Column, json_option, show_json, show_json_line, show_record, show_table
from betimes.cli.which import PAGE, Which, filters

if TYPE_CHECKING:
    from datetime import datetime

    from betimes.core.log import LogLine
    from betimes.handles import JobHandle, JobInfo
    from betimes.scheduler import Scheduler

FOLLOW_EVERY_S = 0.5


@click.group()
def job() -> None:
    """List, show, retry and cancel jobs; read their logs."""


@job.command("list")
@filters
@click.option("-n", "--limit", type=click.IntRange(1, PAGE), default=50, show_default=True, help="The most.")
@click.option("--before", type=int, metavar="VERSION", help="The next page: only versions before this one.")
@store_options
@json_option
def list_(
    *, which: Which, limit: int, before: int | None, app: str | None, url: str | None, as_json: bool
) -> None:
    """List jobs, newest first."""

    async def ask(scheduler: Scheduler) -> tuple[list[JobInfo], dict[str, str]]:
        found = await which.page(scheduler, limit, before)
        return found, {} if as_json else await shortened(scheduler, (info.id for info in found))

    found, short = as_client(target(app, url), ask)
    columns = [
        Column("id", lambda info: short[info.id]),
        Column("status", lambda info: info.status.value),
        Column("task", lambda info: info.task),
        Column("queue", lambda info: info.queue, spare=3),
        Column("priority", lambda info: info.priority, spare=6),
        Column("attempt", lambda info: info.attempt, spare=4),
        Column("submitted (UTC)", lambda info: info.submitted_at, spare=5),
        Column("run at (UTC)", lambda info: info.run_at, spare=2),
        Column("finished (UTC)", lambda info: info.finished_at, spare=7),
        Column("why", _why, spare=1),
    ]
    show_table(found, columns, as_json=as_json, empty="no such job")
    if len(found) == limit and not as_json:
        click.echo(f"There may be more: --before {found[-1].version}", err=True)


def _why(info: JobInfo) -> str | None:
    if info.error is not None and info.status.value != "completed":
        return f"{info.error.type}: {info.error.message}"[:100]
    return info.reason


@job.command()
@click.argument("job_id", metavar="JOB")
@store_options
@json_option
def show(*, job_id: str, app: str | None, url: str | None, as_json: bool) -> None:
    """Show all that is known of JOB: an id, or the beginning of one."""

    async def ask(scheduler: Scheduler) -> tuple[JobInfo, list[LogLine], str]:
        handle = await scheduler.job(await whole_id(scheduler, job_id))
        return await handle.info(), await handle.log(), str(await handle.explain())

    info, lines, explanation = as_client(target(app, url), ask)
    if as_json:
        show_json(info)
        return
    show_record(info, leave_out=("attempts", "error"))
    for attempt in info.attempts:
        error = "" if attempt.error is None else f": {attempt.error.type}: {attempt.error.message}"
        when = _span(attempt.started_at, attempt.ended_at)
        click.echo(f"attempt {attempt.attempt}  {when}  {attempt.outcome}{error}")
    if info.error is not None and info.error.traceback:
        click.echo(info.error.traceback.rstrip())
    if lines:
        click.echo(f"\nlog (the last of {len(lines)} lines; all: betimes job logs {info.id})")
        for line in lines[-10:]:
            click.echo(_log_line(line))
    click.echo(f"\n{explanation}")


def _span(start: datetime | None, end: datetime | None) -> str:
    if start is None:
        return "-"
    return f"{start:%Y-%m-%d %H:%M:%S}" + ("" if end is None else f" for {end - start}")


@job.command()
@click.argument("job_id", metavar="JOB")
@click.option("-f", "--follow", is_flag=True, help="Go on as lines come, until the job has ended.")
@store_options
@json_option
def logs(*, job_id: str, follow: bool, app: str | None, url: str | None, as_json: bool) -> None:
    """Print the log of JOB: what it wrote by ctx.log, and what its process or command printed."""

    async def ask(scheduler: Scheduler) -> None:
        handle = await scheduler.job(await whole_id(scheduler, job_id))
        after = 0
        while True:
            has_ended = (await handle.status()).is_terminal
            while lines := await handle.log(after=after):
                after = lines[-1].number
                for line in lines:
                    show_json_line(line) if as_json else click.echo(_log_line(line))
            if has_ended or not follow:
                return
            with suppress(TimeoutError):
                await handle.wait(timeout=FOLLOW_EVERY_S)

    as_client(target(app, url), ask)


def _log_line(line: LogLine) -> str:
    source = "" if line.source == "log" else f"{line.source}: "
    return f"{line.at:%Y-%m-%d %H:%M:%S}  {source}{line.text}"


def _many(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command jobs by id or by options, which it gets as `chosen`, and the options of bulk changes."""

    @wraps(fn)
    def gather(
        *, job_ids: tuple[str, ...], which: Which, dry_run: bool, yes: bool, as_json: bool, **rest: Any
    ) -> Any:
        return fn(chosen=Chosen(job_ids, which, dry_run, yes, as_json), **rest)

    command: Callable[..., Any] = gather
    for option in (
        json_option,
        store_options,
        click.option("-y", "--yes", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Only show which jobs it would be."),
        filters,
        click.argument("job_ids", nargs=-1, metavar="[JOB]..."),
    ):
        command = option(command)
    return command


@job.command()
@_many
def retry(*, chosen: Chosen, app: str | None, url: str | None) -> None:
    """Take finished jobs back, with fresh attempts: those named, or all that the options find.

    By options, those that FAILED or TIMED_OUT are meant, unless --status says otherwise. What a newer version
    of the same id has taken the place of is left alone.
    """

    async def act(scheduler: Scheduler, handle: JobHandle[Any]) -> str:
        await scheduler.retry(handle.id, by="the command line")
        return "ready"

    Change("retry", act, ("failed", "timed_out"), chosen, is_of_newest=True).run(target(app, url))


@job.command()
@_many
@click.option("--abandon", is_flag=True, help="Record CANCELLED at once, whatever running code still does.")
def cancel(*, chosen: Chosen, app: str | None, url: str | None, abandon: bool) -> None:
    """Cancel jobs: those named, or all that the options find.

    A job that has not started never starts. A running one is told to stop, and is over when its code has
    returned or its process is dead ("requested").
    """

    async def act(_: Scheduler, handle: JobHandle[Any]) -> str:
        return (await handle.cancel(abandon)).value

    Change("cancel", act, ("blocked", "delayed", "ready", "running"), chosen).run(target(app, url))
