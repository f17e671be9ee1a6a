"""`betimes worker`: runs an application's jobs until a signal comes, or until there are none left."""

from __future__ import annotations

from typing import Any

import click

from betimes.cli.opening import app_argument, application
from betimes.cli.values import DURATION


@click.command()
@app_argument
@click.option("-q", "--queue", "queues", multiple=True, metavar="NAME", help="Serve this queue; repeatable.")
@click.option("--concurrency", type=click.IntRange(1, 100_000), help="Most attempts at once.")
@click.option("--burst", is_flag=True, help="Run what there is, and exit when nothing is left.")
@click.option("--drain", type=DURATION, default=25.0, show_default="25s", help="Time to finish at the end.")
def worker(
    app: str | None, queues: tuple[str, ...], concurrency: int | None, burst: bool, drain: float
) -> None:
    """Run the jobs and schedules of APP: module:name, a module, or a file.

    SIGINT or SIGTERM: claim nothing more, let what runs finish within --drain, give back the rest. A second
    signal ends at once; its jobs run again when the lease is over.
    """
    from betimes.operating import with_settings  # noqa: PLC0415 - `--help` does without

    scheduler = application(app)
    changes: dict[str, Any] = {}
    if queues:
        changes |= {"queues": tuple(dict.fromkeys(queues)), "shares": None}
    if concurrency is not None:
        changes["concurrency"] = concurrency
    if changes:
        with_settings(scheduler, **changes)
    scheduler.run(drain=drain)
