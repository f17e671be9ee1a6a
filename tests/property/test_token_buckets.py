"""Rates against a bucket that is kept the plain way, in exact fractions, for any course of events."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from betimes.core.limits import Gate, GateKind, GateTerms

NOW = 1_800_000_000_000_000
everies = st.integers(1, 40)
bursts = st.integers(1, 6)
moves = st.tuples(st.integers(0, 30), st.sampled_from(["charge", "charge", "charge", "refund", "look"]))


@dataclass
class Bucket:
    """So many tokens, as of an instant; they gather with time, and no more than the burst."""

    every: int
    burst: int
    tokens: Fraction
    at: int

    def look(self, now: int) -> Fraction:
        gathered = self.tokens + Fraction(now - self.at, self.every)
        self.tokens, self.at = min(gathered, Fraction(self.burst)), now
        return self.tokens


def gate(every: int, burst: int) -> Gate:
    terms = GateTerms(kind=GateKind.RATE, name="r", every_us=every, burst=burst)
    return Gate(terms.rule, terms)


@given(everies, bursts, st.lists(moves, max_size=60))
def test_a_rate_is_the_bucket_that_is_kept_the_plain_way(
    every: int, burst: int, course: list[tuple[int, str]]
) -> None:
    subject, bucket, now = gate(every, burst), Bucket(every, burst, Fraction(burst), NOW), NOW
    charged: list[int] = []
    for passed, act in course:
        now += passed
        tokens = bucket.look(now)
        assert subject.free(now, 99) == tokens.numerator // tokens.denominator
        assert subject.is_open(now) == (tokens >= 1)
        opens_at = subject.opens_at(now)
        assert opens_at is not None
        assert opens_at == (now if tokens >= 1 else now + -(-(1 - tokens) * every // 1))
        if act == "charge" and tokens >= 1:
            subject.charge(now)
            bucket.tokens -= 1
            charged.append(now)
        elif act == "refund" and charged:
            subject.refund(charged.pop())
            bucket.tokens = min(bucket.tokens + 1, Fraction(burst))


@given(everies, bursts, st.lists(st.integers(0, 60), max_size=80))
def test_no_window_has_more_starts_than_the_burst_and_what_gathers_in_it(
    every: int, burst: int, waits: list[int]
) -> None:
    subject, now, starts = gate(every, burst), NOW, []
    for wait in waits:
        now += wait
        while subject.is_open(now):
            subject.charge(now)
            starts.append(now)
    for first, begin in enumerate(starts):
        for last in range(first, len(starts)):
            assert last - first + 1 <= burst + Fraction(starts[last] - begin, every)


@given(everies, bursts, st.integers(1, 50))
def test_constant_demand_gets_every_token_at_its_instant(every: int, burst: int, number: int) -> None:
    subject, now, starts = gate(every, burst), NOW, []
    for _ in range(number):
        opens_at = subject.opens_at(now)
        assert opens_at is not None
        now = opens_at
        subject.charge(now)
        starts.append(now - NOW)
    assert starts == [max(0, place - burst + 1) * every for place in range(number)]


@given(everies, bursts, everies, bursts, st.lists(st.integers(0, 90), max_size=20), st.integers(0, 200))
def test_a_change_gives_no_token_early_and_owes_no_more_than_a_whole_bucket(
    every: int, burst: int, new_every: int, new_burst: int, waits: list[int], later: int
) -> None:
    subject, now = gate(every, burst), NOW
    for wait in waits:
        now += wait
        if subject.is_open(now):
            subject.charge(now)
    missing = max(Fraction(subject.full_at - now, every), Fraction(0))
    subject.change(GateTerms(kind=GateKind.RATE, name="r", every_us=new_every, burst=new_burst), now)
    owed = min(missing, Fraction(new_burst))
    tokens = min(new_burst - owed + Fraction(later, new_every), Fraction(new_burst))
    free = subject.free(now + later, 99)
    assert tokens - Fraction(1, new_every) - 1 < free <= tokens


@given(everies, bursts, st.integers(1, 8), st.integers(-10_000, -1), st.integers(0, 300))
def test_after_a_clock_was_set_back_it_is_never_further_from_full_than_empty(
    every: int, burst: int, charges: int, jump: int, later: int
) -> None:
    subject, now = gate(every, burst), NOW
    for _ in range(charges):
        now = subject.opens_at(now) or now
        subject.charge(now)
    now += jump
    subject.heed(now)
    assert subject.free(now + later, 99) >= min(later // every, burst)
    assert not subject.heed(now + later)
