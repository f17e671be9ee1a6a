"""The slots of a worker: whose they are, when they are free, and who must wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from betimes.core.worker_state import Phase, WorkerState


class Attempt:
    """As much of an attempt as takes a slot."""

    def __init__(self, seq: int, lane: str = "loop") -> None:
        self.seq = seq
        self.lane = lane
        self.is_recorded = False
        self.has_returned = False

    def __repr__(self) -> str:
        return f"<{self.seq} {self.lane}>"


def state_with(
    *attempts: Attempt, concurrency: int = 3, loop: int = 3, thread: int = 2
) -> WorkerState[Attempt]:
    state: WorkerState[Attempt] = WorkerState(concurrency=concurrency, slots={"loop": loop, "thread": thread})
    state.on_claimed(attempts)
    return state


def test_a_claim_takes_slots_of_the_worker_and_of_the_lane() -> None:
    state = state_with()
    assert state.room() == (3, {"loop": 3, "thread": 2})
    state.on_claimed([Attempt(1, "thread"), Attempt(2)])
    assert (state.room(), state.peak) == ((1, {"loop": 2, "thread": 1}), 2)
    assert sorted(state.in_flight) == [1, 2]


@pytest.mark.parametrize("returns_first", [True, False])
def test_a_slot_is_free_when_the_outcome_is_recorded_and_the_code_has_returned(returns_first: bool) -> None:
    attempt = Attempt(1)
    state = state_with(attempt)
    steps: list[Callable[[], None]] = [
        lambda: state.on_returned(attempt),
        lambda: state.on_recorded([attempt]),
    ]
    for step in steps if returns_first else reversed(steps):
        assert (state.room()[0], list(state.in_flight)) == (2, [1])
        step()
    assert (state.room()[0], state.in_flight, state.zombies) == (3, {}, {})


def test_code_whose_outcome_is_recorded_while_it_runs_is_a_zombie_until_it_returns() -> None:
    attempt = Attempt(1)
    state = state_with(attempt, Attempt(2))
    assert (state.has_held, sorted(state.held())) == (True, [1, 2])
    state.on_recorded([attempt])
    assert (list(state.zombies), list(state.held()), state.room()[0]) == ([1], [2], 1)
    state.on_returned(attempt)
    assert (state.zombies, state.room()[0]) == ({}, 2)


def test_a_late_attempt_is_not_to_be_claimed_again_although_its_outcome_is_on_its_way() -> None:
    attempt = Attempt(1)
    state = state_with(attempt)
    state.on_late(attempt)
    assert (list(state.zombies), list(state.held()), state.has_held) == ([1], [1], False)
    state.on_returned(attempt)
    assert (state.zombies, state.room()[0], state.has_held) == ({}, 2, True)
    state.on_recorded([attempt])
    assert (state.room()[0], state.in_flight) == (3, {})


def test_what_ends_in_the_same_step_makes_room_for_what_is_claimed_in_it() -> None:
    ended, late, gone = Attempt(1), Attempt(2, "thread"), Attempt(3)
    state = state_with(ended, late, gone)
    ended.has_returned = gone.has_returned = True
    assert state.room() == (0, {"loop": 1, "thread": 1})
    assert state.room([ended, late, gone]) == (2, {"loop": 3, "thread": 1})
    state.on_recorded([gone])  # given up meanwhile: its slot is not given twice
    assert state.room([ended, late, gone]) == (2, {"loop": 3, "thread": 1})


@pytest.mark.parametrize("phase", [Phase.DRAINING, Phase.STOPPED])
def test_a_worker_that_drains_has_no_room(phase: Phase) -> None:
    ended = Attempt(1)
    state = state_with(ended)
    ended.has_returned = True
    state.phase = phase
    assert (state.room()[0], state.room([ended])[0]) == (0, 0)


def test_a_job_has_one_attempt_in_flight_and_there_are_never_more_than_slots() -> None:
    state = state_with(Attempt(1), concurrency=1)
    with pytest.raises(AssertionError):
        state.on_claimed([Attempt(1)])
    with pytest.raises(AssertionError):
        state.on_claimed([Attempt(2)])


class Lives(RuleBasedStateMachine):
    """Any order of claims, deadlines, returns and records keeps the count."""

    def __init__(self) -> None:
        super().__init__()
        self.state = state_with(concurrency=4)
        self.made = 0
        self.all: list[Attempt] = []

    def flying(self) -> list[Attempt]:
        return list(self.state.in_flight.values())

    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        free, lanes = self.state.room()
        open_lanes = [lane for lane, slots in lanes.items() if slots > 0]
        if free > 0 and open_lanes:
            self.made += 1
            self.state.on_claimed([Attempt(self.made, data.draw(st.sampled_from(open_lanes)))])

    @precondition(lambda self: self.state.in_flight)
    @rule(data=st.data())
    def late(self, data: st.DataObject) -> None:
        attempt = data.draw(st.sampled_from(self.flying()))
        if not attempt.has_returned and not attempt.is_recorded:
            self.state.on_late(attempt)

    @precondition(lambda self: self.state.in_flight)
    @rule(data=st.data())
    def return_(self, data: st.DataObject) -> None:
        attempt = data.draw(st.sampled_from(self.flying()))
        if not attempt.has_returned:
            self.state.on_returned(attempt)

    @precondition(lambda self: self.state.in_flight)
    @rule(data=st.data())
    def record(self, data: st.DataObject) -> None:
        attempt = data.draw(st.sampled_from(self.flying()))
        if not attempt.is_recorded:
            self.state.on_recorded([attempt])

    @invariant()
    def the_count_is_right(self) -> None:
        flying = self.flying()
        assert self.state.room()[0] == 4 - len(flying) >= 0
        assert self.state.room()[1] == {
            "loop": 3 - count(flying, "loop"),
            "thread": 2 - count(flying, "thread"),
        }
        assert not [each for each in flying if each.is_recorded and each.has_returned]
        recorded = {each.seq for each in flying if each.is_recorded}
        assert recorded <= set(self.state.zombies) <= set(self.state.in_flight)
        assert set(self.state.held()) == {each.seq for each in flying} - recorded


def count(attempts: Iterable[Attempt], lane: str) -> int:
    return sum(each.lane == lane for each in attempts)


TestLives = Lives.TestCase
