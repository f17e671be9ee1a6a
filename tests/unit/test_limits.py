"""Gates: the arithmetic of limits, rates and breakers."""

from __future__ import annotations

import pytest
from tests.unit.lives import NOW, SECOND, ready

from betimes.core.limits import (
    Gate,
    GateKind,
    GateTerms,
    GateView,
    first_closed,
    gate_key,
    line_of,
    named,
    rule_of,
)

DAY = 86_400 * SECOND


def limit(most: int = 2, *, held: int = 0) -> Gate:
    terms = GateTerms(kind=GateKind.LIMIT, name="l", max_running=most)
    return Gate(terms.rule, terms, held=held)


def rate(every: int = 10, burst: int = 1) -> Gate:
    terms = GateTerms(kind=GateKind.RATE, name="r", every_us=every, burst=burst)
    return Gate(terms.rule, terms)


def breaker(open_for: int = 10) -> Gate:
    terms = GateTerms(kind=GateKind.BREAKER, name="b", every_us=open_for)
    return Gate(terms.rule, terms)


# keys


@pytest.mark.parametrize("kind", GateKind)
@pytest.mark.parametrize("name", ["payments", "a:b", "ü x", ":"])
@pytest.mark.parametrize("value", [None, "", "acme", "with\ttab", "a:b"])
def test_a_key_tells_kind_name_and_value(kind: GateKind, name: str, value: str | None) -> None:
    key = gate_key(kind, name, value)
    assert named(key) == (kind, name, value)
    assert rule_of(key) == gate_key(kind, name) == GateTerms(kind=kind, name=name).rule


def test_the_gate_of_an_empty_value_is_not_that_of_none() -> None:
    assert gate_key(GateKind.LIMIT, "x", "") != gate_key(GateKind.LIMIT, "x")


def test_jobs_are_in_line_by_queue_lane_and_gates() -> None:
    job = ready()
    job.gates = ("limit:a", "rate:b")
    assert line_of(job) == ("default", "loop", ("limit:a", "rate:b"))


# limits


def test_a_limit_is_open_while_permits_are_left() -> None:
    gate = limit(2)
    assert (gate.free(NOW, 9), gate.free(NOW, 1), gate.opens_at(NOW)) == (2, 1, NOW)
    gate.charge(NOW)
    gate.charge(NOW)
    assert (gate.free(NOW, 9), gate.is_open(NOW), gate.opens_at(NOW)) == (0, False, None)
    gate.release()
    assert (gate.held, gate.is_open(NOW)) == (1, True)


def test_a_permit_cannot_come_back_twice() -> None:
    with pytest.raises(AssertionError, match="twice"):
        limit().release()


def test_a_limit_below_what_is_held_is_closed_and_not_less_than_that() -> None:
    gate = limit(5, held=4)
    gate.change(GateTerms(kind=GateKind.LIMIT, name="l", max_running=2), NOW)
    assert (gate.free(NOW, 9), gate.held) == (0, 4)


def test_time_and_refunds_do_nothing_to_a_limit() -> None:
    gate = limit(2, held=2)
    gate.refund(NOW)
    assert not gate.heed(NOW - DAY)
    assert (gate.held, gate.full_at, gate.opens_at(NOW + DAY), gate.is_tripped) == (2, 0, None, False)


# rates


def test_a_bucket_begins_full_and_is_never_fuller() -> None:
    gate = rate(10, burst=3)
    assert gate.free(NOW, 9) == gate.free(NOW + DAY, 9) == 3
    assert gate.free(NOW, 2) == 2
    for _ in range(3):
        assert gate.opens_at(NOW) == NOW
        gate.charge(NOW)
    assert (gate.free(NOW, 9), gate.opens_at(NOW)) == (0, NOW + 10)


