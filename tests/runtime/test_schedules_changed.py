"""Schedules whose policies are changed while their runs are under way."""

from __future__ import annotations

import pytest
from tests.runtime.schedule_scene import World
from tests.runtime.stage import StoreMaker, pass_time

from betimes import every
from betimes.schedule_options import OverlapPolicy


@pytest.mark.parametrize(("overlap", "began"), [("skip", [60, 120, 360]), ("queue_one", [60, 120, 350, 550])])
def test_p18_runs_that_could_overlap_are_in_the_way_once_they_must_not(
    store: StoreMaker, overlap: OverlapPolicy, began: list[float]
) -> None:
    world = World(store, calm=True)

    async def main() -> None:
        async with world.working(takes=lambda before: 230 if before < 2 else 200) as work:
            await work.add(every("1m"), overlap="allow")
            await pass_time(130)
            await work.add(every("1m"), overlap=overlap)
            await pass_time(430)
            assert world.began == began
            assert world.most == 2, "those that ran already"

    world.play(main)


def test_p18_runs_by_hand_and_ended_ones_count_as_what_they_are(store: StoreMaker) -> None:
    world = World(store, calm=True)

    async def main() -> None:
        async with world.working(takes=lambda before: 10 if before < 2 else 100) as work:
            await work.add(every("1m"), overlap="allow")
            await pass_time(130)
            await work.scheduler.trigger_now("s")
            await work.add(every("1m"), overlap="skip")
            await pass_time(125)
            assert world.began == [60, 120, 130, 240]
            assert (await work.history())[-2:] == [("overlap", 180, 1), ("fired", 240, 1)]

    world.play(main)
