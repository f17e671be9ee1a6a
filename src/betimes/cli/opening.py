"""Which store a command speaks to: an application's, or one named by `--url`; and how it is opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from betimes.cli.exits import Exit, Failure
from betimes.cli.settings import shared_setting

if TYPE_CHECKING:
    from betimes.scheduler import Scheduler

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_APP_HELP = "The application: module:name or a file. Or BETIMES_APP, or app in [tool.betimes]."
_URL_HELP = "The store itself: a file, or its URL. Or BETIMES_URL, or url in [tool.betimes]."


def app_argument(fn: F) -> F:
    """Give a command the argument APP, which `--app` and settings may give instead."""
    argument = click.argument("app", required=False, default=shared_setting("app"), metavar="[APP]")
    option = click.option(
        "-a",
        "--app",
        "other_app",
        hidden=True,
        expose_value=False,
        allow_from_autoenv=False,
        is_eager=True,
        callback=_take_for_argument,
    )
    return argument(option(fn))


def _take_for_argument(ctx: click.Context, _option: click.Parameter, value: str | None) -> None:
    """Have an option stand for the argument: it is what the argument is where none is written."""
    if value is not None:
        ctx.find_root().params["app"] = value


def app_option(fn: F) -> F:
    """Give a command `--app`."""
    option = click.option(
        "-a",
        "--app",
        allow_from_autoenv=False,
        default=shared_setting("app"),
        metavar="APP",
        help=_APP_HELP,
    )
    return option(fn)


def url_option(fn: F) -> F:
    """Give a command `--url`."""
    option = click.option(
        "-u",
        "--url",
        allow_from_autoenv=False,
        default=shared_setting("url"),
        metavar="URL",
        help=_URL_HELP,
    )
    return option(fn)


def store_options(fn: F) -> F:
    """Give a command `--app` and `--url`: the two ways to say which store."""
    return app_option(url_option(fn))


def application(app: str | None) -> Scheduler:
    """Return the application's scheduler.

    Raises:
        click.UsageError: none was named.
        ConfigurationError: it cannot be loaded.
    """
    from betimes.cli.apps import load_app  # noqa: PLC0415 - `--help` does without

    if not app:
        raise click.UsageError(
            "which application? Name it: module:name or a file, BETIMES_APP=…, or app = … in [tool.betimes] "
            "of pyproject.toml"
        )
    return load_app(app)


def target(app: str | None, url: str | None) -> Scheduler:
    """Return a scheduler for looking: of the store that `--url` names, or else the application's.

    Where both are given, the store is what `--url` says; unless only the application was written in the
    command itself.

    Raises:
        click.UsageError: neither was named.
        ConfigurationError: it cannot be loaded, or names no store.
        Failure: the store is in the memory of another process.
    """
    from betimes.operating import scheduler_of  # noqa: PLC0415 - `--help` does without

    if url and not (app and _is_nearer()):
        scheduler = scheduler_of(url)
    elif app:
        scheduler = application(app)
    else:
        raise click.UsageError(
            "which store? Name it by --url jobs.db, or the application b"
            "y --app, BETIMES_APP=… or [tool.betimes]"
        )
    if not scheduler._store.is_durable:  # noqa: SLF001 - the command line is part of the package
        raise Failure(
            "its jobs are in the memory of the process that runs them, and cannot be seen from here; with a "
            'store in a file, as Scheduler("jobs.db"), they can',
            Exit.SETTINGS,
        )
    return scheduler


def _is_nearer() -> bool:
    """Say whether the application was written in the command itself, and the store was not."""
    ctx = click.get_current_context(silent=True)
    if ctx is None:
        return False
    app, url = (ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in ("app", "url"))
    return app and not url


def as_client(scheduler: Scheduler, ask: Callable[[Scheduler], Awaitable[T]], *, may_make: bool = False) -> T:
    """Open a store as a client, ask something of it, and close it.

    Args:
        scheduler: of the store.
        ask: what is asked.
        may_make: whether a store that is not there yet is made. Whoever looks at one has mistyped its path: a
            new file would tell them that there are no jobs.

    Raises:
        Failure: there is no store, or an older one, and none may be made.
    """
    import asyncio  # noqa: PLC0415 - `--help` does without

    async def run() -> T:
        if not may_make:
            await _refuse_what_opening_would_change(scheduler)
        async with scheduler.client():
            return await ask(scheduler)

    return asyncio.run(run())


async def _refuse_what_opening_would_change(scheduler: Scheduler) -> None:
    from betimes.core.vitals import Trouble  # noqa: PLC0415 - as above

    vitals = await scheduler._store.vitals()  # noqa: SLF001 - as above
    if vitals.trouble is Trouble.MISSING:
        problem = vitals.problem
    elif vitals.trouble is None and vitals.schema == 0:
        problem = f"{vitals.place} holds no store"
    elif vitals.trouble is None and vitals.schema is not None and not vitals.can_be_looked_at:
        # Opening would carry it over, which is not for whoever only looks: older workers could not come back.
        way = "run betimes db migrate" + (
            ", or start a worker of this version, first" if vitals.file else " first, as the schema's owner"
        )
        raise Failure(
            f"{vitals.place} has schema version {vitals.schema}, and this Betimes uses version "
            f"{vitals.newest_schema}: {way}",
            Exit.SCHEMA,
        )
    else:
        return  # whatever else is wrong is said when it is opened
    where = "path" if vitals.kind == "sqlite" else "database and schema"
    raise Failure(
        f"{problem}: is it the {where} that the workers use? The first of them makes it, and so do "
        "betimes submit and betimes db migrate",
        Exit.UNAVAILABLE,
    )