def test_a_token_is_there_at_its_instant_and_not_a_microsecond_earlier() -> None:
    gate = rate(10, burst=2)
    gate.charge(NOW)
    gate.charge(NOW)
    assert [gate.free(NOW + after, 9) for after in (9, 10, 19, 20, 99)] == [0, 1, 1, 2, 2]
    assert [gate.opens_at(NOW + after) for after in (0, 9, 10, 15)] == [
        NOW + 10,
        NOW + 10,
        NOW + 10,
        NOW + 15,
    ]


def test_a_refund_undoes_a_charge() -> None:
    gate = rate(10, burst=2)
    gate.charge(NOW)
    gate.charge(NOW + 1)
    gate.refund(NOW + 1)
    assert (gate.free(NOW + 1, 9), gate.full_at) == (1, NOW + 10)


def test_a_refund_of_long_ago_makes_no_bucket_fuller() -> None:
    gate = rate(10, burst=2)
    gate.charge(NOW)
    gate.refund(NOW)
    gate.refund(NOW)
    assert gate.free(NOW + DAY, 9) == 2
    gate.charge(NOW + DAY)
    assert gate.free(NOW + DAY, 9) == 1


def test_a_rate_can_be_made_faster_and_slower_and_what_is_missing_changes_with_it() -> None:
    gate = rate(10)
    gate.charge(NOW)
    gate.change(GateTerms(kind=GateKind.RATE, name="r", every_us=100), NOW + 5)
    assert gate.opens_at(NOW + 5) == NOW + 55
    gate.change(GateTerms(kind=GateKind.RATE, name="r", every_us=3), NOW + 5)
    assert gate.opens_at(NOW + 5) == NOW + 7, "rounded up: never early"


def test_a_smaller_burst_takes_tokens_away_and_owes_no_more_than_its_own() -> None:
    gate = rate(10, burst=5)
    for _ in range(5):
        gate.charge(NOW)
    gate.change(GateTerms(kind=GateKind.RATE, name="r", every_us=10, burst=2), NOW)
    assert [gate.free(NOW + after, 9) for after in (0, 9, 10, 20, 99)] == [0, 0, 1, 2, 2]


def test_a_full_bucket_stays_full_through_a_change() -> None:
    gate = rate(10, burst=2)
    gate.change(GateTerms(kind=GateKind.RATE, name="r", every_us=100, burst=4), NOW)
    assert (gate.free(NOW, 9), gate.full_at) == (4, 0)


def test_a_clock_that_is_set_back_lengthens_no_wait() -> None:
    gate = rate(10, burst=2)
    gate.charge(NOW)
    gate.charge(NOW)
    back = NOW - DAY
    assert gate.opens_at(back) == back + 10
    assert gate.heed(back)
    assert not gate.heed(back)
    assert [gate.free(back + after, 9) for after in (0, 9, 10, 20)] == [0, 0, 1, 2]


def test_a_charge_after_the_clock_was_set_back_counts_from_there() -> None:
    gate = rate(10, burst=1)
    gate.charge(NOW)
    gate.charge(NOW - DAY)
    assert gate.full_at == NOW - DAY + 20


# breakers


def test_a_closed_circuit_lets_everything_pass_and_is_not_charged() -> None:
    gate = breaker()
    for _ in range(99):
        gate.charge(NOW)
    assert (gate.free(NOW, 50), gate.opens_at(NOW), gate.full_at) == (50, NOW, 0)
    gate.refund(NOW)
    assert (gate.full_at, gate.is_tripped, gate.is_at_rest(NOW)) == (0, False, True)


def test_an_open_circuit_lets_one_probe_pass_for_each_span() -> None:
    gate = breaker(10)
    gate.trip(NOW)
    assert (gate.is_tripped, gate.free(NOW, 9), gate.opens_at(NOW)) == (True, 0, NOW + 10)
    assert (gate.free(NOW + 9, 9), gate.free(NOW + 10, 9), gate.free(NOW + DAY, 9)) == (0, 1, 1)
    gate.charge(NOW + 12)
    assert (gate.free(NOW + 21, 9), gate.free(NOW + 22, 9)) == (0, 1)
    gate.reset()
    assert (gate.is_tripped, gate.free(NOW, 9), gate.is_at_rest(NOW)) == (False, 9, True)


