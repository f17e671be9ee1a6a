"""The heap with static keys and lazy deletion."""

from __future__ import annotations

import itertools
import random
from heapq import heappop
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.core.heap import Entry, LazyHeap


class Incomparable:
    """An item that must never be asked for its order, nor for its equality."""

    def __lt__(self, other: object) -> bool:
        raise AssertionError("items are never compared")

    __eq__ = __gt__ = __le__ = __ge__ = __lt__
    __hash__ = None  # type: ignore[assignment]


class CountingKey:
    """An int key that counts how often keys are compared."""

    compared = 0

    def __init__(self, value: int) -> None:
        self.value = value

    def __lt__(self, other: CountingKey) -> bool:
        CountingKey.compared += 1
        return self.value < other.value

    def __le__(self, other: CountingKey) -> bool:
        CountingKey.compared += 1
        return self.value <= other.value


DISORDER = [5, 3, 8, 1, 9, 2, 7, 0, 6, 4]


def filled(*keys: int, slack: int = 64) -> LazyHeap[int, str]:
    """A heap with these keys; each entry's number is its position, its item the key's text."""
    heap: LazyHeap[int, str] = LazyHeap(slack=slack)
    for seq, key in enumerate(keys):
        heap.push(key, seq, str(key))
    return heap


def emptied(heap: LazyHeap[int, str]) -> list[str]:
    return [entry[2] for entry in iter(heap.pop, None)]


def test_an_empty_heap_has_nothing_to_give() -> None:
    heap = filled()
    assert (heap.peek(), heap.pop(), heap.pop_due(10**9), heap.in_order()) == (None, None, None, [])
    assert (heap.live, heap.size) == (0, 0)


def test_what_comes_in_order_and_what_does_not_come_out_as_one() -> None:
    keys = [*range(0, 100, 10), *range(95, 0, -10), *DISORDER, *range(200, 210)]
    heap = filled(*keys)
    assert emptied(heap) == [str(key) for key in sorted(keys)]


def test_entries_that_come_in_order_are_compared_with_their_neighbours_only() -> None:
    heap: LazyHeap[CountingKey, None] = LazyHeap()
    CountingKey.compared = 0
    for seq in range(1_000):
        heap.push(CountingKey(seq), seq, None)
    assert [entry[1] for entry in iter(heap.pop, None)] == list(range(1_000))
    assert CountingKey.compared < 1_000


@pytest.mark.parametrize("keys", [range(10), DISORDER, [*range(5), *reversed(range(5, 10))]])
def test_pop_items_takes_so_many_in_order(keys: list[int]) -> None:
    heap = filled(*keys)
    assert heap.pop_items(0) == []
    assert heap.pop_items(3) == ["0", "1", "2"]
    heap.discard(list(keys).index(4))
    assert heap.pop_items(2) == ["3", "5"]
    assert heap.pop_items(100) == ["6", "7", "8", "9"]
    assert (heap.pop_items(1), heap.size) == ([], 0)


def test_entries_come_out_by_key_and_then_by_number() -> None:
    heap: LazyHeap[int, str] = LazyHeap()
    for key, seq, item in [(2, 7, "e"), (1, 9, "c"), (1, 3, "a"), (2, 1, "d"), (1, 5, "b")]:
        heap.push(key, seq, item)
    assert emptied(heap) == ["a", "b", "c", "d", "e"]


def test_items_are_never_compared() -> None:
    heap: LazyHeap[int, Incomparable] = LazyHeap(slack=0)
    for seq in range(50):
        heap.push(1, seq, Incomparable())
    for seq in range(0, 50, 2):
        heap.discard(seq)
    assert [entry[1] for entry in heap.in_order()] == list(range(1, 50, 2))
    assert [entry[1] for entry in iter(heap.pop, None)] == list(range(1, 50, 2))


def test_an_entry_is_the_plain_tuple_that_was_pushed() -> None:
    heap = filled(5)
    assert heap.peek() == (5, 0, "5")
    assert type(heap.pop()) is tuple


def test_peek_leaves_the_entry_in_place() -> None:
    heap = filled(2, 1)
    assert heap.peek() == heap.peek() == (1, 1, "1")
    assert heap.live == 2


def test_a_discarded_entry_never_comes_out() -> None:
    heap = filled(3, 1, 2)
    assert heap.discard(1)
    assert heap.live == 2
    assert emptied(heap) == ["2", "3"]


def test_discarding_twice_says_no_the_second_time() -> None:
    heap = filled(1, 2)
    assert heap.discard(0) is True
    assert heap.discard(0) is False
    assert heap.live == 1


