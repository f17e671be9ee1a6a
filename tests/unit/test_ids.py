"""Ids: UUIDv7 text that only grows, whatever the clock does."""

from __future__ import annotations

import random
import threading
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.clock import IdMaker, SystemClock, new_rng
from betimes.testing import VirtualClock

COUNT_OF_ONE_MILLISECOND = 4096


def unix_ms(made: str) -> int:
    return uuid.UUID(made).int >> 80


def test_an_id_is_canonical_uuid_text_of_version_7() -> None:
    made = IdMaker(SystemClock(), new_rng())()
    parsed = uuid.UUID(made)
    assert made == str(parsed)
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)


def test_an_id_begins_with_the_clocks_millisecond() -> None:
    clock = VirtualClock()
    clock.advance(0.0019)
    assert unix_ms(IdMaker(clock, new_rng())()) == clock.now() // 1000


def test_ids_of_one_millisecond_count_and_share_their_random_bits() -> None:
    make = IdMaker(VirtualClock(), new_rng())
    first, second = make(), make()
    assert first[:15] == second[:15]
    assert (first[15:18], second[15:18]) == ("000", "001")
    assert first[18:] == second[18:]


def test_each_millisecond_draws_new_random_bits() -> None:
    clock = VirtualClock()
    make = IdMaker(clock, new_rng())
    first = make()
    clock.advance(0.001)
    second = make()
    assert unix_ms(second) == unix_ms(first) + 1
    assert second[15:18] == "000"
    assert first[18:] != second[18:]


@pytest.mark.parametrize("make_many", [False, True])
def test_more_ids_than_a_millisecond_counts_go_on_in_the_next(make_many: bool) -> None:
    make = IdMaker(VirtualClock(), new_rng())
    wanted = 3 * COUNT_OF_ONE_MILLISECOND + 1
    made = make.many(wanted) if make_many else [make() for _ in range(wanted)]
    assert made == sorted(set(made))
    assert len(made) == wanted
    assert unix_ms(made[-1]) == unix_ms(made[0]) + 3
    assert all(uuid.UUID(one).version == 7 for one in made[:: COUNT_OF_ONE_MILLISECOND // 2])


def test_ids_increase_while_the_wall_clock_goes_back() -> None:
    clock = VirtualClock()
    make = IdMaker(clock, new_rng())
    before = make()
    clock.jump(-3600)
    after = [make() for _ in range(2 * COUNT_OF_ONE_MILLISECOND)]
    assert [before, *after] == sorted({before, *after})
    clock.jump(7200)
    assert unix_ms(make()) == clock.now() // 1000


@given(
    seed=st.integers(0, 2**32),
    steps=st.lists(
        st.tuples(st.integers(-5_000_000, 5_000_000), st.integers(0, 9), st.booleans()), max_size=30
    ),
)
def test_ids_increase_whatever_the_clock_does_and_repeat_with_the_seed(
    seed: int, steps: list[tuple[int, int, bool]]
) -> None:
    def run() -> list[str]:
        clock = VirtualClock()
        make = IdMaker(clock, random.Random(seed))
        made = []
        for micros, wanted, is_batch in steps:
            clock.jump(micros / 1_000_000)
            made += make.many(wanted) if is_batch else [make() for _ in range(wanted)]
        return made

    made = run()
    assert made == sorted(set(made))
    assert len(made) == sum(wanted for _, wanted, _ in steps)
    assert run() == made


def test_a_clock_before_the_epoch_still_makes_proper_ids() -> None:
    clock = VirtualClock()
    clock.jump(-clock.now() / 1_000_000 - 3600)
    assert clock.now() < 0
    make = IdMaker(clock, new_rng())
    first, second = make(), make()
    assert uuid.UUID(first).version == 7
    assert first < second


def test_a_batch_of_none_is_empty() -> None:
    assert IdMaker(VirtualClock(), new_rng()).many(0) == []


def test_threads_that_share_a_maker_never_get_the_same_id() -> None:
    make = IdMaker(SystemClock(), new_rng())
    made: list[list[str]] = [[] for _ in range(8)]
    start = threading.Barrier(len(made))

    def fill(mine: list[str]) -> None:
        start.wait(timeout=30)
        for _ in range(50):
            mine.extend(make() for _ in range(30))
            mine.extend(make.many(30))

    threads = [threading.Thread(target=fill, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    for mine in made:
        assert mine == sorted(mine)
        assert len(mine) == 3000
    assert len({one for mine in made for one in mine}) == 24_000


def test_a_seeded_generator_repeats_and_an_unseeded_one_does_not() -> None:
    assert new_rng(5).getrandbits(128) == new_rng(5).getrandbits(128)
    assert new_rng().getrandbits(128) != new_rng().getrandbits(128)
