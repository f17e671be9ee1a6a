"""`betimes queue …`: queues listed, paused, resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from betimes.cli.opening import as_client, store_options, target
from betimes.cli.output import Column, json_option, show_table

if TYPE_CHECKING:
    from betimes.core.queue_reason import QueueExplanation
    from betimes.scheduler import Scheduler


@click.group()
def queue() -> None:
    """List, pause and resume queues."""


@queue.command("list")
@store_options
@json_option
def list_(*, app: str | None, url: str | None, as_json: bool) -> None:
    """List the queues that have live jobs, are paused, or are served by name."""
    columns = [
        Column("queue", lambda each: each.queue),
        Column("ready", lambda each: each.ready),
        Column("delayed", lambda each: each.delayed, spare=2),
        Column("blocked", lambda each: each.blocked, spare=3),
        Column("running", lambda each: each.running),
        Column("put aside", lambda each: each.put_aside, spare=4),
        Column("due since (UTC)", lambda each: each.oldest_due_at, spare=5),
        Column("workers", lambda each: len(each.workers), spare=1),
        Column("state", lambda each: ", ".join(sorted(code.value for code in each.codes))),
    ]
    show_table(as_client(target(app, url), _all), columns, as_json=as_json, empty="no queue")


async def _all(scheduler: Scheduler) -> list[QueueExplanation]:
    store = scheduler._store  # noqa: SLF001 - the command line is part of the package
    names = set(await store.counts()) | set(await store.paused_queues())
    for worker, _ in await store.workers():
        names |= set(worker.queues or ())
    return [await scheduler.explain_queue(name) for name in sorted(names)]


@queue.command()
@click.argument("names", nargs=-1, required=True, metavar="QUEUE...")
@store_options
def pause(*, names: tuple[str, ...], app: str | None, url: str | None) -> None:
    """Let nothing of these queues start until they are resumed; what runs goes on."""

    async def act(scheduler: Scheduler) -> None:
        for name in names:
            await scheduler.pause_queue(name)
            click.echo(f"{name} is paused")

    as_client(target(app, url), act)


@queue.command()
@click.argument("names", nargs=-1, required=True, metavar="QUEUE...")
@store_options
def resume(*, names: tuple[str, ...], app: str | None, url: str | None) -> None:
    """Let jobs of these queues start again."""

    async def act(scheduler: Scheduler) -> None:
        for name in names:
            await scheduler.resume_queue(name)
            click.echo(f"{name} is on")

    as_client(target(app, url), act)
