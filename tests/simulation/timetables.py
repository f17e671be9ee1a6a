"""Which schedules there are, and how they are changed; drawn by chance.

Each is added by several processes, under the same definition, as a program's start does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any

from tests.simulation.plans import Act, End, Plan, Task
from tests.simulation.settings import Settings

from betimes import Trigger, at, cron, every
from betimes.core.retry import RetryPolicy

OTHER_ZONES = ("America/Santiago", "Asia/Kathmandu", "UTC")
OVERLAPS = ("skip", "skip", "queue_one", "replace", "allow")
MISSED = ("latest", "latest", "skip", "all")
DECLARED = 2
"""How many of them tasks ask for by their decorators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One schedule, as it is asked for.

    Attributes:
        id: its name.
        trigger: when it fires.
        plan: what its jobs do.
        options: its policies, as keyword arguments.
    """

    id: str
    trigger: Trigger
    plan: Plan
    options: dict[str, Any]


class Timetables:
    """Draws schedules.

    Attributes:
        declared: what tasks ask for; the same in each process.
        asked: what is added by calls, by id; the newest definition of each.
    """

    def __init__(self, rng: Random, *, settings: Settings, plans: dict[str, Plan]) -> None:
        self._rng = rng
        self._start = settings.start
        self._zone = settings.zone
        self._plans = plans
        number = settings.schedules
        self._drawn = 0
        self.declared = [self._draw(f"own-{n}", self._every()) for n in range(min(DECLARED, number))]
        kinds = (self._every, self._cron, self._delay, self._at)
        first = rng.randrange(len(kinds))
        self.asked: dict[str, Asked] = {}
        for n in range(number - DECLARED):
            asked = self._draw(f"added-{n}", kinds[(first + n) % len(kinds)]())
            self.asked[asked.id] = replace(asked, options=asked.options | self._bounds())

    def _draw(self, schedule_id: str, trigger: Trigger) -> Asked:
        rng = self._rng
        missed = rng.choice(MISSED)
        options: dict[str, Any] = {"overlap": rng.choice(OVERLAPS), "missed": missed}
        if missed == "all":
            options["max_catchup"] = rng.choice((1, 3, 8))
        if rng.random() < 0.25:
            options["jitter"] = rng.choice((0.4, 1.5))
        return Asked(id=schedule_id, trigger=trigger, plan=self._plan(), options=options)

    def _bounds(self) -> dict[str, Any]:
        """Draw a start or an end, at times; only schedules that are added by a call have any."""
        rng, bounds = self._rng, dict[str, Any]()
        if rng.random() < 0.2:
            bounds["start"] = self._start + timedelta(seconds=rng.uniform(-5.0, 10.0))
        if rng.random() < 0.2:
            bounds["end"] = self._start + timedelta(seconds=rng.uniform(15.0, 60.0))
        return bounds

    def _plan(self) -> Plan:
        """Draw what the runs of a schedule do, one after the other."""
        rng = self._rng
        ends = [End.RETURN, End.RAISE, End.CANCEL, End.SNOOZE, End.DIE]
        acts = tuple(
            Act(
                seconds=rng.choice((0.0, 0.5, 2.0, 8.0)) * rng.uniform(0.0, 1.0),
                end=rng.choices(ends, [70, 18, 4, 5, 3])[0],
                swallows=rng.choice((0, 0, 0, 1)),
            )
            for _ in range(rng.randint(3, 9))
        )
        self._drawn += 1
        plan = Plan(
            name=f"runs-{self._drawn}",
            task=rng.choice((Task.TICK, Task.TICK, Task.TOCK)),
            acts=acts,
            priority=rng.randint(0, 4),
            timeout_s=rng.uniform(0.5, 4.0) if rng.random() < 0.3 else None,
            retry=RetryPolicy(2, base_delay=0.5) if rng.random() < 0.5 else None,
            is_recurring=True,
        )
        self._plans[plan.name] = plan
        return plan

    def _every(self) -> Trigger:
        period = self._rng.choice((1.0, 1.7, 3.0, 5.0, 40.0))
        return every(period, align=True) if self._rng.random() < 0.3 else every(period)

    def _delay(self) -> Trigger:
        return every(self._rng.choice((0.7, 2.0)), after="finish")

    def _cron(self) -> Trigger:
        fields = self._rng.choice(
            (
                f"*/{self._rng.choice((2, 3, 7))} * * * * *",
                # Fixed times, some of which are skipped where the clock changes, or come twice.
                "*/10 58,59,0,1,2,29 1,2 * * *",
                "0 59,0,1 1,2 * * *",
                "*/4 * 2,3 * * *",
            )
        )
        zone = self._zone if self._rng.random() < 0.8 else self._rng.choice(OTHER_ZONES)
        return cron(fields, tz=zone, seconds=True)

    def _at(self) -> Trigger:
        return at(self._start + timedelta(seconds=self._rng.uniform(2.0, 40.0)))

    def changed(self, schedule_id: str) -> Asked:
        """Draw another definition of a schedule; whoever adds it from now on asks for this one."""
        rng, old = self._rng, self.asked[schedule_id]
        what = rng.randrange(3)
        if what == 0:
            new = replace(old, plan=self._plan())
        elif what == 1 and old.options["missed"] == "all":
            new = replace(old, options=old.options | {"max_catchup": rng.choice((1, 2, 5))})
        elif what == 1:
            new = replace(old, options=old.options | {"missed": rng.choice(("latest", "skip"))})
        else:
            new = replace(old, trigger=self._another(old.trigger))
        self.asked[schedule_id] = new
        return new

    def _another(self, trigger: Trigger) -> Trigger:
        """Draw another trigger of the same kind."""
        if trigger.delay_after_finish_us is not None:
            return self._delay()
        return {"every": self._every, "cron": self._cron, "at": self._at}[self._kind(trigger)]()

    @staticmethod
    def _kind(trigger: Trigger) -> str:
        stored = trigger.stored()
        assert stored is not None
        return str(stored["kind"])
