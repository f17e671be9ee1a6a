"""`betimes worker`: runs an application's jobs until a signal comes, or until there are none left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from betimes.cli.opening import app_argument, application
from betimes.cli.values import DURATION

if TYPE_CHECKING:
    from betimes.scheduler import Scheduler


@click.command()
@app_argument
@click.option("-q", "--queue", multiple=True, metavar="NAME", help="Serve this queue only; repeatable.")
@click.option(
    "-c", "--concurrency", type=click.IntRange(1, 100_000), metavar="NUMBER", help="Most attempts at once."
)
@click.option("--burst", is_flag=True, help="Run what there is, and exit when nothing is left.")
@click.option(
    "--soon",
    type=DURATION,
    default=10.0,
    show_default="10s",
    help="With --burst: wait for what is due within this time, retries too.",
)
@click.option("--drain", type=DURATION, default=25.0, show_default="25s", help="Time to finish at the end.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="What is logged to stderr, unless APP sets up logging by itself.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 1000),
    metavar="NUMBER",
    help="Run so many workers, and keep them running.",
)
@click.option("--until-stdin-ends", is_flag=True, hidden=True)
@click.option("--one-of-several", is_flag=True, hidden=True)
def worker(
    app: str | None,
    *,
    queue: tuple[str, ...],
    concurrency: int | None,
    burst: bool,
    soon: float,
    drain: float,
    log_level: str,
    processes: int | None,
    until_stdin_ends: bool,
    one_of_several: bool,
) -> None:
    """Run the jobs and schedules of APP: module:name, a module, or a file.

    SIGINT or SIGTERM: claim nothing more, let what runs finish within --drain, give back the rest, exit with
    0. A second signal ends at once; the jobs that ran then are taken back by the next worker: within two
    seconds on this machine, elsewhere (as in another container) when their lease is over.

    With --burst it exits with 0, however the jobs ended, when nothing runs here, nothing can start here, and
    nothing is due within --soon. What waits for something else does not count: a paused queue, a task unknown
    here, a limit that other workers hold.

    With --processes N it runs N such workers, each a process that runs up to --concurrency jobs, and starts
    one that has died anew: after half a second, and after up to 30 s if it dies again and again. A signal is
    passed on: the first lets all of them finish, the second ends all at once. Exit code: 0 when all have
    finished, 130 after a second signal, 1 when one had to be killed or has ended badly; and that of a worker
    that could not start for a reason that stays (2, 3, 6).
    """
    if processes is not None and not one_of_several:
        options = _options(queue, concurrency, burst=burst, soon=soon, drain=drain, log_level=log_level)
        _run_several(app, processes, options, burst=burst, drain=drain, log_level=log_level)
        return
    from betimes.cli.working import Lifeline, log_to_stderr, refuse_memory, work  # noqa: PLC0415 - `--help` does without

    lifeline = Lifeline(drain) if until_stdin_ends else None
    if lifeline is not None:
        lifeline.watch()
    scheduler = application(app)
    if one_of_several:
        refuse_memory(scheduler)
    log_to_stderr(log_level)
    adjust(scheduler, queue, concurrency)
    work(scheduler, drain_s=drain, soon_s=soon if burst else None, lifeline=lifeline)


def _options(
    queue: tuple[str, ...], concurrency: int | None, *, burst: bool, soon: float, drain: float, log_level: str
) -> list[str]:
    """Return what a worker is given so that it goes by these, wherever they came from."""
    options = ["--drain", f"{drain}", "--soon", f"{soon}", "--log-level", log_level]
    for name in queue:
        options += ["--queue", name]
    if concurrency is not None:
        options += ["--concurrency", f"{concurrency}"]
    return [*options, "--burst"] if burst else options


def _run_several(
    app: str | None, count: int, options: list[str], *, burst: bool, drain: float, log_level: str
) -> None:
    import sys  # noqa: PLC0415 - as above

    from betimes.cli.fleet import run_fleet  # noqa: PLC0415 - as above

    if not app:
        application(app)  # which says what is missing
    command = [sys.executable, "-m", "betimes", "worker", str(app), "--until-stdin-ends", "--one-of-several"]
    run_fleet([*command, *options], count, is_burst=burst, drain_s=drain, log_level=log_level)


def adjust(scheduler: Scheduler, queues: tuple[str, ...], concurrency: int | None) -> None:
    """Have a scheduler serve other queues, or another number of jobs, than its program says."""
    from betimes.errors import ConfigurationError  # noqa: PLC0415 - as below
    from betimes.operating import with_settings  # noqa: PLC0415 - `--help` does without
    from betimes.tasks import check_name  # noqa: PLC0415

    changes: dict[str, Any] = {}
    if queues:
        try:
            names = tuple(dict.fromkeys(check_name(name, "--queue") for name in queues))
        except ConfigurationError as error:
            raise click.UsageError(str(error)) from error
        shares = scheduler._parts.settings.shares  # noqa: SLF001 - the command line is part of the package
        changes["queues"] = names
        # The program's shares hold on among those of its queues that are served here.
        known = shares is not None and all(name in shares for name in names)
        changes["shares"] = {name: shares[name] for name in names} if shares and known else None
    if concurrency is not None:
        changes["concurrency"] = concurrency
    if changes:
        with_settings(scheduler, **changes)
