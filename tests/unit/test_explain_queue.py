"""Why a queue does not run: each kind of reason, from the values around it."""

from __future__ import annotations

from typing import Any

import pytest

from betimes.core.durations import from_us
from betimes.core.explain import Explanation
from betimes.core.explain_queue import QueueSituation, explain_queue
from betimes.core.job import JobStatus
from betimes.core.limits import GateKind, GateTerms, GateView
from betimes.core.queue_reason import QueueExplanation, QueueReason, QueueReasonCode
from betimes.core.queue_view import Pause, QueueView
from betimes.core.reason import Reason, ReasonCode
from betimes.core.situation import Here, Occupant, WorkerSeen

S = 1_000_000
NOW = 1_800_000_000 * S
READY, DELAYED, BLOCKED, RUNNING = JobStatus.READY, JobStatus.DELAYED, JobStatus.BLOCKED, JobStatus.RUNNING
Code = QueueReasonCode

HERE = Here(worker="w", queues=None, tasks={"t"}, slots={"loop": 2}, concurrency=2)
OTHER = WorkerSeen(id="other", queues=None, lease_us=30 * S, is_alive=True, host="ham", pid=7, concurrency=3)


def head(*codes: ReasonCode, job_id: str = "a") -> Explanation:
    reasons = tuple(Reason(code=code, text="It is so.", change="Change it.") for code in codes)
    return Explanation(job_id=job_id, status=READY, reasons=reasons)


def around(**given: Any) -> QueueSituation:
    """A queue of one job that starts at the next turn, but for what is given."""
    usual: dict[str, Any] = {
        "now": NOW,
        "name": "q",
        "counts": {READY: 1},
        "here": HERE,
        "heads": (head(ReasonCode.NOTHING_IN_THE_WAY),),
    }
    return QueueSituation(**usual | given)


def codes(said: QueueExplanation) -> list[Code]:
    return [reason.code for reason in said.reasons]


def only(situation: QueueSituation, code: Code) -> QueueReason:
    (reason,) = explain_queue(situation).reasons
    assert reason.code is code
    return reason


def test_a_queue_that_goes_on_says_what_is_next() -> None:
    said = explain_queue(around(counts={READY: 1, RUNNING: 2}, oldest_at=NOW - S))
    assert (said.ready, said.running, said.delayed, said.blocked, said.put_aside) == (1, 2, 0, 0, 0)
    assert said.codes == {Code.WORKING}
    assert said.oldest_due_at == from_us(NOW - S)
    assert str(said).splitlines() == [
        "Queue q: 1 ready, 0 delayed, 0 blocked, 2 running.",
        "The oldest has been due since 2027-01-15 07:59:59 UTC.",
        "- 2 job(s) run; next: a.",
        "Worker w (here): 0 of 2 slots taken.",
        "First in line:",
        "  Job a is READY.",
        "  - It is so.",
        "    Change it.",
    ]


def test_a_paused_queue_says_since_when_and_by_whom() -> None:
    paused = around(pause=Pause(at=NOW - 60 * S, by="ops"), heads=(head(ReasonCode.QUEUE_PAUSED),))
    assert only(paused, Code.PAUSED).text == ("It is paused since 2027-01-15 07:59:00 UTC (1m ago), by ops.")
    assert only(around(pause=Pause(), heads=()), Code.PAUSED).text == "It is paused."
    running = around(pause=Pause(), counts={READY: 1, RUNNING: 1}, heads=(head(ReasonCode.QUEUE_PAUSED),))
    assert codes(explain_queue(running)) == [Code.PAUSED, Code.WORKING]


def seen(**given: Any) -> dict[str, Any]:
    """One worker elsewhere, and none here."""
    usual: dict[str, Any] = {"id": "x", "queues": None, "lease_us": 1, "is_alive": True}
    return {"here": None, "workers": (WorkerSeen(**usual | given),)}


def mine(**given: Any) -> dict[str, Any]:
    """The worker of this process."""
    usual: dict[str, Any] = {"worker": "w", "queues": None, "tasks": (), "slots": {}, "concurrency": 1}
    return {"here": Here(**usual | given)}


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"here": None}, Code.NO_WORKER),
        (seen(is_alive=False), Code.NO_WORKER),
        (seen(is_gone=True), Code.NO_WORKER),
        (seen(queues=("b",)), Code.NOT_SERVED),
        (mine(queues=("b",)), Code.NOT_SERVED),
        (mine(is_stopping=True), Code.WORKER_STOPPING),
    ],
)
def test_a_queue_that_nobody_serves(given: dict[str, Any], code: Code) -> None:
    only(around(**given), code)


