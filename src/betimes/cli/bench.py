"""`betimes bench`: how fast jobs are taken and run on this machine, in memory and in a file."""

from __future__ import annotations

from pathlib import Path

import click

from betimes.cli.output import Column, json_option, show_json, show_table


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(0.01, 600),
    default=0.5,
    show_default=True,
    help="How long each of the eight steps may take.",
)
@click.option(
    "-c",
    "--concurrency",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    metavar="NUMBER",
    help="Most jobs at once.",
)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where the file is made, and removed afterwards: name one on the disk that you will use.",
)
@json_option
def bench(*, seconds: float, concurrency: int, folder: Path | None, as_json: bool) -> None:
    """Measure how fast this machine takes and runs jobs that do nothing.

    It measures a scheduler in memory and one on a new SQLite file: from submit to result, one at a time; the
    submit of one job after the other, and of 1,000 in one write, while nothing runs; and how many run in a
    second. What your jobs do comes on top, and so does what else the machine does meanwhile.
    """
    from betimes.cli.measuring import measure_all  # noqa: PLC0415 - `--help` does without

    machine, measures = measure_all(seconds, concurrency=concurrency, folder=folder)
    if as_json:
        show_json({"machine": machine, "measures": measures})
        return
    for line in machine.lines():
        click.echo(line)
    click.echo()
    columns = (
        Column("STORE", lambda each: each.store),
        Column("WHAT", lambda each: each.what),
        Column("JOBS", lambda each: f"{each.jobs:,}", spare=2),
        Column("SECONDS", lambda each: f"{each.seconds:.2f}", spare=1),
        Column("A SECOND", lambda each: f"{each.per_second:,.0f}"),
        Column("MEDIAN", lambda each: _ms(each.median_ms)),
        Column("95 %", lambda each: _ms(each.p95_ms)),
    )
    show_table(measures, columns, as_json=False)


def _ms(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f} ms"
