"""A fleet on the virtual loop: many real schedulers on one store, and a third of them dies at once.

python -m tests.simulation.fleet                       # 1,000 workers; a minute or two
python -m tests.simulation.fleet --workers 100 --poll 5 --lease 60

What it goes through: a backlog of several tenants' jobs is there, the workers start one by one and are busy
with it; a third of them dies without a word; the others take over what the dead held, and work everything
off; then single jobs come every half second; then nothing happens for a while. The report says what traffic
the store had in each phase, and everything that broke a promise. Nothing in it is real time, and a seed gives
the same report again.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, repeat
from math import log
from random import Random
from typing import Any

from tests.simulation.fleet_ledger import NARROW, Ledger
from tests.simulation.fleet_report import Phase, Report, in_words
from tests.simulation.fleet_store import Traffic, Yard, new_member
from tests.simulation.loops import pass_time

from betimes import Context, FairShareStrategy, Limit, Scheduler, every
from betimes.testing import VirtualClock, run_virtual

START = datetime(2030, 1, 1, tzinfo=UTC)
CLIENT = "client"
"""Who submits."""
WEIGHTS = {"bronze": 1.0, "silver": 2.0, "gold": 4.0}
WORK, TICK = "work", "tick"
MEAN_S, LONGEST_S = 2.0, 10.0
"""Of the jobs' lengths."""
SPREAD = 0.8
JOBS_PER_WORKER = 100
BUSY_S, REST_S = 20.0, 20.0
START_S = 10.0
"""Within so many seconds the workers start, in any order."""
TICK_S = 5.0
SINGLES, SINGLE_EVERY_S = 20, 0.5
LOOK_EVERY_S = 0.05
GIVE_UP_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One fleet.

    Attributes:
        workers: how many there are.
        jobs: the backlog.
        seed: what everything is drawn from.
        concurrency: the slots of each worker.
        poll_s, lease_s: as a scheduler's.
        way_s: the mean of the way to the store, and of the way back.
    """

    workers: int = 1000
    jobs: int = 100_000
    seed: int = 0
    concurrency: int = 4
    poll_s: float = 1.0
    lease_s: float = 30.0
    way_s: float = 0.001

    @property
    def most_narrow(self) -> int:
        """How many jobs under the limit may run at once."""
        return max(2, self.workers * self.concurrency // 50)


class Fleet:
    """One run."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._rng = Random(f"fleet {settings.seed}")
        # As with a real clock, each has to notice by itself that it was set.
        self.clock = VirtualClock(START, tells_jumps=False)
        self._ledger = Ledger(self.clock.monotonic, WEIGHTS, settings.most_narrow)
        way = Random(f"ways {settings.seed}")
        self._yard = Yard(self.clock, way, way_s=settings.way_s, ledger=self._ledger)
        self._tasks: dict[str, Any] = {}
        self._workers = [self._scheduler(f"w{number}") for number in range(settings.workers)]
        self._client = self._scheduler(CLIENT)
        self._phases: list[Phase] = []

    def _scheduler(self, host: str) -> tuple[Any, Scheduler]:
        settings, ledger = self._settings, self._ledger
        member = new_member(self._yard, host)
        scheduler = Scheduler(
            member,
            strategy=FairShareStrategy(by="tenant", weights=WEIGHTS),
            concurrency=settings.concurrency,
            lease=settings.lease_s,
            poll=settings.poll_s,
            watchdog=None,
            clock=self.clock,
            rng=Random(f"scheduler {settings.seed} {host}"),
        )

        async def work(tenant: str, length_s: float, sent_at: float | None, ctx: Context) -> None:
            ledger.begins(host, ctx.job_id, NARROW if tenant == NARROW else WORK, due=sent_at)
            await pass_time(length_s)
            ledger.ends(host, ctx.job_id)

        async def tick(ctx: Context) -> None:
            assert ctx.scheduled_for is not None
            due = (ctx.scheduled_for - START).total_seconds()
            ledger.begins(host, ctx.job_id, TICK, due=due)

        self._tasks = {
            WORK: scheduler.task(name=WORK)(work),
            NARROW: scheduler.task(name=NARROW, limit=Limit(NARROW, settings.most_narrow))(work),
        }
        if host != CLIENT:
            scheduler.task(name=TICK, schedule=every(TICK_S, align=True))(tick)
        return member, scheduler

    # --- the run

    async def run(self) -> Report:
        """Go through it."""
        settings, ledger = self._settings, self._ledger
        async with self._client[1].client() as client:
            ids = await self._submit(client)
            with self._phase("busy"):
                await self._start_all()
                await pass_time(BUSY_S)
            dead = [member for member, _ in self._workers[: settings.workers // 3]]
            for member in dead:
                member.is_dead = True
            ledger.died([member.host for member in dead])
            died_at = self.clock.monotonic()
            living = self._workers[len(dead) :]
            with self._phase("recovery", users=len(living)):
                await self._until(lambda: ledger.are_lost_back, "what the dead held has begun again")
            with self._phase("the rest", users=len(living)):
                await self._until(lambda: ledger.completed.total() >= len(ids) + len(ledger.fires), "all")
            tick_lags = list(ledger.lags[TICK])
            with self._phase("single jobs", users=len(living)):
                ids += await self._submit_singles()
            with self._phase("nothing", users=len(living)):
                await pass_time(REST_S)
            await asyncio.gather(*(scheduler.stop() for _, scheduler in living))
        ledger.check(ids)
        return Report(
            settings=settings,
            phases=self._phases,
            seconds=self._yard.traffic.seconds,
            ledger=ledger,
            died_at=died_at,
            tick_lags=tick_lags,
            single_lags=ledger.lags[WORK],
        )

    @contextmanager
    def _phase(self, name: str, *, users: int | None = None) -> Iterator[None]:
        """Count the traffic of a phase by itself."""
        yard, before = self._yard, self._yard.traffic
        began, done = self.clock.monotonic(), self._ledger.completed.total()
        yard.traffic = Traffic()
        yield
        self._phases.append(
            Phase(
                name=name,
                users=self._settings.workers if users is None else users,
                lasted_s=self.clock.monotonic() - began,
                completed=self._ledger.completed.total() - done,
                traffic=yard.traffic,
            )
        )
        before.seconds.update(yard.traffic.seconds)
        before.calls.update(yard.traffic.calls)
        yard.traffic = before

    async def _submit(self, client: Scheduler) -> list[str]:
        """Submit the backlog: of each tenant as many as it may start while all have work."""
        tasks, jobs = self._tasks, self._settings.jobs
        narrow = jobs // 40
        tenants = list(chain(*(repeat(tenant, int(weight)) for tenant, weight in WEIGHTS.items())))
        names = [tenants[number % len(tenants)] for number in range(jobs - narrow)] + [NARROW] * narrow
        self._rng.shuffle(names)
        self._ledger.waiting.update(names)
        bound = [
            tasks[NARROW if name == NARROW else WORK].bind(name, self._length_s(), None) for name in names
        ]
        return [handle.id for handle in await client.submit_many(bound)]

    def _length_s(self) -> float:
        return round(min(self._rng.lognormvariate(log(MEAN_S) - SPREAD**2 / 2, SPREAD), LONGEST_S), 6)

    async def _start_all(self) -> None:
        async def start(scheduler: Scheduler, after_s: float) -> None:
            await pass_time(after_s)
            await scheduler.start()

        async with asyncio.TaskGroup() as group:
            for _, scheduler in self._workers:
                group.create_task(start(scheduler, self._rng.uniform(0.0, START_S)))

    async def _submit_singles(self) -> list[str]:
        ids = []
        for _ in range(SINGLES):
            handle = await self._tasks[WORK].submit("bronze", 0.1, self.clock.monotonic())
            ids.append(handle.id)
            await pass_time(SINGLE_EVERY_S)
        return ids

    async def _until(self, is_so: Any, what: str) -> None:
        deadline = self.clock.monotonic() + GIVE_UP_S
        while not is_so():
            if self.clock.monotonic() > deadline:
                self._ledger.fail(f"not after {GIVE_UP_S:g} s: {what}")
                return
            await pass_time(LOOK_EVERY_S)


def simulate(settings: Settings) -> Report:
    """Run one fleet."""
    fleet = Fleet(settings)
    return run_virtual(fleet.run(), clock=fleet.clock, seed=settings.seed, shuffle=True)


def main() -> int:
    """Run what was asked for, and print the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.fleet", description=__doc__)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--jobs", type=int, help=f"{JOBS_PER_WORKER} for each worker unless given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--poll", type=float, default=1.0)
    parser.add_argument("--lease", type=float, default=30.0)
    asked = parser.parse_args()
    logging.getLogger("betimes").setLevel(logging.CRITICAL)  # of the dead there is much to say
    report = simulate(
        Settings(
            workers=asked.workers,
            jobs=asked.jobs or JOBS_PER_WORKER * asked.workers,
            seed=asked.seed,
            concurrency=asked.concurrency,
            poll_s=asked.poll,
            lease_s=asked.lease,
        )
    )
    print(in_words(report))
    return min(len(report.ledger.violations), 1)


if __name__ == "__main__":
    sys.exit(main())