def test_an_item_may_come_back_while_its_stale_entries_are_inside() -> None:
    heap: LazyHeap[int, Incomparable] = LazyHeap()
    item, other = Incomparable(), Incomparable()
    heap.push(5, 1, item)
    for key in (7, 3, 5, 5):
        assert heap.discard(1) is True
        assert heap.discard(1) is False
        heap.push(key, 1, item)
    heap.push(5, 2, other)
    assert [entry[:2] for entry in heap.in_order()] == [(5, 1), (5, 2)]
    assert (heap.live, heap.size) == (2, 6)
    assert [entry[:2] for entry in iter(heap.pop, None)] == [(5, 1), (5, 2)]
    assert (heap.live, heap.size, heap.dropped) == (0, 0, 4)


def test_an_item_may_come_back_before_and_behind_its_stale_entry() -> None:
    heap = filled(10, 20)
    heap.discard(0)
    heap.push(5, 0, "10")
    assert heap.pop_due(9) == (5, 0, "10")
    assert heap.pop_due(19) is None
    assert (heap.size, heap.dropped) == (1, 1)
    heap.discard(1)
    heap.push(30, 1, "20")
    assert heap.pop() == (30, 1, "20")
    assert (heap.size, heap.live, heap.dropped) == (0, 0, 2)


def test_what_came_back_can_be_discarded_after_its_stale_entry_has_left() -> None:
    heap = filled(10, 20)
    heap.discard(0)
    heap.push(15, 0, "10")
    assert heap.peek() == (15, 0, "10")
    heap.discard(0)
    assert emptied(heap) == ["20"]
    heap = filled(10, 20, slack=0)
    heap.discard(0)
    heap.push(15, 0, "10")
    for seq in range(2, 12):
        heap.push(0, seq, "")
        heap.discard(seq)
    assert heap.rebuilds > 0
    heap.discard(0)
    assert emptied(heap) == ["20"]


def test_peek_drops_stale_entries_from_the_top_only() -> None:
    heap = filled(1, 2, 3, 4)
    heap.discard(0)
    heap.discard(3)
    assert heap.peek() == (2, 1, "2")
    assert (heap.size, heap.live, heap.dropped) == (3, 2, 1)


def test_pop_says_none_when_all_that_is_left_is_stale() -> None:
    heap = filled(1, 2)
    heap.discard(0)
    heap.discard(1)
    assert heap.pop() is None
    assert (heap.size, heap.live, heap.dropped) == (0, 0, 2)


def test_pop_due_takes_what_is_at_most_the_limit() -> None:
    heap = filled(10, 20, 30)
    assert heap.pop_due(9) is None
    assert heap.pop_due(20) == (10, 0, "10")
    assert heap.pop_due(20) == (20, 1, "20")
    assert heap.pop_due(20) is None
    assert heap.live == 1


def test_pop_due_passes_over_stale_entries() -> None:
    heap = filled(10, 20, 30, 40)
    heap.discard(0)
    assert heap.pop_due(19) is None
    heap.discard(2)
    assert heap.pop_due(20) == (20, 1, "20")
    assert heap.pop_due(30) is None
    heap.discard(3)
    assert heap.pop_due(100) is None
    assert heap.size == 0


def test_the_sorted_copy_leaves_the_heap_as_it_is() -> None:
    heap = filled(3, 1, 2)
    heap.discard(2)
    assert heap.in_order() == [(1, 1, "1"), (3, 0, "3")]
    assert (heap.size, heap.live, heap.dropped) == (3, 2, 0)
    assert emptied(heap) == ["1", "3"]


def test_a_rebuild_happens_exactly_when_the_bound_would_be_passed() -> None:
    for keys in (range(100), range(100, 0, -1)):
        heap = filled(*keys, slack=20)
        for seq in range(80):
            heap.discard(seq)
        assert (heap.size, heap.live, heap.rebuilds) == (100, 20, 0)  # 100 = 20 + 4 * 20
        heap.discard(80)
        assert (heap.size, heap.live, heap.rebuilds, heap.dropped) == (19, 19, 1, 81)
        assert emptied(heap) == [str(key) for key in sorted(keys[81:])]


def test_popping_keeps_the_bound_too() -> None:
    heap = filled(*range(100), slack=20)
    for seq in range(20, 100):
        heap.discard(seq)
    assert heap.size == 100
    heap.pop()
    assert (heap.size, heap.live, heap.rebuilds) == (19, 19, 1)
    heap = filled(*range(100), slack=20)
    for seq in range(20, 100):
        heap.discard(seq)
    heap.pop_due(1)
    assert (heap.size, heap.live, heap.rebuilds) == (19, 19, 1)


