"""Dealing dispatches to queues by shares."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from betimes.core.queue_shares import QueueShares


def dealt(shares: QueueShares, number: int, queues: Collection[str], *, at_once: int = 1) -> str:
    """Deal so many dispatches among queues that all have jobs, so many in one claim."""
    got = ""
    while len(got) < number:
        dealer = shares.dealer()
        claimed = [dealer.next(queues) for _ in range(min(at_once, number - len(got)))]
        got += "".join(claimed)
        shares.dealt(claimed)
    return got


@pytest.mark.parametrize("at_once", [1, 2, 3, 7, 40])
def test_of_ten_dispatches_one_goes_to_the_queue_of_one_share(at_once: int) -> None:
    got = dealt(QueueShares({"d": 9, "l": 1}), 40, "dl", at_once=at_once)
    assert [got[begin : begin + 10].count("l") for begin in range(0, 40, 10)] == [1] * 4


def test_the_order_of_a_round_is_even_and_begins_with_the_first() -> None:
    assert dealt(QueueShares({"a": 3, "b": 2, "c": 1}), 12, "abc") == "abcabaabcaba"


def test_equal_queues_take_turns() -> None:
    assert dealt(QueueShares({"b": 5, "a": 5}), 6, "ab") == "bababa"


def test_a_queue_that_was_empty_gets_no_credit() -> None:
    shares = QueueShares({"a": 1, "b": 1})
    assert dealt(shares, 50, "a") == "a" * 50
    assert dealt(shares, 6, "ab") == "bababa"


def test_a_queue_that_was_dealt_much_alone_pays_nothing_for_it() -> None:
    shares = QueueShares({"a": 4, "b": 1})
    dealt(shares, 50, "b")
    assert dealt(shares, 20, "ab").count("b") in {3, 4}


def test_what_was_dealt_but_not_taken_does_not_count() -> None:
    shares = QueueShares({"a": 1, "b": 1})
    for _ in range(5):
        assert shares.dealer().next("ab") == "a"
    shares.dealt([])
    assert dealt(shares, 2, "ab") == "ab"


def test_dispatches_count_in_whatever_order_they_are_told() -> None:
    one, other = QueueShares({"a": 2, "b": 1}), QueueShares({"a": 2, "b": 1})
    dealer = one.dealer()
    claimed = [dealer.next("ab") for _ in range(5)]
    one.dealt(claimed)
    other.dealt(sorted(claimed))
    assert dealt(one, 9, "ab") == dealt(other, 9, "ab")


def test_a_queue_without_a_share_is_dealt_nothing() -> None:
    assert dealt(QueueShares({"a": 1}), 3, ["z", "a"]) == "aaa"
