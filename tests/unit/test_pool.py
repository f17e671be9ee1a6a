"""Who can never go on when jobs wait inside a pool for jobs that need its slots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.core.pool import Holder, Lockup, Wanted, lockup


def holder(seq: int, *waits_for: int, lane: str = "loop") -> Holder:
    return Holder(seq=seq, lane=lane, waits_for=waits_for)


def wanted(seq: int, *waits_for: int, lane: str = "loop") -> Wanted:
    return Wanted(seq=seq, lane=lane, waits_for=waits_for)


def found(
    holders: list[Holder], jobs: list[Wanted], *, free: int = 0, free_lanes: dict[str, int] | None = None
) -> tuple[set[int], set[int]]:
    answer = lockup(holders, jobs, free=free, free_lanes={"loop": free} if free_lanes is None else free_lanes)
    return set(answer.held), set(answer.starved)


NOBODY: tuple[set[int], set[int]] = set(), set()


def test_a_pool_in_which_nobody_waits_is_sound() -> None:
    assert found([holder(1), holder(2)], []) == NOBODY
    assert not Lockup()


def test_jobs_that_hold_all_slots_and_wait_for_their_children_are_locked_up() -> None:
    assert found([holder(1, 11), holder(2, 12)], [wanted(11), wanted(12)]) == ({1, 2}, {11, 12})
    assert lockup([holder(1, 11)], [wanted(11)], free=0, free_lanes={"loop": 0})


@pytest.mark.parametrize(
    "holders",
    [
        [holder(1, 11), holder(2)],  # the second one gives its slot back some day
        [holder(1, 11), holder(2, 99)],  # what it waits for runs elsewhere, or is not known
        [holder(1, 11), holder(2, 12, 99)],  # one of two may end, and that may be enough
    ],
)
def test_one_that_goes_on_frees_all(holders: list[Holder]) -> None:
    assert found(holders, [wanted(11), wanted(12)]) == NOBODY


def test_a_free_slot_frees_all() -> None:
    assert found([holder(1, 11), holder(2, 12)], [wanted(11), wanted(12)], free=1) == NOBODY


def test_a_slot_of_another_lane_helps_nobody() -> None:
    threads = [holder(1, 11, lane="thread")]
    jobs = [wanted(11, lane="thread")]
    assert found(threads, jobs, free=5, free_lanes={"loop": 5, "thread": 0}) == ({1}, {11})
    both = [*threads, holder(2, lane="loop")]
    assert found(both, jobs, free=4, free_lanes={"loop": 4, "thread": 0}) == ({1}, {11})
    assert found([*threads, holder(2, lane="thread")], jobs, free=4, free_lanes={"thread": 0}) == NOBODY


def test_a_lane_with_room_helps_nobody_while_the_pool_is_full() -> None:
    jobs = [wanted(11, lane="thread")]
    assert found([holder(1, 11)], jobs, free=0, free_lanes={"loop": 0, "thread": 1}) == ({1}, {11})
    assert found([holder(1, 11), holder(2)], jobs, free_lanes={"loop": 0, "thread": 1}) == NOBODY


def test_a_job_that_waits_for_itself_is_locked_up_whatever_is_free() -> None:
    assert found([holder(1, 1)], [], free=9) == ({1}, set())


def test_jobs_that_wait_for_each_other_are_locked_up_and_the_rest_is_not() -> None:
    assert found([holder(1, 2), holder(2, 1), holder(3)], [], free=9) == ({1, 2}, set())


def test_who_waits_for_a_neighbour_that_goes_on_goes_on() -> None:
    assert found([holder(1, 2), holder(2)], []) == NOBODY


def test_a_job_that_depends_on_a_locked_up_one_can_never_start() -> None:
    jobs = [wanted(11, 12), wanted(12)]
    assert found([holder(1, 11)], jobs) == ({1}, {11, 12})
    assert found([holder(1, 11)], jobs, free=1) == NOBODY
    # It needs all of them: that one of two may end is not enough.
    assert found([holder(1, 11), holder(2, 2)], [wanted(11, 2, 99)], free=1) == ({1, 2}, {11})


def test_a_chain_is_followed_to_its_end() -> None:
    jobs = [wanted(n, n + 1) for n in range(10, 20)] + [wanted(20)]
    assert found([holder(1, 10)], jobs, free=1) == NOBODY
    assert found([holder(1, 10)], jobs) == ({1}, set(range(10, 21)))


def test_while_the_worker_stops_nothing_starts_whatever_is_free() -> None:
    answer = lockup(
        [holder(1, 11), holder(2)], [wanted(11)], free=5, free_lanes={"loop": 5}, is_claiming=False
    )
    assert (set(answer.held), set(answer.starved)) == ({1}, {11})


def test_a_job_in_flight_is_not_wanted_twice() -> None:
    assert found([holder(1, 2), holder(2)], [wanted(2)]) == NOBODY


seqs = st.integers(1, 8)
lanes = st.sampled_from(["loop", "thread"])


@given(
    st.dictionaries(seqs, st.tuples(lanes, st.sets(seqs, max_size=3)), max_size=4),
    st.dictionaries(st.integers(5, 12), st.tuples(lanes, st.sets(seqs, max_size=2)), max_size=4),
    st.fixed_dictionaries({"loop": st.integers(0, 2), "thread": st.integers(0, 2)}),
)
def test_whoever_is_locked_up_waits_for_nobody_who_goes_on(
    in_flight: dict[int, tuple[str, set[int]]],
    waiting: dict[int, tuple[str, set[int]]],
    free_lanes: dict[str, int],
) -> None:
    holders = [holder(seq, *waits, lane=lane) for seq, (lane, waits) in in_flight.items()]
    jobs = [wanted(seq, *waits, lane=lane) for seq, (lane, waits) in waiting.items() if seq not in in_flight]
    free = max(free_lanes.values())
    answer = lockup(holders, jobs, free=free, free_lanes=free_lanes)
    stuck = answer.held | answer.starved
    going_on = [one.lane for one in holders if one.seq not in answer.held]
    for one in holders:
        waits_in_vain = bool(one.waits_for) and set(one.waits_for) <= stuck
        assert (one.seq in answer.held) == waits_in_vain
    for job in jobs:
        has_slot = (free or going_on) and (free_lanes[job.lane] or job.lane in going_on)
        can_start = bool(has_slot) and not set(job.waits_for) & stuck
        assert (job.seq in answer.starved) == (not can_start)


def full(seq: int, *limits: tuple[int, ...]) -> Wanted:
    """A job that has a slot, but finds limits full, of which these hold all the places."""
    return Wanted(seq=seq, lane="loop", limits=limits)


@pytest.mark.parametrize(
    ("jobs", "answer"),
    [
        ([full(9, (1,))], ({1, 2}, {9})),
        ([full(9, (1, 2))], ({1, 2}, {9})),
        ([full(9, (1, 3))], NOBODY),  # the third goes on, and gives its place back
        ([full(9, (1, 77))], NOBODY),  # of one in another process nothing is known
        ([full(9, (3,), (2,))], ({1, 2}, {9})),
        ([full(9)], NOBODY),
    ],
)
def test_whose_limit_is_held_by_those_that_wait_for_it_never_starts(
    jobs: list[Wanted], answer: tuple[set[int], set[int]]
) -> None:
    assert found([holder(1, 9), holder(2, 9), holder(3)], jobs, free=5) == answer
