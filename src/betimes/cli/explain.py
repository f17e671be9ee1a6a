"""`betimes explain …`: why a job, a schedule or a queue has not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from betimes.cli.ids import whole_id
from betimes.cli.opening import as_client, store_options, target
from betimes.cli.output import json_option, show_json
from betimes.cli.values import INSTANT

if TYPE_CHECKING:
    from datetime import datetime

    from betimes.scheduler import Scheduler


@click.command()
@click.argument("job_id", required=False, metavar="[JOB]")
@click.option("--schedule", metavar="SCHEDULE", help="Explain a schedule.")
@click.option("--at", type=INSTANT, help="Of a schedule: why it did or did not run then.")
@click.option("-q", "--queue", metavar="QUEUE", help="Explain a queue.")
@store_options
@json_option
def explain(
    *,
    job_id: str | None,
    schedule: str | None,
    at: datetime | None,
    queue: str | None,
    app: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Say why JOB has not run, what it is doing, or how it ended; or how a schedule or a queue stands."""
    if [job_id, schedule, queue].count(None) != 2:  # noqa: PLR2004 - one of three is given
        raise click.UsageError("name one of them: a job by its id, --schedule, or --queue")
    if at is not None and schedule is None:
        raise click.UsageError("--at asks about an instant of a schedule: add --schedule")

    async def ask(scheduler: Scheduler) -> Any:
        if job_id is not None:
            return await scheduler.explain(await whole_id(scheduler, job_id))
        if schedule is not None:
            return await scheduler.explain_schedule(schedule, at)
        assert queue is not None
        return await scheduler.explain_queue(queue)

    explanation = as_client(target(app, url), ask)
    if as_json:
        show_json(explanation)
    else:
        click.echo(str(explanation))
