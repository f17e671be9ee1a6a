"""The instants within a schedule's bounds: every answer of a trigger is checked, and the past is bounded."""

from __future__ import annotations

import pytest
from tests.unit.plots import MINUTE, Counted, Listed, S, Wrong, grid, minutely

from betimes.core.grid import STEPS, Grid, TriggerFailed
from betimes.core.triggers import Trigger, cron, every


def test_the_next_instant_is_the_triggers_own() -> None:
    of = grid(10, 20)
    assert [of.next(9 * S), of.next(10 * S), of.next(20 * S)] == [10 * S, 20 * S, None]


def test_nothing_lies_before_the_start_and_the_start_itself_may_be_an_instant() -> None:
    of = grid(10, 20, 30, starts_at=20 * S)
    assert of.next(0) == 20 * S
    assert of.next(20 * S) == 30 * S


def test_nothing_lies_after_the_end_and_the_end_itself_may_be_an_instant() -> None:
    of = grid(10, 20, 30, ends_at=20 * S)
    assert of.next(10 * S) == 20 * S
    assert of.next(20 * S) is None


def test_a_fixed_delay_begins_with_the_start_itself() -> None:
    of = Grid(trigger=every("1m", after="finish"), starts_at=100 * S)
    assert of.next(0) == of.next(100 * S - 1) == 100 * S
    assert of.next(100 * S) == 160 * S
    assert of.next(101 * S) == 161 * S


def test_p17_a_trigger_that_does_not_advance_is_refused() -> None:
    for back in (0, 1):
        of = Grid(trigger=Wrong(lambda after, back=back: after - back))  # type: ignore[misc] # a default
        with pytest.raises(TriggerFailed, match="asked for what follows 1970-01-01T00:00:10"):
            of.next(10 * S)


def test_what_a_trigger_raises_is_told_with_its_type() -> None:
    of = Grid(trigger=Wrong(ZeroDivisionError("by zero")))
    with pytest.raises(TriggerFailed, match=r"^its trigger raised ZeroDivisionError: by zero$") as caught:
        of.next(0)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(TriggerFailed, match=r"^its trigger raised ZeroDivisionError: moved$"):
        of.moved_from(0)
    counts_wrong = Grid(trigger=Wrong(lambda after: after + 1))
    with pytest.raises(TriggerFailed, match=r"^its trigger raised ZeroDivisionError: counted$"):
        counts_wrong.window(0, 10 * STEPS, keep=1)


def test_a_moved_instant_names_its_wall_time() -> None:
    of = grid(10, 20, moved=[20])
    assert (of.moved_from(10 * S), of.moved_from(20 * S)) == (None, "wall 20")


def test_a_window_of_one_instant() -> None:
    window = grid(10, 20).window(10 * S, 15 * S, keep=3)
    assert (window.newest, window.following) == ((10 * S,), 20 * S)
    assert (window.earlier, window.earlier_first, window.earlier_last) == (0, None, None)
    assert grid(10).window(10 * S, 10 * S, keep=1).following is None


@pytest.mark.parametrize("keep", [1, 2, 3, 4, 9])
def test_a_window_keeps_the_newest_and_counts_the_others(keep: int) -> None:
    instants = [10, 20, 30, 40]
    window = grid(*instants, 50).window(10 * S, 40 * S, keep=keep)
    earlier = instants[:-keep]
    assert window.newest == tuple(each * S for each in instants[-keep:])
    assert (window.earlier, window.is_exact, window.following) == (len(earlier), True, 50 * S)
    assert window.earlier_first == (earlier[0] * S if earlier else None)
    assert window.earlier_last == (earlier[-1] * S if earlier else None)