def test_workers_that_are_full_are_named_with_their_slots() -> None:
    occupants = tuple(
        Occupant(seq=n, job_id=f"j{n}", task="t", lane="loop", attempt=1, since=NOW) for n in range(2)
    )
    full_here = Here(
        worker="w", queues=None, tasks={"t"}, slots={"loop": 2}, concurrency=2, occupants=occupants
    )
    given: dict[str, Any] = {
        "here": full_here,
        "workers": (OTHER,),
        "heads": (head(ReasonCode.NO_FREE_SLOT),),
    }
    said = explain_queue(around(**given, held={"other": 3}))
    assert codes(said) == [Code.WORKERS_FULL, Code.FIRST_HELD_UP]
    assert [str(worker) for worker in said.workers] == [
        "w (here): 2 of 2 slots taken",
        "other (ham, pid 7): 3 of 3 slots taken",
    ]
    assert Code.WORKERS_FULL not in explain_queue(around(**given, held={"other": 2})).codes
    unknown = WorkerSeen(id="x", queues=None, lease_us=1, is_alive=True)
    said = explain_queue(around(here=None, workers=(unknown,)))
    assert Code.WORKERS_FULL not in said.codes
    assert str(said.workers[0]) == "x (another host, pid 0): 0 slots taken"


def gate(kind: GateKind, name: str, **given: Any) -> GateView:
    terms = GateTerms(kind=kind, name=name, **given.pop("terms"))
    return GateView(key=given.pop("key", terms.rule), terms=terms, waiting=4, **given)


def test_closed_gates_are_named_with_who_waits_there() -> None:
    limit = gate(GateKind.LIMIT, "l", terms={"max_running": 1}, held=1, holders=(("j1", 1, "w"),))
    bare = gate(GateKind.LIMIT, "m", key="limit:m\tgold", terms={"max_running": 0, "by": "tier"})
    rate = gate(GateKind.RATE, "r", terms={"every_us": S, "burst": 1}, full_at=NOW + S)
    breaker = gate(GateKind.BREAKER, "t", terms={"every_us": 5 * S}, full_at=NOW + 5 * S, tripped_at=NOW)
    is_open = gate(GateKind.LIMIT, "o", terms={"max_running": 2}, held=1)
    said = explain_queue(around(gates=(limit, bare, rate, breaker, is_open), heads=()))
    assert codes(said) == [Code.LIMIT_REACHED, Code.LIMIT_REACHED, Code.NO_TOKEN, Code.CIRCUIT_OPEN]
    texts = [reason.text for reason in said.reasons]
    assert texts[0] == (
        "Limit 'l' lets 1 run at once, held by j1 (worker w). 4 job(s) wait there, of all queues."
    )
    assert texts[1] == "Limit 'm' (tier=gold) lets 0 run at once. 4 job(s) wait there, of all queues."
    assert texts[2].startswith("Rate 'r' has no token before 2027-01-15 08:00:01 UTC (in 1s).")
    assert texts[3].startswith("The circuit of task 't' is open; the next probe may go at")
    assert [reason.expected_at for reason in said.reasons] == [
        None, None, from_us(NOW + S), from_us(NOW + 5 * S)
    ]  # fmt: skip


def test_what_is_put_aside_is_counted_by_what_it_waits_for() -> None:
    view = QueueView(parked={"task:gone": 2, "lane:process": 1, "odd": 1})
    said = explain_queue(around(view=view, counts={READY: 4}, heads=()))
    assert said.put_aside == 4
    assert [reason.text for reason in said.reasons] == [
        "1 job(s) are put aside: they wait for a worker with an executor for lane 'process'.",
        "1 job(s) are put aside: they wait for whoever put them aside under 'odd'.",
        "2 job(s) are put aside: they wait for a worker that knows task 'gone'.",
    ]


def test_what_stands_first_and_does_not_start_is_named() -> None:
    heads = (head(ReasonCode.CODE_STILL_RUNNING), head(ReasonCode.NOTHING_IN_THE_WAY, job_id="b"))
    said = explain_queue(around(heads=heads))
    assert [reason.text for reason in said.reasons] == [
        "What stands first does not start: a (code_still_running).",
        "0 job(s) run; next: b.",
    ]


def test_what_is_due_later_or_blocked_is_told() -> None:
    said = explain_queue(
        around(counts={DELAYED: 2, BLOCKED: 3}, heads=(), view=QueueView(next_due_at=NOW + 60 * S))
    )
    assert [reason.text for reason in said.reasons] == [
        "2 job(s) are due later, the next at 2027-01-15 08:01:00 UTC (in 1m).",
        "3 job(s) wait for others to end.",
    ]
    assert said.reasons[0].expected_at == from_us(NOW + 60 * S)
    unknown = only(around(counts={DELAYED: 2}, heads=()), Code.NOT_DUE)
    assert unknown.text == "2 job(s) are due later."


def test_a_queue_without_jobs_is_empty() -> None:
    only(around(counts={}, heads=()), Code.EMPTY)
    only(around(counts={READY: 0}, heads=()), Code.EMPTY)
    assert "The oldest" not in str(explain_queue(around(counts={}, heads=())))
