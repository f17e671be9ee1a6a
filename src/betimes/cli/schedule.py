"""`betimes schedule …`: schedules listed, previewed, paused, resumed, run now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from betimes.cli.exits import Exit, Failure
from betimes.cli.opening import app_option, application, as_client, store_options, target
from betimes.cli.output import Column, json_option, show_json, show_table

if TYPE_CHECKING:
    from datetime import datetime

    from betimes.core.schedule_reason import NextFire
    from betimes.core.triggers import CronTrigger
    from betimes.schedule_info import ScheduleInfo
    from betimes.scheduler import Scheduler

PAGE = 1000


@click.group()
def schedule() -> None:
    """List, preview, pause, resume and trigger schedules."""


async def _all(scheduler: Scheduler) -> list[ScheduleInfo]:
    found: list[ScheduleInfo] = []
    after: str | None = None
    while page := await scheduler.schedules(limit=PAGE, after=after):
        found += page
        after = page[-1].id
    return found


@schedule.command("list")
@store_options
@json_option
def list_(*, app: str | None, url: str | None, as_json: bool) -> None:
    """List schedules by name."""
    columns = [
        Column("id", lambda info: info.id),
        Column("task", lambda info: info.task, spare=4),
        Column("when", lambda info: info.trigger, spare=3),
        Column("next fire (UTC)", lambda info: info.next_fire_at),
        Column("last fire (UTC)", lambda info: info.last_fire_at, spare=2),
        Column("fired", lambda info: info.fired, spare=5),
        Column("skipped", lambda info: info.skipped, spare=6),
        Column("state", _state),
    ]
    show_table(as_client(target(app, url), _all), columns, as_json=as_json, empty="no schedule")


def _state(info: ScheduleInfo) -> str:
    if info.error is not None:
        return f"broken: {info.error}"
    return "paused" if info.paused else "on"


@dataclass(frozen=True, slots=True)
class Upcoming:
    """One fire ahead, of one schedule.

    Attributes:
        schedule: its name.
        task: what it runs.
        at: the instant (aware, UTC).
        local: the same in the schedule's zone; None: it has none.
        moved_from: the wall time it stands for, if a change of the clocks skips it.
    """

    schedule: str
    task: str
    at: datetime
    local: datetime | None
    moved_from: str | None


@schedule.command("next")
@click.option("-n", "--limit", type=click.IntRange(1, PAGE), default=20, show_default=True, help="The most.")
@store_options
@json_option
def next_(*, limit: int, app: str | None, url: str | None, as_json: bool) -> None:
    """List the next fires of all schedules that are on, the earliest first."""

    async def ask(scheduler: Scheduler) -> list[Upcoming]:
        found = []
        for info in await _all(scheduler):
            if info.paused or info.next_fire_at is None:
                continue
            fires = await scheduler.next_fires(info.id, limit=limit)
            found += [Upcoming(info.id, info.task, fire.at, fire.local, fire.moved_from) for fire in fires]
        return sorted(found, key=lambda fire: (fire.at, fire.schedule))[:limit]

    columns = [
        Column("at (UTC)", lambda fire: fire.at, spare=1),
        Column("local", _local),
        Column("schedule", lambda fire: fire.schedule),
        Column("task", lambda fire: fire.task, spare=2),
    ]
    show_table(as_client(target(app, url), ask), columns, as_json=as_json, empty="no fire ahead")


def _local(fire: NextFire | Upcoming) -> str | None:
    if fire.local is None:
        return None
    moved = f", in place of {fire.moved_from}" if fire.moved_from else ""
    return f"{fire.local:%a %Y-%m-%d %H:%M:%S %Z}{moved}"


@schedule.command()
@click.argument("what", metavar="SCHEDULE_OR_CRON")
@click.option("--tz", default="UTC", show_default=True, help="The zone of a cron expression.")
@click.option("--seconds", is_flag=True, help="The expression has six fields, seconds first.")
@click.option("-n", "--limit", type=click.IntRange(1, PAGE), default=10, show_default=True, help="The most.")
@store_options
@json_option
def preview(
    *, what: str, tz: str, seconds: bool, limit: int, app: str | None, url: str | None, as_json: bool
) -> None:
    """Show when a schedule fires next, or a cron expression would: in quotes, as "0 9 * * mon-fri"."""
    if " " in what.strip() or what.startswith("@"):
        _preview_cron(what, tz, seconds=seconds, limit=limit, as_json=as_json)
        return

    async def ask(scheduler: Scheduler) -> tuple[str, list[NextFire]]:
        return (await scheduler.schedule(what)).trigger, await scheduler.next_fires(what, limit=limit)

    sentence, fires = as_client(target(app, url), ask)
    _show_fires(sentence, fires, as_json=as_json)


def _preview_cron(text: str, tz: str, *, seconds: bool, limit: int, as_json: bool) -> None:
    from betimes.clock import SystemClock  # noqa: PLC0415 - `--help` does without
    from betimes.core.grid import Grid  # noqa: PLC0415
    from betimes.core.triggers import cron  # noqa: PLC0415
    from betimes.core.upcoming import next_fires  # noqa: PLC0415
    from betimes.errors import InvalidTrigger  # noqa: PLC0415

    try:
        trigger: CronTrigger = cron(text, tz=tz, seconds=seconds)
    except InvalidTrigger as error:  # it was typed here
        raise click.UsageError(str(error)) from error
    now = SystemClock().now()
    notes = "".join(f"\nNote: {hint}" for hint in trigger.hints_after(now))
    _show_fires(trigger.sentence() + notes, next_fires(Grid(trigger=trigger), now, limit), as_json=as_json)


def _show_fires(sentence: str, fires: list[NextFire], *, as_json: bool) -> None:
    if as_json:
        show_json({"trigger": sentence, "next_fires": fires})
        return
    click.echo(sentence)
    columns = [Column("at (UTC)", lambda fire: fire.at), Column("local", _local)]
    show_table(fires, columns, as_json=False, empty="no fire ahead")


@schedule.command()
@click.argument("schedule_ids", nargs=-1, required=True, metavar="SCHEDULE...")
@store_options
def pause(*, schedule_ids: tuple[str, ...], app: str | None, url: str | None) -> None:
    """Have schedules fire nothing until they are resumed."""

    async def act(scheduler: Scheduler) -> None:
        for schedule_id in schedule_ids:
            await scheduler.pause_schedule(schedule_id)
            click.echo(f"{schedule_id} is paused")

    as_client(target(app, url), act)


@schedule.command()
@click.argument("schedule_ids", nargs=-1, required=True, metavar="SCHEDULE...")
@store_options
def resume(*, schedule_ids: tuple[str, ...], app: str | None, url: str | None) -> None:
    """Have schedules fire again; what passed meanwhile is recorded as skipped."""

    async def act(scheduler: Scheduler) -> None:
        for schedule_id in schedule_ids:
            info = await scheduler.resume_schedule(schedule_id)
            following = f"{info.next_fire_at:%Y-%m-%d %H:%M:%S} UTC" if info.next_fire_at else "never"
            click.echo(f"{schedule_id} is on; next fire: {following}")

    as_client(target(app, url), act)


@schedule.command()
@click.argument("schedule_id", metavar="SCHEDULE")
@app_option
@json_option
def trigger(*, schedule_id: str, app: str | None, as_json: bool) -> None:
    """Make a run of a schedule now, without moving its grid; prints the job's id.

    It needs the application, which knows the order of the store's jobs.
    """

    async def act(scheduler: Scheduler) -> str:
        return (await scheduler.trigger_now(schedule_id)).id

    scheduler = application(app)
    if not scheduler._store.is_durable:  # noqa: SLF001 - the command line is part of the package
        raise Failure("its schedules are in the memory of the process that runs them", Exit.SETTINGS)
    job_id = as_client(scheduler, act)
    if as_json:
        show_json({"id": job_id})
    else:
        click.echo(job_id)
