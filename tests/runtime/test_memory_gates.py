"""What the memory store keeps of gates, lines and logs stays small, however many there have been."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from betimes.core.events import Succeeded
from betimes.core.job import Job, JobSpec
from betimes.core.limits import GateKind, GateTerms, gate_key
from betimes.core.log import LINES_KEPT, LogLine, LogPage
from betimes.ports import ClaimRequest, Report, WorkerInfo
from betimes.stores.memory import MemoryStore
from betimes.stores.memory.gates import Gates, Rule
from betimes.stores.memory.lines import Lines
from betimes.stores.memory.logs import Logs
from betimes.stores.memory.permits import Permits
from betimes.testing import VirtualClock

SECOND = 1_000_000
LIMIT = GateTerms(kind=GateKind.LIMIT, name="l", max_running=1, by="who")
RATE = GateTerms(kind=GateKind.RATE, name="r", every_us=SECOND, by="who")


def gated(seq: int, *keys: str) -> Job:
    """A READY job behind these gates."""
    job = Job(f"j{seq}", JobSpec(task="t"))
    job.seq = seq
    job.gates = keys
    return job


def lines_of(pages: int) -> tuple[LogLine, ...]:
    """So many lines of a log."""
    return tuple(LogLine(at_us=0, attempt=1, text=str(number)) for number in range(pages))


class Hall:
    """Lines before gates, without the rest of a store."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.gates = Gates()
        self.gates.rules = {terms.rule: Rule(terms) for terms in (LIMIT, RATE)}
        self.lines = Lines(self.gates, self.clock.now)
        self.permits = Permits(self.gates, self.lines, self.clock.now)
        self._last_seq = 0

    def pass_one(self, *keys: str) -> Job:
        """Have a job arrive, be claimed, and return."""
        self._last_seq += 1
        job = gated(self._last_seq, *keys)
        self.lines.push(job)
        now = self.clock.now()
        (section,) = self.lines.sections.values()
        line = self.lines.first(section, now)
        assert line is not None
        section.ready.pop()
        assert self.permits.claim(line, "w", now) is job
        self.permits.release(job.seq, 1)
        return job


def test_p27_gates_at_rest_and_empty_lines_are_forgotten() -> None:
    hall = Hall()
    for value in range(20_000):
        hall.clock.advance(1)
        who = str(value)
        hall.pass_one(gate_key(GateKind.LIMIT, "l", who), gate_key(GateKind.RATE, "r", who))
        assert len(hall.gates) + len(list(hall.lines.all())) <= 1_100


def test_a_gate_that_does_not_rest_is_remembered_whatever_comes() -> None:
    hall = Hall()
    key = gate_key(GateKind.RATE, "r", "me")
    hall.pass_one(key)
    for value in range(5_000):
        hall.pass_one(gate_key(GateKind.LIMIT, "l", str(value)))
    door = hall.gates.get(key)
    assert door is not None
    assert not door.is_open(hall.clock.now())


def test_p27_over_all_jobs_the_lines_of_those_that_wrote_first_go_first_and_their_numbers_go_on() -> None:
    logs = Logs(most=250)
    for seq in range(1, 6):
        logs.write(seq, lines_of(100))
    assert [len(logs.read(seq, 0, 1000)) for seq in range(1, 6)] == [0, 0, 0, 100, 100]
    logs.write(1, lines_of(1))
    assert [line.number for line in logs.read(1, 0, 10)] == [101]
    for seq in range(1, 6):
        logs.drop(seq)
    assert not logs
    logs.write(9, lines_of(250))
    assert len(logs.read(9, 0, 1000)) == 250, "what was dropped no longer counts"


def played(scene: Coroutine[Any, Any, None]) -> None:
    """Play a scene."""
    asyncio.run(scene)


def test_p27_a_forgotten_jobs_log_is_forgotten_with_it() -> None:
    async def scene() -> None:
        clock = VirtualClock()
        store = MemoryStore(clock=clock, history=1)
        await store.register(WorkerInfo(id="w", lease_us=SECOND))
        jobs = [Job(name, JobSpec(task="t")) for name in "ab"]
        await store.submit(jobs)
        await store.exchange([], ClaimRequest("w", 2, {"loop": 2}))
        pages = [LogPage(job, job.fence, lines_of(LINES_KEPT + 5)) for job in jobs]
        await store.write_log(pages)
        await store.exchange([Report(job, job.fence, Succeeded(clock.now(), b"1")) for job in jobs], None)
        assert await store.log(jobs[0]) == []
        assert [line.number for line in await store.log(jobs[1])] == list(range(6, LINES_KEPT + 6))
        await store.write_log(pages[:1])
        assert await store.log(jobs[0]) == [], "and is not begun again"

    played(scene())


def test_p27_the_heaps_of_lines_hold_few_stale_entries() -> None:
    async def scene() -> None:
        store = MemoryStore(clock=VirtualClock())
        await store.declare_gates([LIMIT])
        jobs = []
        for number in range(2_000):
            job = Job(f"j{number}", JobSpec(task="t"), sort_key=-number)
            job.gates = (gate_key(GateKind.LIMIT, "l", str(number % 40)),)
            jobs.append(job)
            await store.submit([job])
        for job in jobs[::-1][:1_990]:
            await store.cancel(job, reason="requested")
            size, live = store.heap_entries()
            assert size <= 4 * live + 4 * 64
        assert sum(sum(row.values()) for row in (await store.counts()).values()) == 10

    played(scene())
