"""`betimes dev`: a worker for development, begun anew whenever the program's files change."""

from __future__ import annotations

from pathlib import Path

import click

from betimes.cli.opening import app_argument
from betimes.cli.values import DURATION


@click.command()
@app_argument
@click.option("-q", "--queue", multiple=True, metavar="NAME", help="Serve this queue only; repeatable.")
@click.option(
    "-c", "--concurrency", type=click.IntRange(1, 100_000), metavar="NUMBER", help="Most attempts at once."
)
@click.option(
    "--watch",
    multiple=True,
    metavar="PATH",
    type=click.Path(exists=True),
    help="Watch this folder or file, too; repeatable.",
)
@click.option(
    "--drain", type=DURATION, default=3.0, show_default="3s", help="Time to finish before each new start."
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="What is logged to stderr, unless APP sets up logging by itself.",
)
def dev(
    app: str | None,
    *,
    queue: tuple[str, ...],
    concurrency: int | None,
    watch: tuple[str, ...],
    drain: float,
    log_level: str,
) -> None:
    """Run the jobs and schedules of APP in a worker that begins anew after each change of its files.

    Watched are the Python files below the folder that APP is imported from: looked at twice a second. A
    program that cannot be imported says why, and is tried again after the next change. Ctrl-C, or SIGTERM,
    ends both within --drain; a second one ends at once.
    """
    from betimes.cli.supervising import supervise  # noqa: PLC0415 - `--help` does without

    if not app:
        raise click.UsageError(
            "which application? Name it: module:name or a file, BETIMES_APP=…, or app = … in [tool.betimes] "
            "of pyproject.toml"
        )
    options = ["--drain", f"{drain}", "--log-level", log_level]
    for name in queue:
        options += ["--queue", name]
    if concurrency is not None:
        options += ["--concurrency", f"{concurrency}"]
    supervise(app, options, [Path(each) for each in watch])
