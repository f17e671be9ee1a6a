"""`betimes workers …`: who runs jobs of a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from betimes.cli.opening import as_client, store_options, target
from betimes.cli.output import Column, json_option, show_table

if TYPE_CHECKING:
    from betimes.scheduler import Scheduler

PAGE = 1000


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One registered worker.

    Attributes:
        id: the id it registered under.
        host, pid: its process.
        is_alive: whether it runs, as far as can be told: its lease holds, and its process has not ended.
        lease_s: how long it keeps its jobs without a sign of life, in seconds.
        queues: the queues it serves; None: all.
        concurrency: the most attempts it runs at once.
        running: how many jobs it holds.
    """

    id: str
    host: str
    pid: int
    is_alive: bool
    lease_s: float
    queues: Collection[str] | None
    concurrency: int
    running: int


@click.group()
def workers() -> None:
    """List the workers."""


@workers.command("list")
@store_options
@json_option
def list_(*, app: str | None, url: str | None, as_json: bool) -> None:
    """List the workers that are registered: those at work, and those found dead whose end is not settled."""
    columns = [
        Column("id", lambda row: row.id),
        Column("host", lambda row: row.host, spare=2),
        Column("pid", lambda row: row.pid),
        Column("alive", lambda row: row.is_alive),
        Column("running", lambda row: f"{row.running} of {row.concurrency}"),
        Column("queues", lambda row: "all" if row.queues is None else ", ".join(row.queues), spare=1),
        Column("lease", lambda row: f"{row.lease_s:g} s", spare=3),
    ]
    show_table(as_client(target(app, url), _rows), columns, as_json=as_json, empty="no worker")


async def _rows(scheduler: Scheduler) -> list[WorkerRow]:
    from betimes.runtime.explaining import workers_seen  # noqa: PLC0415 - `--help` does without

    held = await _held(scheduler)
    seen = await workers_seen(scheduler._store)  # noqa: SLF001 - the command line is part of the package
    rows = [
        WorkerRow(
            id=each.id,
            host=each.host,
            pid=each.pid,
            is_alive=each.is_working,
            lease_s=each.lease_us / 1_000_000,
            queues=each.queues,
            concurrency=each.concurrency,
            running=held[each.id],
        )
        for each in seen
    ]
    return sorted(rows, key=lambda row: (not row.is_alive, row.host, row.pid, row.id))


async def _held(scheduler: Scheduler) -> Counter[str | None]:
    """Count the running jobs of each worker."""
    held: Counter[str | None] = Counter()
    before: int | None = None
    while page := await scheduler.jobs(status="running", limit=PAGE, before=before):
        held.update(info.worker for info in page)
        before = page[-1].version
    return held
