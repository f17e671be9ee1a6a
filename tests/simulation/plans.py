"""What a simulated job is to do, and the options it is submitted with; drawn by chance."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random

from betimes.core.retry import RetryPolicy

QUEUES = ("default", "side")


class Task(StrEnum):
    """The tasks; each process registers them by these names."""

    WALK = "walk"
    """A coroutine."""
    CRUNCH = "crunch"
    """A plain function, in a thread."""
    ONCE = "once"
    """A coroutine that may start at most once."""
    RARE = "rare"
    """A coroutine that not every process knows."""
    TICK = "tick"
    """A coroutine that a schedule runs."""
    TOCK = "tock"
    """A plain function that a schedule runs, in a thread."""
    PAY = "pay"
    """A coroutine under a limit for each group."""
    PRESS = "press"
    """A coroutine that shares a limit with threads."""
    POUR = "pour"
    """A plain function, in a thread, under the same limit."""
    UPLOAD = "upload"
    """A coroutine under a rate."""
    CRAWL = "crawl"
    """A coroutine under a slow rate for each group."""
    BOTH = "both"
    """A coroutine under a limit and two rates, one of them that of the uploads."""
    FRAGILE = "fragile"
    """A coroutine with a circuit breaker, which fails while what it depends on is down."""
    FRUGAL = "frugal"
    """A coroutine with a retry budget."""
    RENDER = "render"
    """A plain function, in a child process, under a limit."""
    SERVE = "serve"
    """A coroutine without any restraint, for the one group or the other."""


TASKS = (Task.WALK,) * 3 + (Task.CRUNCH,) * 2 + (Task.ONCE,) * 2 + (Task.RARE,)
"""How often each is chosen."""

GROUPED = frozenset(
    {
        *(Task.PAY, Task.PRESS, Task.POUR, Task.UPLOAD, Task.CRAWL),
        *(Task.BOTH, Task.FRAGILE, Task.FRUGAL, Task.RENDER, Task.SERVE),
    }
)
"""Those that are told for which group they work."""
GROUPS = ("a", "b", "c")


class End(StrEnum):
    """How one execution ends."""

    RETURN = "return"
    RAISE = "raise"
    NEVER_AGAIN = "never again"
    SNOOZE = "snooze"
    CANCEL = "cancel"
    CANCELLED_ERROR = "cancelled error"
    DIE = "die"
    """It takes its process with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One execution.

    Attributes:
        seconds: how long it takes.
        end: how it ends.
        swallows: how many cancellations it takes no notice of.
    """

    seconds: float
    end: End = End.RETURN
    swallows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One job.

    Attributes:
        name: its argument; executions look themselves up under it.
        task: of which task.
        acts: what its executions do, in order; the last one for all that follow.
        priority, delay_s, timeout_s, retry, expires_s, queue: its options.
        job_id, replace, key: its names.
        is_recurring: a schedule makes jobs of it, each of which does something else.
        group: for whom; empty: the task is not told.
    """

    name: str
    task: Task
    acts: tuple[Act, ...]
    priority: int = 1
    delay_s: float = 0.0
    timeout_s: float | None = None
    retry: RetryPolicy | None = None
    expires_s: float | None = None
    queue: str = "default"
    job_id: str | None = None
    replace: bool = False
    key: str | None = None
    is_recurring: bool = False
    group: str = ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the task is called with."""
        return (self.name, self.group) if self.group else (self.name,)

    def act(self, nth: int, seq: int = 0) -> Act:
        """Return what the nth execution of a job does."""
        if self.is_recurring:
            return self.acts[(seq + nth) % len(self.acts)]
        return self.acts[min(nth, len(self.acts) - 1)]


class Planner:
    """Draws plans.

    Args:
        rng: the run's own for this.
        ids, keys: how many there are to choose from.
        tasks: how often each task is chosen.

    Attributes:
        plans: all of them, by name.
    """

    def __init__(self, rng: Random, *, ids: int, keys: int, tasks: tuple[Task, ...] = TASKS) -> None:
        self._rng = rng
        self._tasks = tasks
        self._ids = [f"id-{number}" for number in range(ids)]
        self._keys = [f"key-{number}" for number in range(keys)]
        self.plans: dict[str, Plan] = {}

    def draw(self) -> Plan:
        """Draw one job."""
        rng = self._rng
        job_id = rng.choice(self._ids) if rng.random() < 0.3 else None
        key = rng.choice(self._keys) if job_id is None and rng.random() < 0.15 else None
        task = rng.choice(self._tasks)
        acts = self._acts(task)
        has_retry = rng.random() < 0.5
        plan = Plan(
            name=key or f"plan-{len(self.plans)}",
            task=task,
            acts=acts,
            # What kills its workers has to come round three times.
            priority=10 if acts[0].end is End.DIE else rng.randint(0, 3),
            delay_s=rng.choice((0.0, 0.0, 0.0, rng.uniform(0.0, 4.0))),
            timeout_s=rng.uniform(0.3, 1.5) if rng.random() < 0.4 else None,
            retry=self._retry() if has_retry else None,
            expires_s=rng.uniform(0.5, 6.0) if rng.random() < 0.15 else None,
            queue=rng.choice((QUEUES[0], *QUEUES)),
            job_id=job_id,
            replace=job_id is not None and rng.random() < 0.7,
            key=key,
            group=rng.choice(GROUPS) if task in GROUPED else "",
        )
        # One key stands for one request: whoever draws the key again asks for the same.
        if key is not None and key in self.plans:
            return self.plans[key]
        self.plans[plan.name] = plan
        return plan

    def flood(self, task: Task | None = None) -> list[Plan]:
        """Draw many short jobs of one task, whichever unless it is given, for one group."""
        rng = self._rng
        task = task or rng.choice([task for task in self._tasks if task in GROUPED])
        group = rng.choice(GROUPS)
        plans = [
            Plan(
                name=f"plan-{len(self.plans) + number}",
                task=task,
                acts=(Act(seconds=rng.uniform(0.0, 0.4)),),
                priority=rng.randint(0, 3),
                queue=rng.choice(QUEUES),
                group=group,
            )
            for number in range(rng.randint(5, 10))
        ]
        self.plans |= {plan.name: plan for plan in plans}
        return plans

    def _retry(self) -> RetryPolicy:
        rng = self._rng
        # Without back-off the next attempt is READY in the very step that ends the last.
        return RetryPolicy(rng.randint(2, 4), base_delay=rng.choice((0.0, 0.2, 1.0)), max_delay=2.0)

    def _acts(self, task: Task) -> tuple[Act, ...]:
        rng = self._rng
        if rng.random() < 0.08 and task is not Task.RARE:
            return (Act(seconds=0.1, end=End.DIE),)
        acts = [self._act(task, is_last=False) for _ in range(rng.choice((0, 0, 1, 2)))]
        return (*acts, self._act(task, is_last=True))

    def _act(self, task: Task, *, is_last: bool) -> Act:
        rng = self._rng
        ends = [End.RETURN, End.RAISE, End.NEVER_AGAIN, End.CANCEL, End.CANCELLED_ERROR, End.SNOOZE]
        weights = [70, 15, 3, 3, 3, 0] if is_last else [5, 70, 0, 0, 5, 20]
        end = rng.choices(ends, weights)[0]
        seconds = rng.choice((0.0, rng.uniform(0.0, 0.3), rng.uniform(0.0, 2.0), rng.uniform(0.0, 5.0)))
        return Act(seconds=seconds, end=end, swallows=rng.choice((0, 0, 1, 3)))