def test_discarding_compares_no_keys() -> None:
    heap: LazyHeap[CountingKey, None] = LazyHeap(slack=10_000)
    for seq in range(1_000):
        heap.push(CountingKey(seq), seq, None)
    CountingKey.compared = 0
    for seq in range(1_000):
        heap.discard(seq)
    assert CountingKey.compared == 0


def test_rebuilding_costs_a_constant_for_each_discarded_entry() -> None:
    heap: LazyHeap[CountingKey, None] = LazyHeap()
    for seq in range(10_000):
        heap.push(CountingKey(-seq), seq, None)
    CountingKey.compared = 0
    for seq in range(10_000):
        heap.discard(seq)
    assert 0 < CountingKey.compared <= 10_000
    assert heap.rebuilds <= 5  # Each leaves at most a quarter of the entries.


def mixed(*keys: int, times: int) -> LazyHeap[int, int]:
    """A heap in which these keys have come so many times, one after the other; each item is its number."""
    heap: LazyHeap[int, int] = LazyHeap()
    for seq in range(times * len(keys)):
        heap.push(keys[seq % len(keys)], seq, seq)
    return heap


def by_rank(count: int, *keys: int) -> list[int]:
    """The numbers of so many entries with these keys in turns, in the order in which they come out."""
    return sorted(range(count), key=lambda seq: (keys[seq % len(keys)], seq))


@pytest.mark.parametrize("at_once", [1, 7, 1_000])
def test_keys_that_come_over_and_over_come_out_in_order(at_once: int) -> None:
    heap = mixed(3, 1, 2, times=200)
    heap.push(2, 2_000, 2_000)
    assert (heap.size, heap.live) == (601, 601)
    assert [entry[1] for entry in heap.in_order()] == [*by_rank(600, 3, 1, 2)[:400], 2_000, *range(0, 600, 3)]
    out: list[int] = []
    while items := heap.pop_items(at_once):
        assert len(items) == min(at_once, 601 - len(out))
        out += items
        assert heap.live == heap.size == 601 - len(out)
    assert out == [*by_rank(600, 3, 1, 2)[:400], 2_000, *range(0, 600, 3)]
    assert (heap.pop(), heap.peek()) == (None, None)


def test_keys_that_come_over_and_over_are_hardly_compared() -> None:
    keys = [CountingKey(value) for value in range(9, -1, -1)]
    heap: LazyHeap[CountingKey, None] = LazyHeap()
    for seq in range(20_000):
        heap.push(keys[seq % 10], seq, None)
    CountingKey.compared = 0
    for seq in range(20_000, 40_000):
        heap.push(keys[seq % 10], seq, None)
    assert CountingKey.compared <= 20_000  # With the last of the run.
    CountingKey.compared = 0
    assert len(heap.pop_items(20_000)) == 20_000
    assert CountingKey.compared < 20_000  # A list of 40,000 for heapq compares some 300,000 times.


def test_an_older_number_of_a_common_key_goes_before_the_others() -> None:
    heap = mixed(3, 1, 2, times=200)
    taken = [heap.pop() for _ in range(100)]
    assert [entry and entry[0] for entry in taken] == [1] * 100
    heap.push(1, taken[40][1] if taken[40] else -1, -40)  # as what is given back
    assert heap.pop_items(2) == [-40, 301]
    assert heap.pop_due(0) is None
    assert heap.pop_due(1) == (1, 304, 304)


def test_what_is_discarded_among_common_keys_never_comes_out() -> None:
    heap = mixed(3, 1, 2, times=200)
    for seq in range(0, 600, 2):
        heap.discard(seq)
    assert (heap.live, heap.size, heap.rebuilds) == (300, 600, 0)
    assert heap.pop_items(10) == [seq for seq in by_rank(600, 3, 1, 2) if seq % 2][:10]
    for seq in range(201, 600, 2):
        heap.discard(seq)
    assert heap.rebuilds == 1
    assert heap.size <= 64 + 4 * heap.live
    rest = [seq for seq in by_rank(600, 3, 1, 2) if seq % 2 and seq < 200][10:]
    assert [entry[1] for entry in heap.in_order()] == rest
    for seq in range(600, 1_000):
        heap.push(2, seq, seq)
    assert [entry[1] for entry in iter(heap.pop, None)] == sorted(
        [*rest, *range(600, 1_000)], key=lambda seq: (2 if seq >= 600 else [3, 1, 2][seq % 3], seq)
    )
    assert heap.dropped == 500


def test_a_key_that_is_taken_up_by_others_makes_way_for_them() -> None:
    heap: LazyHeap[int, int] = LazyHeap()
    waiting: list[tuple[int, int]] = []
    for seq in range(6_000):
        key = seq // 100 + (seq * 7) % 5
        heap.push(key, seq, seq)
        waiting.append((key, seq))
        if seq % 3:
            waiting.sort()
            entry = heap.pop()
            assert entry is not None
            assert entry[:2] == waiting.pop(0)
    assert heap.pop_items(6_000) == [seq for _, seq in sorted(waiting)]


