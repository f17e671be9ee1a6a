"""`betimes db …`: the store looked at, carried over to a new schema, pruned, copied."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from betimes.cli.exits import Exit, Failure
from betimes.cli.opening import app_argument, app_option, as_client, target, url_option
from betimes.cli.output import Column, json_option, show_json, show_record, show_table
from betimes.cli.progress import bar
from betimes.cli.values import DURATION
from betimes.core.durations import from_us
from betimes.core.wording import sized

if TYPE_CHECKING:
    from collections.abc import Callable

    from betimes.core.vitals import ServerVitals, Vitals
    from betimes.scheduler import Scheduler

STEP = 1000


@click.group()
def db() -> None:
    """Look after the store: of APP, or the one that --url names."""


def _of_store(fn: Callable[..., Any]) -> Callable[..., Any]:
    return app_argument(url_option(fn))


@db.command()
@_of_store
@click.option("--full", is_flag=True, help="Check the whole file for damage, which can take long.")
@json_option
def status(*, app: str | None, url: str | None, full: bool, as_json: bool) -> None:
    """Show where the store is, what it is, and how many jobs it holds."""
    scheduler = target(app, url)
    vitals = _vitals(scheduler, full=full)
    jobs = as_client(scheduler, _counts) if vitals.can_be_looked_at else None
    if as_json:
        show_json({"store": _readable(vitals), "jobs": jobs})
    else:
        show_record(vitals, leave_out=("file", "server", "latest"))
        if vitals.file is not None:
            show_record(vitals.file, leave_out=("mode",))
            click.echo(f"permissions      {vitals.file.mode:o}")
        if vitals.server is not None:
            _show_server(vitals.server)
        _show_counts(jobs or {})
    if vitals.trouble is not None:
        raise _unusable(vitals)


def _show_server(server: ServerVitals) -> None:
    show_record(server, leave_out=("tables", "horizon", "clock_ahead_us", "lacks"))
    click.echo()
    columns = [
        Column("table", lambda each: each.name),
        Column("live rows", lambda each: f"{each.live:,}"),
        Column("dead rows", lambda each: f"{each.dead:,}"),
        Column("size", lambda each: sized(each.size)),
    ]
    show_table(server.tables, columns, as_json=False, empty="no tables")


def _readable(vitals: Vitals) -> dict[str, object]:
    """Return what a store says of itself with its instant as an instant, and its mode as `chmod` has it."""
    record = {each.name: getattr(vitals, each.name) for each in fields(vitals)}
    record["latest"] = None if vitals.latest is None else from_us(vitals.latest)
    if vitals.file is not None:
        file = {each.name: getattr(vitals.file, each.name) for each in fields(vitals.file)}
        record["file"] = file | {"mode": f"{vitals.file.mode:04o}"}
    return record


def _unusable(vitals: Vitals) -> Failure:
    """Return why the store cannot be used, with the exit code that every other command has for it."""
    codes = {"newer": Exit.SCHEMA, "refused": Exit.SETTINGS}
    return Failure(vitals.problem, codes.get(str(vitals.trouble), Exit.UNAVAILABLE))


def _vitals(scheduler: Scheduler, *, full: bool = False) -> Vitals:
    import asyncio  # noqa: PLC0415 - `--help` does without

    return asyncio.run(scheduler._store.vitals(full=full))  # noqa: SLF001 - part of the package


async def _counts(scheduler: Scheduler) -> dict[str, dict[str, int]]:
    counts = await scheduler._store.counts()  # noqa: SLF001 - as above
    return {
        queue: {status.value: number for status, number in of_queue.items() if number}
        for queue, of_queue in sorted(counts.items())
    }


def _show_counts(jobs: dict[str, dict[str, int]]) -> None:
    names = ("ready", "delayed", "blocked", "running")
    columns = [Column("queue", lambda row: row[0])]
    columns += [Column(name, partial(_number, name)) for name in names]
    click.echo()
    show_table(list(jobs.items()), columns, as_json=False, empty="no live jobs")


def _number(name: str, row: tuple[str, dict[str, int]]) -> int:
    return row[1].get(name, 0)


@db.command()
@_of_store
@click.option("--plan", "--dry-run", "plan", is_flag=True, help="Only show what it would do.")
@json_option
def migrate(*, app: str | None, url: str | None, plan: bool, as_json: bool) -> None:
    """Carry the store over to the schema of this version of Betimes; an empty one gets it.

    Every scheduler does so when it opens a file; this does it by itself, at a time of your choice. On
    PostgreSQL nobody else does it: run it as the owner of the schema, before the first worker of the new
    version starts. All steps are one transaction.
    """
    scheduler = target(app, url)
    vitals = _vitals(scheduler)
    if vitals.trouble is not None and vitals.trouble.value != "missing":
        raise _unusable(vitals)
    is_missing = vitals.trouble is not None and vitals.server is None
    found, newest = (0, _newest()) if is_missing else (vitals.schema or 0, vitals.newest_schema)
    if not plan and found < newest:
        _carry_over(scheduler)
    steps = [(number, title) for number, title, _ in _steps(vitals.kind) if number > found]
    if as_json:
        shown = {"place": vitals.place, "from": found, "to": newest, "done": not plan or found >= newest}
        show_json(shown | {"steps": [{"version": number, "title": title} for number, title in steps]})
    elif found >= newest:
        click.echo(f"{vitals.place} has schema version {found} already: nothing to do")
    else:
        verb = "would go" if plan else "went"
        click.echo(f"{vitals.place} {verb} from schema version {found} to {newest}")
        for number, title in steps:
            click.echo(f"  {number}: {title}")
        if plan:
            click.echo(f"betimes db sql --from {found} prints the SQL; --roles, the grants on PostgreSQL")


def _carry_over(scheduler: Scheduler) -> None:
    import asyncio  # noqa: PLC0415 - as above

    carry_over = getattr(scheduler._store, "migrate", None)  # noqa: SLF001 - as above
    if carry_over is not None:
        asyncio.run(carry_over())
    as_client(scheduler, _nothing, may_make=True)


async def _nothing(_scheduler: Scheduler) -> None:
    """Do nothing: opening the store has done it, or has settled its strategy."""


def _newest() -> int:
    return _steps("sqlite")[-1][0]


def _steps(kind: str) -> list[tuple[int, str, str]]:
    """Return the steps of a kind of store: the version that each leads to, its title, and its text."""
    if kind == "postgres":
        from betimes.stores.postgres.opening import migrations  # noqa: PLC0415 - `--help` does without
    else:
        from betimes.stores.sqlite.statements import migrations  # noqa: PLC0415 - as above
    return [(number, text.partition("\n")[0].lstrip("- ").rstrip("."), text) for number, text in migrations()]


@db.command()
@_of_store
@click.option("--from", "start", type=click.IntRange(0), default=0, metavar="N", help="Only steps after N.")
@click.option("--roles", is_flag=True, help="The roles and their rights instead; on PostgreSQL.")
def sql(*, app: str | None, url: str | None, start: int, roles: bool) -> None:
    """Print the SQL of the schema, step by step, for whoever wants to read it first.

    It is that of the store which APP or --url names; of a file, where none is named. Nothing is opened.
    """
    schema = _schema_name(app, url)
    if roles:
        if schema is None:
            raise Failure("a file has no roles: name a store on PostgreSQL, by --url", Exit.SETTINGS)
        from betimes.stores.postgres.roles import grants  # noqa: PLC0415 - `--help` does without

        click.echo(grants(schema))
        return
    steps = [each for each in _steps("sqlite" if schema is None else "postgres") if each[0] > start]
    if schema is not None and steps:
        click.echo("-- To be run by the owner of the schema, as `betimes db migrate` does.\nBEGIN;")
        click.echo(f"CREATE SCHEMA IF NOT EXISTS {schema};\nSET LOCAL search_path TO {schema}, pg_temp;\n")
    for number, _, text in steps:
        click.echo(f"-- schema version {number}\n{text.rstrip()}\n")
        if schema is not None:
            click.echo(f"UPDATE betimes_meta SET value = '{number}' WHERE name = 'schema_version';\n")  # noqa: S608 - it is printed
    if schema is not None and steps:
        click.echo("COMMIT;")


def _schema_name(app: str | None, url: str | None) -> str | None:
    """Return the name of the store's schema on PostgreSQL; None: it is a file, or none is named."""
    store = target(app, url)._store if app or url else None  # noqa: SLF001 - as above
    name = getattr(store, "schema", None)
    return name if isinstance(name, str) else None


