"""What `explain` says of gates: which one is closed, who holds it, when it opens, and who goes first."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.lives import BOOM, NOW, SECOND, after, ready, running

from betimes.core.durations import from_us
from betimes.core.events import Errored
from betimes.core.explain import Explanation, explain
from betimes.core.gate_obstacles import circuit_open, limit_reached, no_token
from betimes.core.job import Job
from betimes.core.lifecycle import place
from betimes.core.limits import GateKind, GateTerms, GateView, gate_key
from betimes.core.reason import Reason, ReasonCode
from betimes.core.situation import Here, Situation, WorkerSeen

ME = WorkerSeen(id="w", queues=None, lease_us=30 * SECOND, is_alive=True)
HERE = Here(worker="w", queues=None, tasks={"t"}, slots={"loop": 2}, concurrency=2)


def around(*gates: GateView, **given: Any) -> Situation:
    return Situation(**{"now": NOW, "here": HERE, "workers": (ME,), "gates": gates, **given})


def limit(held: int, most: int = 1, *, value: str | None = None, **given: Any) -> GateView:
    terms = GateTerms(kind=GateKind.LIMIT, name="l", max_running=most, by=value and "customer")
    return GateView(key=gate_key(GateKind.LIMIT, "l", value), terms=terms, held=held, **given)


def rate(missing_us: int, *, every: int = 10 * SECOND, burst: int = 1, **given: Any) -> GateView:
    terms = GateTerms(kind=GateKind.RATE, name="r", every_us=every, burst=burst)
    return GateView(key=terms.rule, terms=terms, full_at=NOW + missing_us, **given)


def breaker(missing_us: int | None, **given: Any) -> GateView:
    """A breaker whose next probe is so far off; None: it has not tripped."""
    terms = GateTerms(kind=GateKind.BREAKER, name="t", every_us=30 * SECOND)
    full_at = 0 if missing_us is None else NOW + missing_us
    return GateView(key=terms.rule, terms=terms, full_at=full_at, tripped_at=full_at and NOW - 1, **given)


def only(situation: Situation, code: ReasonCode, job: Job | None = None) -> Reason:
    """The one reason, which must be of this kind."""
    (reason,) = explain(job or ready(), situation).reasons
    assert reason.code is code
    assert reason.change
    return reason


def codes(explanation: Explanation) -> list[ReasonCode]:
    return [reason.code for reason in explanation.reasons]


@pytest.mark.parametrize("gates", [(limit(0), rate(0), breaker(None)), (limit(1, 2),), ()])
def test_gates_that_are_open_keep_nobody(gates: tuple[GateView, ...]) -> None:
    only(around(*gates), ReasonCode.NOTHING_IN_THE_WAY)


def test_a_limit_names_who_holds_it() -> None:
    view = limit(2, 2, holders=(("a", 1, "w"), ("b", 2, "other")), waiting=1, waiters=(("a", 0),))
    reason = only(around(view), ReasonCode.LIMIT_REACHED)
    assert reason.text == (
        "Limit 'l' lets 2 run at once, and 2 do: a (worker w) and b (worker other). It is the next."
    )
    assert "set_limit('l', …)" in reason.change
    assert reason.expected_at is None
    assert explain(ready(), around(view)).expected_start is None


def test_a_limit_that_is_by_an_argument_names_its_value() -> None:
    text = only(around(limit(1, value="acme")), ReasonCode.LIMIT_REACHED).text
    assert text.startswith("Limit 'l' (customer=acme) lets 1 run at once")


def test_a_limit_that_lets_nobody_pass_has_no_holders() -> None:
    text = only(around(limit(0, 0, waiting=3)), ReasonCode.LIMIT_REACHED).text
    assert text == "Limit 'l' lets 0 run at once. 3 jobs wait there."


def test_places_that_are_held_without_a_known_holder_are_counted() -> None:
    text = only(around(limit(5, 5, waiting=1)), ReasonCode.LIMIT_REACHED).text
    assert text == "Limit 'l' lets 5 run at once, and 5 do. 1 job waits there."


def test_many_holders_are_cut_short() -> None:
    holders = tuple((f"j{number}", number, "w") for number in range(50))
    text = only(around(limit(50, 50, holders=holders)), ReasonCode.LIMIT_REACHED).text
    assert "j9 (worker w)" in text
    assert "40 more" in text
    assert "j10 " not in text


@pytest.mark.parametrize(
    ("waiters", "place_text", "start"),
    [
        (((("a", 0)),), "It is the next.", 4),
        ((("b", 7), ("a", 0)), "1 of those that wait there goes before it.", 14),
        ((("b", 7), ("c", 8), ("a", 0)), "2 of those that wait there go before it.", 24),
        ((("b", 7),), "400 jobs wait there.", None),
    ],
)
def test_a_rate_says_when_the_job_s_own_token_comes(
    waiters: tuple[tuple[str, int], ...], place_text: str, start: int | None
) -> None:
    situation = around(rate(4 * SECOND, waiters=waiters, waiting=400))
    reason = only(situation, ReasonCode.NO_TOKEN)
    assert "Rate 'r' gives one token every 10s; the next comes at" in reason.text
    assert "(in 4s)" in reason.text
    assert reason.text.endswith(place_text)
    assert "set_rate('r', …)" in reason.change
    assert ("with that token;" in reason.change) == (start == 4), "the next one waits for nobody's before"
    expected = None if start is None else from_us(NOW + start * SECOND)
    assert explain(ready(), situation).expected_start == expected


def test_a_rate_with_tokens_left_keeps_nobody_and_one_that_is_empty_does() -> None:
    only(around(rate(19 * SECOND, burst=3)), ReasonCode.NOTHING_IN_THE_WAY)
    only(around(rate(29 * SECOND, burst=3, waiters=(("a", 0),))), ReasonCode.NO_TOKEN)


def test_an_open_circuit_says_when_it_is_tried_and_how_to_close_it() -> None:
    reason = only(around(breaker(20 * SECOND, waiters=(("a", 0),))), ReasonCode.CIRCUIT_OPEN)
    assert "The circuit of task 't' is open" in reason.text
    assert "(in 20s)" in reason.text
    assert "close_circuit('t')" in reason.change


def test_only_the_next_probe_knows_when_it_starts() -> None:
    first = around(breaker(20 * SECOND, waiters=(("a", 0), ("b", 7))))
    second = around(breaker(20 * SECOND, waiters=(("b", 7), ("a", 0))))
    assert explain(ready(), first).expected_start == from_us(NOW + 20 * SECOND)
    assert explain(ready(), second).expected_start is None, "what the probe will find is not known"


def test_a_circuit_whose_probe_may_go_keeps_nobody() -> None:
    only(around(breaker(0)), ReasonCode.NOTHING_IN_THE_WAY)


def test_every_kind_of_gate_that_is_closed_is_named() -> None:
    explanation = explain(ready(), around(rate(SECOND), breaker(SECOND), limit(1)))
    assert codes(explanation) == [ReasonCode.LIMIT_REACHED, ReasonCode.NO_TOKEN, ReasonCode.CIRCUIT_OPEN]
    assert explanation.expected_start is None


def test_of_several_closed_limits_the_first_is_named() -> None:
    other = GateTerms(kind=GateKind.LIMIT, name="second", max_running=1)
    views = (limit(0), GateView(key=other.rule, terms=other, held=1))
    assert "'second'" in only(around(*views), ReasonCode.LIMIT_REACHED).text


@pytest.mark.parametrize("find", [limit_reached, no_token, circuit_open])
def test_what_is_not_due_or_blocked_does_not_wait_at_a_gate_yet(find: Any) -> None:
    situation = around(limit(1), rate(SECOND), breaker(SECOND))
    assert find(ready(), situation) is not None
    assert find(ready(run_at=NOW + 1), situation) is None
    assert find(after(running(), Errored(NOW, BOOM, retry_in_us=SECOND)), situation) is None
    blocked = ready()
    blocked.unmet, blocked.depends_on = 1, ("x",)
    blocked.status = place(blocked, NOW)
    assert find(blocked, situation) is None


def test_a_ready_job_waits_at_its_gate_also_after_the_clock_went_back() -> None:
    only(around(limit(1), now=NOW - 60 * SECOND), ReasonCode.LIMIT_REACHED)