@pytest.mark.parametrize("keep", [1, 7, 100, 1000])
@pytest.mark.parametrize("beyond", [0, 1, 2, 6, 7, 8, 99, 100, 101, 999, 1000, 1001, 5000])
def test_however_many_are_due_the_newest_are_the_newest(keep: int, beyond: int) -> None:
    """Also where there are a few more than are stepped through."""
    total = keep + STEPS + beyond
    trigger = Counted(range(10, 10 * total + 10, 10))
    window = Grid(trigger=trigger).window(10 * S, 10 * total * S + 5 * S, keep=keep)
    assert window.newest == tuple(trigger.instants[-keep:])
    assert (window.earlier, window.is_exact, window.following) == (total - keep, True, None)
    assert window.earlier_first == trigger.instants[0]
    assert window.earlier_last == trigger.instants[-keep - 1]


def test_case_025_ten_years_of_seconds_are_not_stepped_through() -> None:
    class Asked(Trigger):
        asked = 0

        def next(self, after: object) -> None: ...

        def next_us(self, after: int) -> int:
            Asked.asked += 1
            return after // S * S + S

    years = 10 * 365 * 86_400
    window = Grid(trigger=Asked()).window(S, years * S, keep=1000)
    assert window.newest == tuple(range((years - 999) * S, years * S + S, S))
    assert (window.is_exact, window.earlier) == (False, STEPS + 1000)
    assert (window.earlier_last, window.following) == ((years - 1000) * S, (years + 1) * S)
    assert Asked.asked < 6 * STEPS


def test_case_025_a_trigger_that_can_count_is_exact_over_ten_years() -> None:
    years = 10 * 365 * 86_400
    window = Grid(trigger=every(1).anchored(0)).window(S, years * S, keep=100)
    assert (window.earlier, window.is_exact) == (years - 100, True)
    assert window.newest[-1] == years * S


@pytest.mark.parametrize("keep", [1, 3, 50])
def test_the_newest_are_found_where_the_rate_has_grown(keep: int) -> None:
    sparse = [day * 86_400 for day in range(1, STEPS + keep + 10)]
    trigger = Listed([*sparse, *range(sparse[-1] + 1, sparse[-1] + 20_000)])
    until = trigger.instants[-1]
    window = Grid(trigger=trigger).window(trigger.instants[0], until, keep=keep)
    assert window.newest == tuple(trigger.instants[-keep:])
    assert window.earlier_last == trigger.instants[-keep - 1]
    assert not window.is_exact


@pytest.mark.parametrize("keep", [1, 3, 50])
def test_the_newest_are_found_where_the_rate_has_fallen(keep: int) -> None:
    dense = list(range(1, STEPS + keep + 10))
    trigger = Listed([*dense, *range(10**6, 10**6 + 40 * 86_400, 86_400)])
    window = Grid(trigger=trigger).window(S, 10**9 * S, keep=keep)
    assert window.newest == tuple(trigger.instants[-keep:])
    assert window.following is None


def test_a_window_ends_with_the_schedule() -> None:
    of = Grid(trigger=minutely(), ends_at=5 * MINUTE)
    window = of.window(MINUTE, 90 * MINUTE, keep=2)
    assert window.newest == (4 * MINUTE, 5 * MINUTE)
    assert (window.earlier, window.following) == (3, None)


class Mute(Listed):
    """A user's trigger that cannot even say what it does."""

    def sentence(self) -> str:
        raise KeyError("words")

    @property
    def tz(self) -> str | None:
        raise KeyError("zone")


def test_a_trigger_that_cannot_say_its_rule_can_still_be_listed() -> None:
    of = Grid(trigger=Mute([10]))
    assert of.sentence() == "By the rule of Mute, which cannot say it: its trigger raised KeyError: 'words'"
    assert of.tz() is None
    assert of.next(0) == 10 * S


def test_the_zone_is_a_name_or_none() -> None:
    class Odd(Listed):
        tz = 5  # type: ignore[assignment]

    assert Grid(trigger=every("1m")).tz() is None
    assert Grid(trigger=cron("0 9 * * *", tz="Europe/Berlin")).tz() == "Europe/Berlin"
    assert Grid(trigger=Odd([10])).tz() is None