def test_what_was_claimed_after_the_trip_is_proof_and_nothing_else() -> None:
    gate = breaker(10)
    assert not gate.is_proof(NOW)
    gate.trip(NOW)
    for probe in (10, 20, 30):
        gate.charge(NOW + probe)
    assert [gate.is_proof(NOW + at) for at in (-1, 0, 10, 20, 30)] == [False, False, True, True, True]
    gate.trip(NOW + 25)
    assert [gate.is_proof(NOW + at) for at in (20, 30)] == [False, True]


def test_a_refund_makes_way_for_another_probe_only_if_one_was_taken() -> None:
    gate = breaker(10)
    gate.trip(NOW)
    gate.refund(NOW - 1)
    assert not gate.is_open(NOW + 9)
    gate.charge(NOW + 10)
    gate.refund(NOW + 10)
    assert gate.is_open(NOW + 10)
    assert gate.is_tripped


def test_a_clock_that_is_set_back_keeps_no_circuit_open() -> None:
    gate = breaker(10)
    gate.trip(NOW)
    back = NOW - DAY
    assert gate.heed(back)
    assert (gate.is_open(back + 9), gate.is_open(back + 10)) == (False, True)
    gate.charge(back + 10)
    assert gate.is_proof(back + 10)


def test_a_probe_that_went_before_the_clock_was_set_back_keeps_its_trip() -> None:
    gate = breaker(10)
    gate.trip(NOW)
    gate.charge(NOW + 20)
    assert gate.heed(NOW + 15)
    assert (gate.tripped_at, gate.full_at) == (NOW, NOW + 25)


def test_an_open_circuit_can_be_given_another_span() -> None:
    gate = breaker(10)
    gate.trip(NOW)
    gate.change(GateTerms(kind=GateKind.BREAKER, name="b", every_us=20), NOW + 5)
    assert (gate.opens_at(NOW + 5), gate.is_tripped, gate.is_proof(NOW + 1)) == (NOW + 15, True, True)
    gate.change(GateTerms(kind=GateKind.BREAKER, name="b", every_us=5), NOW + 99)
    assert gate.is_tripped, "a change is no proof"


# all


def test_what_stands_as_a_fresh_one_would_is_at_rest() -> None:
    busy, bucket = limit(2, held=1), rate(10)
    bucket.charge(NOW)
    tripped = breaker()
    tripped.trip(NOW)
    assert [gate.is_at_rest(NOW + 9) for gate in (limit(), rate(), breaker())] == [True] * 3
    assert [gate.is_at_rest(NOW + 9) for gate in (busy, bucket, tripped)] == [False] * 3
    assert [gate.is_at_rest(NOW + 10) for gate in (busy, bucket, tripped)] == [False, True, False]


def test_a_job_waits_at_the_first_gate_that_is_closed() -> None:
    open_one, closed, also_closed = limit(2), limit(0), limit(1, held=1)
    assert first_closed([open_one, closed, also_closed], NOW) is closed
    assert first_closed([also_closed, closed], NOW) is also_closed
    assert first_closed([open_one], NOW) is None
    assert first_closed([], NOW) is None


def test_a_view_can_be_asked_as_the_gate_itself() -> None:
    gate = breaker(10)
    gate.trip(NOW)
    view = GateView(key=gate.key, terms=gate.terms, held=3, full_at=gate.full_at, tripped_at=gate.tripped_at)
    twin = view.gate
    assert (twin.opens_at(NOW), twin.held, twin.is_proof(NOW + 1)) == (NOW + 10, 3, True)
    assert repr(twin) == f"<Gate 'breaker:b' held=3 full_at={NOW + 10}>"
