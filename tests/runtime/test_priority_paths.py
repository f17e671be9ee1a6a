"""Priority holds whichever way a job comes, schedules included."""

from __future__ import annotations

from datetime import timedelta

from tests.runtime.stage import Scene, StoreMaker, pass_time, play

from betimes import Context, RetryPolicy, every
from betimes.testing.clock import DEFAULT_START


def test_case_137_start_order_is_by_priority_whatever_the_path(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        order: list[str] = []
        due = DEFAULT_START + timedelta(seconds=100)

        async def work(context: Context, name: str) -> None:
            if name.startswith("retry") and context.attempt == 1:
                raise ConnectionError
            order.append(name)
            await pass_time(1)

        policy = RetryPolicy(2, base_delay=100, max_delay=100, jitter=False)
        plain = stage.scheduler.task(name="plain", retry=policy)(work)
        # First what fails at the start and comes back at the instant at which all others are due.
        for priority in (1, 5, 9):
            await plain.using(priority=priority).submit(f"retry {priority}")
        await stage.settle()
        for priority in (0, 4, 8):
            await plain.using(priority=priority, run_at=due).submit(f"run_at {priority}")
        for priority in (3, 7):
            fires = stage.scheduler.task(name=f"cron-{priority}", priority=priority)(work)
            trigger = every("100s", align=DEFAULT_START)
            await stage.scheduler.add_schedule(f"s{priority}", fires.bind(f"cron {priority}"), trigger)

        @stage.scheduler.task(priority=1000)
        async def blocker() -> None:
            await pass_time(3)

        await pass_time(98)
        await blocker.submit()  # takes the one slot while all of them become due
        await pass_time(1)
        for priority in (2, 6):
            await plain.using(priority=priority).submit(f"submit {priority}")
        await pass_time(30)
        assert order == [
            *("retry 9", "run_at 8", "cron 7", "submit 6", "retry 5"),
            *("run_at 4", "cron 3", "submit 2", "retry 1", "run_at 0"),
        ]

    play(scene, store=store, concurrency=1)