def test_there_may_be_more_common_keys_than_rows() -> None:
    keys = [(number * 77) % 1_000 for number in range(1_000)]
    heap = mixed(*keys, times=30)
    assert heap.pop_items(40_000) == by_rank(30_000, *keys)
    keys = [9, 8, 8, 7, 7, 6, 6, 5, 5, 5, 8, 7]
    with mock.patch.multiple("betimes.core.heap", _LOOKED_AT=0, _MOST_ROWS=3):
        heap = mixed(*keys, times=3)
        assert [entry[1] for entry in iter(heap.pop, None)] == by_rank(36, *keys)


Step = tuple[str, int]
KINDS = ["push", "push", "last", "back", "discard", "pop", "pop_due", "pop_items", "peek"]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 9)), max_size=80)


def take(heap: LazyHeap[int, int], model: list[Entry[int, int]], step: Step) -> None:
    """Do one step on the heap and on a plain sorted list, and compare what they say."""
    kind, key = step
    first = model[0] if model else None
    if kind == "discard" and model:
        entry = model.pop(key % len(model))
        assert heap.discard(entry[1])
        assert not any(other[1] == entry[1] for other in heap.in_order())
    elif kind == "pop":
        assert heap.pop() == first
        del model[:1]
    elif kind == "pop_due":
        due = first if first is not None and first[0] <= key else None
        assert heap.pop_due(key) == due
        if due is not None:
            model.remove(due)
    elif kind == "pop_items":
        assert heap.pop_items(key) == [entry[2] for entry in model[:key]]
        del model[:key]
    elif kind == "peek":
        assert heap.peek() == first


@given(steps=STEPS, slack=st.sampled_from([0, 1, 64]))
def test_it_does_what_a_sorted_list_does(steps: list[Step], slack: int) -> None:
    check_against_a_list(steps, slack)


@given(steps=STEPS, slack=st.sampled_from([0, 1, 64]), most=st.sampled_from([1, 2, 256]))
def test_it_does_so_with_rows(steps: list[Step], slack: int, most: int) -> None:
    with mock.patch.multiple("betimes.core.heap", _LOOKED_AT=0, _MOST_ROWS=most):
        check_against_a_list(steps, slack)


def check_against_a_list(steps: list[Step], slack: int) -> None:
    heap: LazyHeap[int, int] = LazyHeap(slack=slack)
    model: list[Entry[int, int]] = []
    discarded = 0
    for position, step in enumerate(steps):
        outside = sorted(set(range(position)) - {entry[1] for entry in model})
        if step[0] in {"push", "last"} or (step[0] == "back" and outside):
            seq = outside[step[1] % len(outside)] if step[0] == "back" else position
            key = step[1] + position if step[0] == "last" else step[1]
            heap.push(key, seq, -seq)
            model.append((key, seq, -seq))
            model.sort()
        before = len(model)
        take(heap, model, step)
        discarded += step[0] == "discard" and len(model) < before
        assert heap.live == len(model)
        assert heap.in_order() == model
        assert heap.size <= slack + 4 * heap.live
        assert heap.size - heap.live == discarded - heap.dropped
    assert [heap.pop() for _ in list(model)] == model
    assert heap.pop() is None
    assert heap.dropped == discarded


def test_each_stale_entry_is_popped_at_most_once(monkeypatch: pytest.MonkeyPatch) -> None:
    popped: list[int] = []

    def counting_pop(entries: list[Entry[int, None]]) -> Entry[int, None]:
        popped.append(entries[0][1])
        return heappop(entries)

    monkeypatch.setattr("betimes.core.heap.heappop", counting_pop)
    rng = random.Random(3)
    heap: LazyHeap[int, None] = LazyHeap(slack=8)
    inside: set[int] = set()
    stale: set[int] = set()
    for seq in itertools.count():
        heap.push(rng.randrange(100), seq, None)
        inside.add(seq)
        for gone in rng.sample(sorted(inside), k=min(len(inside), rng.randrange(3))):
            heap.discard(gone)
            inside.discard(gone)
            stale.add(gone)
        if rng.random() < 0.3 and (entry := heap.pop()) is not None:
            inside.discard(entry[1])
        if seq > 2_000:
            break
    while heap.pop() is not None:
        pass
    assert len(popped) == len(set(popped))
    assert stale & set(popped)
    assert heap.rebuilds > 0
    assert heap.dropped == len(stale)
