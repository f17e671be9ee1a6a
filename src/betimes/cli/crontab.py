"""`betimes crontab`: runs crontabs, each line a schedule of a command; or explains them."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from betimes.cli.exits import Exit, Failure
from betimes.cli.output import json_option
from betimes.cli.values import DURATION

if TYPE_CHECKING:
    from betimes.cli.crontab_files import CrontabFiles

_OF_THE_SYSTEM = ("/etc/crontab", "/etc/cron.d")
_DAY_S = 86_400.0
_GRACE_S = 10.0


def _no_url(_ctx: click.Context, _param: click.Parameter, value: str | None) -> Path | None:
    """Take a path, and refuse what would make a folder named `sqlite:`."""
    if value is not None and "://" in value:
        raise click.BadParameter("give the path of a file, not a URL")
    return None if value is None else Path(value)


def _named(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[Path, ...]:
    """Take paths, and refuse an empty one, as of a variable without a value: it would mean this folder."""
    if not all(values):
        raise click.BadParameter("the name is empty; for this folder write .")
    return tuple(map(Path, values))


@click.command()
@click.argument("files", nargs=-1, type=click.Path(), callback=_named, metavar="[FILE]...")
@click.option(
    "--system", is_flag=True, help="The files have a user column; default: /etc/crontab, /etc/cron.d."
)
@click.option("--check", is_flag=True, help="Explain each line, and run nothing.")
@json_option
@click.option("--tz", metavar="ZONE", help="Zone of the schedules without CRON_TZ; default: this machine's.")
@click.option(
    "--store",
    type=click.Path(),
    callback=_no_url,
    metavar="FILE",
    help="Where jobs and history are kept.",
)
@click.option("--keep", type=DURATION, default=30 * _DAY_S, show_default="30d", help="How long jobs stay.")
@click.option(
    "-c",
    "--concurrency",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="Most runs at once.",
)
@click.option("--drain", type=DURATION, default=25.0, show_default="25s", help="Time to finish at the end.")
def crontab(
    files: tuple[Path, ...],
    *,
    system: bool,
    check: bool,
    as_json: bool,
    tz: str | None,
    store: Path | None,
    keep: float,
    concurrency: int,
    drain: float,
) -> None:
    """Run the crontabs FILE…: each line a schedule of a command. A FILE may be a folder, as /etc/cron.d.

    Each run is a job, with its log, its exit code and its history: betimes job list --url STORE. A comment
    above a line says how its runs are treated: "# betimes: timeout=5m overlap=skip missed=latest retry=3
    name=backup". A line that is wrong is reported, and the others run. Files that change are read again.

    --check explains each line in English, with its next fires and what may surprise; it exits with 1 if
    anything is wrong.
    """
    from betimes.cli.crontab_files import CrontabFiles, host_zone  # noqa: PLC0415 - `--help` does without
    from betimes.core.triggers.zones import zone_of  # noqa: PLC0415

    _print_whatever_comes()
    paths = files or tuple(Path(each) for each in _OF_THE_SYSTEM if system and Path(each).exists())
    if not paths:
        own = "this machine has none" if system else "pass --system for the machine's own"
        raise click.UsageError(f"which crontab? Name its file: {own}")
    if as_json and not check:
        raise click.UsageError("--json goes with --check")
    zone = zone_of(tz or host_zone() or "UTC").name
    found = CrontabFiles(paths, system=system, tz=zone)
    if check:
        _show(found, zone, as_json=as_json)
    else:
        _run(
            found,
            store or _default_store(paths, system=system),
            keep=keep,
            concurrency=concurrency,
            drain=drain,
        )


def _print_whatever_comes() -> None:
    """Have stdout escape what it cannot encode: files may hold any bytes, and the log must go on."""
    import sys  # noqa: PLC0415 - `--help` does without

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


def _show(files: CrontabFiles, zone: str, *, as_json: bool) -> None:
    from betimes.cli.crontab_showing import for_machines, in_words  # noqa: PLC0415 - `--help` does without
    from betimes.cli.output import show_json  # noqa: PLC0415
    from betimes.clock import SystemClock  # noqa: PLC0415

    found = files.read()
    now = SystemClock().now()
    if as_json:
        show_json(for_machines(found, tz=zone, now=now))
    else:
        for line in in_words(found, tz=zone, now=now):
            click.echo(line)
    if found.problems:
        raise click.exceptions.Exit(int(Exit.NO))


def _run(files: CrontabFiles, store: Path, *, keep: float, concurrency: int, drain: float) -> None:
    from betimes.cli.crontab_log import CrontabLog, ToldCommandExecutor  # noqa: PLC0415 - `--help` does without
    from betimes.cli.crontab_running import CrontabRunner, run_crontab  # noqa: PLC0415
    from betimes.cli.crontab_tasks import QUEUE  # noqa: PLC0415
    from betimes.clock import SystemClock  # noqa: PLC0415
    from betimes.scheduler import Scheduler  # noqa: PLC0415

    _check_named(files)
    _prepare(store)
    lock = _lock(store)
    clock = SystemClock()
    log = CrontabLog(clock.now, files.tz, click.echo)
    executor = ToldCommandExecutor(concurrency, grace_s=_GRACE_S, log=log)
    scheduler = Scheduler(
        store,
        clock=clock,
        concurrency=concurrency,
        queues=[QUEUE],
        keep=keep,
        grace=_GRACE_S,
        executors=[executor],
    )
    mark = _beside(store, "boot")
    runner = CrontabRunner(scheduler, files, log, boot_mark=mark, boot_id=clock.boot_id())
    log.say(f"starts: {', '.join(map(str, files.paths))}; jobs and history: betimes job list --url {store}")
    with lock:
        run_crontab(runner, scheduler, log, drain_s=drain)


def _check_named(files: CrontabFiles) -> None:
    """Refuse to begin without a file that was named: its entries would count as gone.

    Raises:
        Failure: it is not there, or cannot be read.
    """
    for problem in files.read().problems:
        if problem.line == 0 and Path(problem.file) in files.paths:
            raise Failure(str(problem), Exit.SETTINGS)


def _lock(store: Path) -> IO[bytes]:
    """Have this process be the only one that runs crontabs on the store, until what is returned is closed.

    Another one with other files would take the entries of these for gone.

    Raises:
        Failure: another one does.
    """
    import fcntl  # noqa: PLC0415 - `--help` does without

    file = _beside(store, "crontab").open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise Failure(
            f"another betimes crontab runs on {store}: stop it, or name another --store", Exit.UNAVAILABLE
        ) from None
    return file


def _beside(store: Path, what: str) -> Path:
    """Return the path of a file beside the store: one, by whatever links the store is named."""
    real = store.resolve()
    return real.with_name(f"{real.name}.{what}")


def _default_store(paths: tuple[Path, ...], *, system: bool) -> Path:
    """Return the file of these crontabs: the same for the same paths."""
    import os  # noqa: PLC0415 - `--help` does without
    from hashlib import sha256  # noqa: PLC0415

    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    names = [str(path.absolute()) for path in paths]
    digest = sha256("\0".join([str(system), *names]).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return state / "betimes" / f"crontab-{paths[0].stem}-{digest}.db"


def _prepare(store: Path) -> None:
    """Make the file, where there is none, so that nobody else can read what commands wrote.

    Raises:
        Failure: it cannot be made.
    """
    try:
        store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (store, _beside(store, "crontab")):
            path.touch(mode=0o600, exist_ok=True)
    except (OSError, RuntimeError) as error:  # the latter: links that lead in a circle
        why = getattr(error, "strerror", None) or error
        raise Failure(f"{store} cannot be made: {why}; say where with --store", Exit.SETTINGS) from None