@db.command()
@_of_store
@click.option("--keep", type=DURATION, help="Forget what ended longer ago; the application's keep, or 7d.")
@click.option("--dry-run", is_flag=True, help="Only count them.")
@json_option
def prune(*, app: str | None, url: str | None, keep: float | None, dry_run: bool, as_json: bool) -> None:
    """Forget finished jobs that ended longer ago than --keep; workers do so by themselves.

    A task's own keep= goes before --keep.
    """

    async def act(scheduler: Scheduler) -> int:
        store = scheduler._store  # noqa: SLF001 - as above
        own_us = scheduler._parts.settings.keep_us  # noqa: SLF001 - as above
        keep_us = own_us if keep is None else round(keep * 1_000_000)
        number = await store.prunable(keep_us=keep_us)
        if dry_run:
            return number
        gone = 0
        with bar("prune", number) as advance:
            while step := await store.prune(keep_us=keep_us, limit=STEP):
                gone += step
                advance(step)
        return gone

    number = as_client(target(app, url), act)
    if as_json:
        show_json({"jobs": number, "done": not dry_run})
    else:
        click.echo(f"{'would forget' if dry_run else 'forgot'} {number} finished jobs")


@db.command()
@click.argument("places", nargs=-1, required=True, metavar="[APP] TARGET")
@app_option
@url_option
@json_option
def backup(*, places: tuple[str, ...], app: str | None, url: str | None, as_json: bool) -> None:
    """Copy the store to the file TARGET, as it is at one instant; workers may go on."""
    from betimes.stores.sqlite import SqliteStore  # noqa: PLC0415 - `--help` does without

    if len(places) > 2:  # noqa: PLR2004 - an application and a target
        raise click.UsageError("name one target, after the application if that is named here")
    app, copy = places[0] if len(places) > 1 else app, Path(places[-1])
    store = target(app, url)._store  # noqa: SLF001 - as above
    if not isinstance(store, SqliteStore):
        raise Failure(
            "only a store in a file is copied so; on PostgreSQL use pg_dump, which may run while workers do: "
            f"pg_dump --schema={getattr(store, 'schema', 'betimes')} --format=custom --file={copy} DATABASE",
            Exit.SETTINGS,
        )
    with bar("backup", 0) as advance:
        done = 0

        def tell(pages: int, total: int) -> None:
            nonlocal done
            advance(pages - done, total)
            done = pages

        size = store.backup(copy, tell=tell)
    if as_json:
        show_json({"target": str(copy), "size": size})
    else:
        click.echo(f"{copy}: {size:,} bytes, checked")
