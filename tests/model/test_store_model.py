"""Random lives of a whole store, step by step against a reference that is plain enough to be right."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Collection, Coroutine
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.model.gate_book import Bucket, Circuit, Deal
from tests.model.reference import LIVE, SECOND, UNTAGGED, Model, Refusal, Request, Row, refusal_or
from tests.model.rows import (
    BREAKER,
    BY,
    ENDED,
    ENDS,
    LIMIT,
    RATE,
    TENANTS,
    WAYS,
    Wish,
    event_of,
    expected_of,
    new_row,
    seen,
    wishes,
)
from tests.postgres.server import Server, fresh_schema

from betimes.core.job import Job, JobStatus, Terms
from betimes.core.limits import GateKind, GateTerms, GateView
from betimes.core.queue_shares import QueueShares
from betimes.errors import BetimesError
from betimes.ports import ClaimRequest, Report, Store, WorkerInfo
from betimes.stores.memory import MemoryStore
from betimes.stores.postgres import PostgresStore
from betimes.stores.sqlite import SqliteStore
from betimes.testing import VirtualClock, VirtualLoop
from betimes.testing.store_contract.gate_stage import with_code
from betimes.testing.store_contract.stage import Stage, Taken, again

T = TypeVar("T")
# Halves of seconds, while time passes in whole ones: no lease, key or history ends at the very instant
# of a call. Jobs are due and expire in whole seconds: for them that instant is what is to be tried.
LEASE_S, KEY_FOR_S, KEEP_S = 30.5, 20.5, 15.5
KEYS = sorted({key for way in WAYS for key in way})
picks = st.integers(0, 40)
masks = st.integers(0, 15)
delays = st.sampled_from([None, 0, 3])


class StoreMachine(RuleBasedStateMachine):
    """Two workers and an operator on one store."""

    has_tenants: ClassVar[bool] = True

    def make_store(self) -> Store:
        raise AssertionError("each store has its own machine")

    def make_runner(self) -> asyncio.Runner:
        return asyncio.Runner(loop_factory=lambda: VirtualLoop(clock=self.clock))

    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.runner = self.make_runner()
        self.stage = Stage(self.make_store(), self.clock)
        self.do(self.stage.store.open(strategy="priority"))
        self.model = Model(now=self.stage.now)
        self.jobs: dict[int, Job] = {}
        self.submissions: list[tuple[Job, int]] = []
        self.taken: list[Taken] = []
        self.workers = ["w0", "w1"]
        self.rescued: set[str] = set()
        self.terms: dict[str, GateTerms] = {}
        self.count = 0
        self.shares, self.deal = QueueShares({"q": 3, "r": 1}), Deal({"q": 1, "r": 3})
        for name in self.workers:
            self.begin(name)
        for key in (LIMIT, BY, RATE, BREAKER):
            self.declare(key, 2)

    def teardown(self) -> None:
        self.do(self.stage.store.close())
        self.runner.close()

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    def attempt(self, call: Coroutine[Any, Any, T]) -> T | str:
        """Make a call; if it is refused, return the error's name."""
        try:
            return self.do(call)
        except BetimesError as error:
            return type(error).__name__

    def begin(self, name: str) -> None:
        lease_us = round(LEASE_S * SECOND)
        self.do(self.stage.store.register(WorkerInfo(id=name, lease_us=lease_us)))
        self.model.leases[name] = self.model.now + lease_us

    def any_row(self, statuses: Collection[str]) -> bool:
        return any(row.status in statuses for row in self.model.rows.values())

    def row(self, pick: int) -> Row:
        rows = list(self.model.rows.values())
        return rows[-1 - pick % len(rows)]  # small numbers mean the newest, so that shrinking ends there

    # submitting

    @initialize(wishes=st.lists(wishes(), min_size=3, max_size=6))
    def begin_with_some_running(self, wishes: list[Wish]) -> None:
        self.submit(wishes[:-1])
        self.claim(0, 3, (9, 9), None, 0)
        self.submit(wishes[-1:])

    @rule(wishes=st.lists(wishes(), min_size=1, max_size=3))
    def submit(self, wishes: list[Wish]) -> None:
        for wish in wishes:
            self.submit_one(wish)

    def submit_one(self, wish: Wish) -> None:
        self.count += 1
        name, digest = wish.name, wish.digest
        tenant = None if wish.tenant is None or not self.has_tenants else TENANTS[wish.tenant]
        terms = Terms(token=f"token-{self.count}", replace=wish.replaces and name is not None)
        if name is None and wish.key is not None:
            until = self.model.now + round(KEY_FOR_S * SECOND)
            terms = Terms(key=wish.key, key_until=until, key_digest=digest)
        parents = [(self.row(pick), need, by_id) for pick, need, by_id in wish.needs if self.model.rows]
        job = self.stage.job(
            name,
            terms=terms,
            depends_on=[(self.reference(row, by_id=by_id), need) for row, need, by_id in parents],
            delay_s=wish.delay_s,
            expires_s=wish.expires_s,
            sort_key=wish.sort_key if tenant is None else UNTAGGED,
            gates=wish.gates,
            tenant=tenant,
            task=wish.task,
            queue=wish.queue,
            lane=wish.lane,
            at_most_once=wish.at_most_once,
        )
        sort_key = job.sort_key  # before the store gives it another
        asked = Request(
            id=job.id,
            is_named=name is not None,
            replaces=terms.replace,
            key=terms.key,
            digest=digest,
            key_until=terms.key_until,
            needs=[(row.seq, need.value) for row, need, _ in parents],
            row=lambda seq: new_row(job, seq, sort_key),
        )
        (twin,) = again([job])
        answer = self.attempt(self.stage.submit(job))
        expected = refusal_or(lambda: self.model.submit(asked, job.seq))
        if isinstance(answer, str) or isinstance(expected, Refusal):
            assert isinstance(expected, Refusal), answer
            assert answer in expected.names
            return
        assert answer[0].seq == expected.seq
        if answer[0].seq == job.seq:
            self.jobs[job.seq] = job
            self.submissions.append((twin, job.seq))

    def reference(self, row: Row, *, by_id: bool) -> Job | str:
        """The version itself, or its id where that means the same."""
        return row.id if by_id and self.model.versions(row.id)[-1] is row else self.jobs[row.seq]

    @precondition(lambda self: self.submissions)
    @rule(pick=picks)
    def submit_again(self, pick: int) -> None:
        twin, seq = self.submissions[-1 - pick % len(self.submissions)]
        if seq not in self.model.rows:
            return
        key = None if twin.terms is None else twin.terms.key
        known, digest, until = self.model.keys.get(key or "", (0, b"", 0))
        is_known = key is not None and until > self.model.now
        answer = self.attempt(self.stage.submit(*again([twin])))
        if is_known and twin.terms is not None and digest != twin.terms.key_digest:
            assert answer == "ConfigurationError"
        else:
            assert not isinstance(answer, str), answer
            assert answer[0].seq == (known if is_known else seq)

    # working

    @precondition(lambda self: self.any_row(LIVE))
    @rule(seconds=st.sampled_from([1, 1, 2, 3, 10]))
    def advance(self, seconds: int) -> None:
        self.stage.advance(seconds)
        self.model.now = self.stage.now

    @precondition(lambda self: self.any_row({"ready", "delayed"}))
    @rule(
        slot=st.integers(0, 1),
        limit=st.sampled_from([1, 2, 3, 0]),
        free=st.sampled_from([(9, 9), (1, 2), (2, 0), (0, 1)]),
        queues=st.sampled_from([None, ("q",), ("r", "q"), ()]),
        hold=masks,
        deals=st.booleans(),
    )
    def claim(
        self,
        slot: int,
        limit: int,
        free: tuple[int, int],
        queues: tuple[str, ...] | None,
        hold: int,
        deals: bool = False,
    ) -> None:
        worker, lanes = self.workers[slot], {"loop": free[0], "thread": free[1]}
        held = [row.id for n, row in enumerate(self.model.rows.values()) if hold >> (n % 8) & 1]
        deals = deals and queues == ("r", "q")
        shares, deal = (self.shares, self.deal) if deals else (None, None)
        exchange = self.do(self.stage.turn(claim=ClaimRequest(worker, limit, lanes, queues, held, shares)))
        self.model.pass_time()
        expected = self.model.claim(worker, limit, lanes, queues=queues, hold=held, deal=deal)
        assert [job.seq for job in exchange.claimed] == expected
        if deals:
            self.shares.dealt(job.spec.queue for job in exchange.claimed)
        room = [free[lane == "thread"] - self.claimed_in(expected, lane) for lane in ("loop", "thread")]
        has_looked = self.model.holds(worker) and queues is None and not self.model.paused and not held
        self.check_next_at(exchange.next_at, everywhere=has_looked and min(*room, limit - len(expected)) > 0)
        self.taken += [Taken(job, job.fence, job.attempt) for job in exchange.claimed]
        if not self.model.holds(worker):  # its silence has had its effect
            self.start_afresh(slot)

    def claimed_in(self, seqs: list[int], lane: str) -> int:
        return sum(self.model.rows[seq].lane == lane for seq in seqs)

    def check_next_at(self, next_at: int | None, *, everywhere: bool) -> None:
        """A worker is to look again when time brings something, and may be told to look a little earlier.

        One that had no room for all that might have been claimed looks again when it has.
        """
        passes_at = self.model.passes_at() if everywhere else None
        latest = [at for at in (self.model.next_at(), passes_at) if at is not None]
        has_waited = any(job.gates for job in self.jobs.values())  # who waited for the instant may be gone
        if latest:
            assert next_at is not None
            assert next_at <= min(latest)
        assert next_at is None or next_at > self.model.now
        assert has_waited or next_at == min(latest, default=None)

    @precondition(lambda self: self.any_row({"ready", "delayed"}))
    @rule(slot=st.integers(0, 1), ends=st.lists(st.tuples(st.sampled_from(ENDS), delays), max_size=2))
    def work(self, slot: int, ends: list[tuple[str, int | None]]) -> None:
        self.claim(slot, 9, (9, 9), None, 0)
        for (kind, delay), taken in zip(ends, self.running(), strict=False):
            self.tell(taken, kind, delay)

    @precondition(lambda self: self.running())
    @rule(pick=picks, kind=st.sampled_from(ENDS), delay=delays)
    def report(self, pick: int, kind: str, delay: int | None) -> None:
        running = self.running()
        self.tell(running[-1 - pick % len(running)], kind, delay)

    @precondition(lambda self: self.taken)
    @rule(pick=picks, kind=st.sampled_from(ENDS), delay=delays, off=st.sampled_from([0, 0, 1, -1]))
    def report_anything(self, pick: int, kind: str, delay: int | None, off: int) -> None:
        rows, current = self.model.rows, self.running()
        # Best are those whose job runs again, under a later fence.
        runs_again = [one for one in self.taken if one not in current and is_running(rows.get(one.job.seq))]
        choice = runs_again or self.taken
        self.tell(choice[-1 - pick % len(choice)], kind, delay, off=off)

    def running(self) -> list[Taken]:
        """The claims that still count."""
        rows = self.model.rows
        return [
            one
            for one in self.taken
            if one.job.seq in rows and self.model.is_current(rows[one.job.seq], one.fence)
        ]

    def is_current(self, attempt: tuple[int, int]) -> bool:
        """Whether the attempt has not been reported yet."""
        row = self.model.rows.get(attempt[0])
        return row is not None and self.model.is_current(row, attempt[1])

    def tell(
        self, taken: Taken, kind: str, delay: int | None, *, off: int = 0, returned: bool = True
    ) -> None:
        fence, row = taken.fence + off, self.model.rows.get(taken.job.seq)
        delay_us = None if delay is None else delay * SECOND
        event = event_of(kind, self.model.now, delay_us)
        has_begun = kind != "parked"  # which is how a claim goes back whose task is not known there
        report = with_code(Report(taken.job, fence, event), begun=has_begun, returned=returned)
        exchange = self.do(self.stage.turn([report]))
        if returned:
            self.model.book.release((taken.job.seq, fence))
        if row is not None and self.model.is_current(row, fence):
            self.model.report(row, kind.replace("parked", "given_back"), delay_us, has_begun=has_begun)
            row.parked = "p" if kind == "parked" and row.status == "ready" else None
            assert exchange.steps[0] is not None
            assert exchange.steps[0].after.value == row.status
        elif row is not None:
            assert (exchange.steps[0] is not None) == self.model.is_repeated(row, fence)
        self.model.pass_time()

    @precondition(lambda self: self.running())
    @rule(pick=picks, delay=delays)
    def time_out(self, pick: int, delay: int | None) -> None:
        """Record a timeout while the code runs on."""
        running = self.running()
        self.tell(running[-1 - pick % len(running)], "timed_out", delay, returned=False)

    @precondition(lambda self: self.taken)
    @rule(pick=picks, off=st.sampled_from([0, 0, 0, 1, -1]))
    def code_returns(self, pick: int, off: int) -> None:
        """Say that code has returned whose report may have come before, or never."""
        permits = list(self.model.book.permits) or [(one.job.seq, one.fence) for one in self.taken]
        seq, fence = permits[-1 - pick % len(permits)]
        if self.is_current((seq, fence + off)):
            return
        self.do(self.stage.turn(returned=[(seq, fence + off)]))
        self.model.book.release((seq, fence + off))
        self.model.pass_time()

    @precondition(lambda self: self.any_row({"running"}) or self.model.book.permits)
    @rule(slot=st.integers(0, 1), forgotten=masks, stale=picks, runs_on=masks)
    def beat(self, slot: int, forgotten: int, stale: int, runs_on: int) -> None:
        worker = self.workers[slot]
        rows = self.model.held(worker)
        known = [row for n, row in enumerate(rows) if not forgotten >> (n % 4) & 1]
        held = {row.seq: row.fence for row in known}
        if self.taken:
            old = self.taken[-1 - stale % len(self.taken)]
            held.setdefault(old.job.seq, old.fence)
        permits = [
            each for each in self.model.book.permits if each[0] not in held and not self.is_current(each)
        ]
        running = {seq: fence for n, (seq, fence) in enumerate(permits) if runs_on >> (n % 4) & 1}
        beat = self.do(self.stage.store.beat(worker, held, running))
        self.stage.see(beat.changes)
        assert beat.is_alive or not self.model.holds(worker)
        assert not beat.is_alive or worker not in self.rescued
        if not beat.is_alive:
            self.model.leases[worker] = 0
            return
        self.model.leases[worker] = self.model.now + round(LEASE_S * SECOND)
        self.model.give_back([row for row in rows if held.get(row.seq) != row.fence], has_begun=False)
        self.model.book.release_all(worker, {*held.items(), *running.items()})
        left = self.model.held(worker)
        assert set(beat.lost) == held.keys() - {row.seq for row in left}
        assert set(beat.cancels) == {row.seq for row in left if row.is_cancelled}

    def start_afresh(self, slot: int) -> None:
        self.count += 1
        self.workers[slot] = f"w{slot}.{self.count}"
        self.begin(self.workers[slot])

    @precondition(lambda self: self.any_row({"running"}))
    @rule(slot=st.integers(0, 1))
    def retire(self, slot: int) -> None:
        worker = self.workers[slot]
        self.stage.see(self.do(self.stage.store.retire(worker)))
        self.model.give_back(self.model.held(worker))
        self.model.book.release_all(worker)
        self.model.leases[worker] = 0
        self.rescued.add(worker)

    @precondition(lambda self: self.any_row({"running"}))
    @rule(tasks=st.sampled_from([{"t"}, {"t", "u"}, {"t", "u"}, set()]), seconds=st.sampled_from([31, 31, 0]))
    def rescue(self, tasks: set[str], seconds: int) -> None:
        self.advance(seconds)
        holders = {row.seq: row.worker for row in self.model.rows.values()}
        silent = {one.worker for one in self.model.book.permits.values() if not self.model.holds(one.worker)}
        changes = self.do(self.stage.store.rescue(tasks))
        self.stage.see(changes)
        expected = self.model.rescue(tasks)
        assert {event.seq for event in changes if event.before is JobStatus.RUNNING} == set(expected)
        for worker in {holders[seq] for seq in expected} | silent:
            self.model.leases[str(worker)] = 0
            self.rescued.add(str(worker))

    # the operator

    @precondition(lambda self: self.any_row(LIVE))
    @rule(pick=picks, abandon=st.booleans())
    def cancel(self, pick: int, abandon: bool) -> None:
        row = self.row(pick)
        answer = self.do(self.stage.cancel(self.jobs[row.seq], abandon=abandon))
        assert answer.answer.name == self.model.cancel(row, abandon=abandon)

    @precondition(lambda self: self.any_row(ENDED))
    @rule(pick=picks)
    def retry(self, pick: int) -> None:
        row = self.row(pick)
        answer = self.attempt(self.stage.store.retry(self.jobs[row.seq], by="ops"))
        expected = refusal_or(lambda: self.model.retry(row))
        if isinstance(answer, str) or isinstance(expected, Refusal):
            assert isinstance(expected, Refusal), answer
            assert answer in expected.names
        else:
            self.stage.see(answer)

    @precondition(lambda self: self.any_row({"ready"}) or self.model.paused)
    @rule(queue=st.sampled_from("qr"))
    def pause(self, queue: str) -> None:
        store, pauses = self.stage.store, queue not in self.model.paused
        self.do(store.pause_queue(queue) if pauses else store.resume_queue(queue))
        self.model.paused = self.model.paused | {queue} if pauses else self.model.paused - {queue}

    def declare(self, rule: str, number: int) -> None:
        """Have all gates of a rule go by rules of this size."""
        book, now = self.model.book, self.model.now
        kind, _, name = rule.partition(":")
        span = 0 if kind == "limit" else number * SECOND
        most = number if kind == "limit" else 0
        burst = 1 + number % 2 if kind == "rate" else 1
        terms = GateTerms(kind=GateKind(kind), name=name, max_running=most, every_us=span, burst=burst)
        if rule in self.terms:
            assert self.do(self.stage.store.change_gates(rule, terms)) == terms
        else:
            self.do(self.stage.store.declare_gates([terms]))
        self.terms[rule] = terms
        if kind == "limit":
            book.limits |= {key: number for key in KEYS if key.startswith(rule)}
        elif kind == "rate":
            bucket = book.buckets.setdefault(rule, Bucket(span, burst, Fraction(burst), now))
            bucket.change(span, burst, now)
        else:
            circuit = book.circuits.setdefault(rule, Circuit(span))
            if circuit.tripped_at is not None:
                left = max(circuit.probe_at - now, 0)
                circuit.probe_at = now - (-left * span // circuit.open_for)
            circuit.open_for = span

    @rule(rule=st.sampled_from([LIMIT, BY, RATE, BREAKER]), number=st.sampled_from([1, 2, 4]))
    def change_gates(self, rule: str, number: int) -> None:
        self.declare(rule, number)

    @precondition(lambda self: self.any_row({"ready", "running"}))
    @rule(is_open=st.sampled_from([True, True, False]))
    def trip(self, is_open: bool) -> None:
        self.do(self.stage.store.trip(BREAKER, is_open=is_open))
        if is_open:
            self.model.book.trip(BREAKER, self.model.now)
        else:
            self.model.book.circuits[BREAKER].tripped_at = None

    @precondition(lambda self: any(row.parked for row in self.model.rows.values()))
    @rule()
    def unpark(self) -> None:
        self.stage.see(self.do(self.stage.store.unpark("p")))
        for row in self.model.rows.values():
            row.parked = None

    @precondition(lambda self: self.any_row(ENDED))
    @rule(seconds=st.sampled_from([0, 20]))
    def prune(self, seconds: int) -> None:
        self.advance(seconds)
        keep_us = round(KEEP_S * SECOND)
        assert self.do(self.stage.store.prune(keep_us=keep_us)) == self.model.prune(keep_us)

    # after each step

    @invariant()
    def the_store_and_the_model_agree(self) -> None:
        views = self.do(self.stage.store.gates(KEYS))  # first: on a server that puts jobs with gates in order
        self.do(self.stage.check())
        stored = {job.seq: job for job in self.do(self.stage.everything())}
        assert stored.keys() == self.model.rows.keys()
        for seq, row in self.model.rows.items():
            assert seen(stored[seq]) == expected_of(row), stored[seq]
        for view in views:
            self.compare_gate(view)
        running = [row.id for row in self.model.rows.values() if row.status == "running"]
        assert len(running) == len(set(running)), "two versions of one id run at once"

    def compare_gate(self, view: GateView) -> None:
        book, now = self.model.book, self.model.now
        permits = {(attempt[0], one.worker) for attempt, one in book.permits.items() if view.key in one.gates}
        assert (view.held, {holder[1:] for holder in view.holders}) == (book.held(view.key), permits)
        assert view.gate.opens_at(now) == book.opens_at(view.key, now)
        if view.key in book.buckets:
            assert view.gate.free(now, 99) == max(book.buckets[view.key].look(now) // 1, 0)
        waiting = {seq for seq, row in self.model.rows.items() if self.may_wait(row, view.key)}
        assert {seq for _, seq in view.waiters} <= waiting

    def may_wait(self, row: Row, key: str) -> bool:
        return row.status == "ready" and row.parked is None and key in row.gates


def is_running(row: Row | None) -> bool:
    """Whether the job is there and runs."""
    return row is not None and row.status == "running"


class MemoryMachine(StoreMachine):
    def make_store(self) -> Store:
        return MemoryStore(clock=self.clock)


class SqliteMachine(StoreMachine):
    def make_store(self) -> Store:
        self.folder = Path(tempfile.mkdtemp(prefix="betimes-model-"))
        return SqliteStore(self.folder / "jobs.db", clock=self.clock, inline=True)

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.folder)


class PostgresMachine(StoreMachine):
    """Without tenants: where many write, they get their places a little later, in the order of submission."""

    has_tenants = False
    server: ClassVar[Server]

    def make_runner(self) -> asyncio.Runner:
        return asyncio.Runner()  # what goes on in threads is waited for

    def make_store(self) -> Store:
        self.schema = ExitStack()
        url = self.schema.enter_context(fresh_schema(self.server))
        return PostgresStore(url, clock=self.clock, max_stall_us=0, goes_by_clock=True)

    def teardown(self) -> None:
        super().teardown()
        self.schema.close()


def live(machine: type[StoreMachine], examples: int) -> None:
    """Play so many random lives."""
    TestCase = machine.TestCase  # noqa: N806 - hypothesis's own name
    phases = set(Phase) - {Phase.explain}  # which traces every line, and is slow
    TestCase.settings = settings(max_examples=examples, stateful_step_count=50, phases=phases)
    TestCase().runTest()


@pytest.mark.timeout(400)  # it takes seconds; but when it fails, it looks for the shortest way to fail
@pytest.mark.parametrize(("machine", "examples"), [(MemoryMachine, 150), (SqliteMachine, 60)])
def test_p10_a_store_does_what_the_reference_does(machine: type[StoreMachine], examples: int) -> None:
    live(machine, examples)


@pytest.mark.timeout(400)  # as above
def test_p10_a_store_on_a_server_does_what_the_reference_does(postgres: Server) -> None:
    PostgresMachine.server = postgres
    live(PostgresMachine, 25)
