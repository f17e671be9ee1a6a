"""Changes of many jobs, by id or by options: shown first, asked about, and each with its outcome."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from betimes.cli.exits import Exit, Failure
from betimes.cli.ids import shortened, whole_id
from betimes.cli.opening import as_client
from betimes.cli.output import Column, show_table
from betimes.cli.progress import bar
from betimes.cli.which import Which

if TYPE_CHECKING:
    from betimes.handles import JobHandle
    from betimes.scheduler import Scheduler

AT_ONCE = 100
"""How many jobs of a change are under way at a time."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which jobs a change is for, and how it goes about them.

    Attributes:
        job_ids: by id.
        which: by options.
        dry_run: only show them.
        yes: do not ask.
        as_json: for machines.
    """

    job_ids: tuple[str, ...]
    which: Which
    dry_run: bool
    yes: bool
    as_json: bool


@dataclass(frozen=True, slots=True)
class Target:
    """One job of a change: the newest version of an id, or the version that was found."""

    id: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one job of a change.

    Attributes:
        id: the job.
        outcome: what was done, or why not.
        is_done: whether it was.
    """

    id: str
    outcome: str
    is_done: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One change of several jobs.

    Attributes:
        verb: what it does, for people.
        act: does it to one job, and answers what came of it.
        statuses: of jobs found by options that name no status, only those that stand here.
        chosen: the jobs, and how to go about it.
        is_of_newest: leave versions alone that a newer one has taken the place of.
    """

    verb: str
    act: Callable[[Scheduler, JobHandle[Any]], Awaitable[str]]
    statuses: tuple[str, ...]
    chosen: Chosen
    is_of_newest: bool = False

    def run(self, scheduler: Scheduler) -> None:
        """Carry it out, and show what came of it.

        Raises:
            click.UsageError: no job was named, or by id and by options at once.
            Failure: it could not be done to some of them.
        """
        if bool(self.chosen.job_ids) is not self.chosen.which.is_all:
            raise click.UsageError(
                f"name the jobs to {self.verb} by their ids, or by --status, --task, --queue and --tag"
                + ("; not both" if self.chosen.job_ids else "")
            )
        targets = as_client(scheduler, self._targets)
        if not targets:
            click.echo("[]" if self.chosen.as_json else "no such job")
            return
        if not (self.chosen.dry_run or self.chosen.job_ids or self.chosen.yes):
            _ask(
                f"{self.verb} {len(targets)} jobs?"
            )  # not within the loop, where the first Ctrl-C would be lost
        done, short = as_client(scheduler, partial(self._answer, targets))
        columns = [Column("id", lambda each: short[each.id]), Column("outcome", lambda each: each.outcome)]
        show_table(done, columns, as_json=self.chosen.as_json)
        failed = [each for each in done if not each.is_done]
        if failed:
            raise Failure(f"{len(failed)} of {len(done)} jobs stand as they were", Exit.REFUSED)

    async def _targets(self, scheduler: Scheduler) -> list[Target]:
        named = [Target(await whole_id(scheduler, text)) for text in self.chosen.job_ids]
        return named or await self._found(scheduler)

    async def _answer(
        self, targets: Sequence[Target], scheduler: Scheduler
    ) -> tuple[list[Done], dict[str, str]]:
        done = await self._change(scheduler, targets)
        ids = (each.id for each in targets)
        return done, {} if self.chosen.as_json else await shortened(scheduler, ids)

    async def _change(self, scheduler: Scheduler, targets: Sequence[Target]) -> list[Done]:
        """Change jobs, many at a time: the store commits together what comes together."""
        import asyncio  # noqa: PLC0415 - `--help` does without

        done: list[Done] = []
        with bar(self.verb, len(targets)) as advance:
            for start in range(0, len(targets), AT_ONCE):
                step = targets[start : start + AT_ONCE]
                done += await asyncio.gather(*(self._one(scheduler, target) for target in step))
                advance(len(step))
        return done

    async def _found(self, scheduler: Scheduler) -> list[Target]:
        found = await self.chosen.which.all(scheduler)
        is_any = self.chosen.which.status is not None
        return [
            Target(info.id, info.version) for info in found if is_any or info.status.value in self.statuses
        ]

    async def _one(self, scheduler: Scheduler, target: Target) -> Done:
        from betimes.errors import BetimesError, StoreUnavailable  # noqa: PLC0415 - `--help` does without

        try:
            handle = await self._handle(scheduler, target)
            if handle is None:
                return Done(target.id, "left alone: a newer version has taken its place", is_done=True)
            if self.chosen.dry_run:
                return Done(target.id, f"would {self.verb}", is_done=True)
            outcome = await self.act(scheduler, handle)
        except StoreUnavailable:
            raise
        except BetimesError as error:
            return Done(target.id, str(error), is_done=False)
        return Done(target.id, outcome, is_done=outcome not in {"finished", "unknown"})

    async def _handle(self, scheduler: Scheduler, target: Target) -> JobHandle[Any] | None:
        """Return the handle of the very version; None: the change is not for such."""
        newest = await scheduler.job(target.id)
        if target.version in (None, newest._job.seq):  # noqa: SLF001 - the command line is part of the package
            return newest
        return None if self.is_of_newest else await _older(scheduler, target)


async def _older(scheduler: Scheduler, target: Target) -> JobHandle[Any]:
    """Return the handle of a version that is not the newest of its id."""
    from betimes.errors import UnknownJob  # noqa: PLC0415 - `--help` does without
    from betimes.handles import JobHandle  # noqa: PLC0415
    from betimes.ports import JobFilter  # noqa: PLC0415

    assert target.version is not None
    which = JobFilter(before=target.version + 1, limit=1)
    for job in await scheduler._store.jobs(which):  # noqa: SLF001 - the command line is part of the package
        if job.seq == target.version:
            return JobHandle(scheduler, job)
    raise UnknownJob(f"version {target.version} of job {target.id!r} has been pruned", job_id=target.id)


def _ask(question: str) -> None:
    """Have somebody agree.

    Raises:
        Failure: they do not, or nobody is there to answer.
    """
    try:
        is_agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise  # Ctrl-C
        click.echo(err=True)
        raise Failure("nobody is there to ask: say --yes for it; nothing was changed", Exit.USAGE) from None
    if not is_agreed:
        raise Failure("nothing was changed", Exit.NO)
