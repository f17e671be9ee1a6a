"""The store of a fleet: one real store that all workers share, and the way that each has to it.

A call is a request, which travels, is carried out in one step, and a reply, which travels back. What is
claimed is copied on its way, so that nobody sees the store's own records. A process that has died sends
nothing and hears nothing, for ever; what it had sent arrives. Hints go as on a PostgreSQL server: whoever
has changed something hears of it at once, and all others by one notification for each pause.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from tests.simulation.carrying_out import carried_out
from tests.simulation.fleet_ledger import Ledger
from tests.simulation.loops import pass_time
from tests.simulation.wire import copied_exchange, readdressed

from betimes.core.job import Job, JobStatus, Micros
from betimes.ports import Exchange, Hint, Report, Store
from betimes.stores.memory import MemoryStore
from betimes.testing import VirtualClock

BELL_PAUSE_S = 0.01
"""As `stores.postgres.bell.PAUSE_S`."""
LIVE = {JobStatus.READY, JobStatus.DELAYED}
UNTOLD = {"open", "register"}
"""Calls of the memory store that tell more than those of a server do."""


class Traffic:
    """How many calls the store has had (mutable: it counts).

    Attributes:
        calls: by name; claims that found nothing count as `empty` as well.
        seconds: all of them, by the virtual second.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.seconds: Counter[int] = Counter()


class Yard:
    """The real store, and what all its users have in common.

    Args:
        clock: the virtual clock.
        rng: draws how long the ways are.
        way_s: the mean of one way.
        ledger: where everything is written down.
    """

    def __init__(self, clock: VirtualClock, rng: Random, *, way_s: float, ledger: Ledger) -> None:
        self.store = MemoryStore(clock=clock, history=1_000_000)
        self.clock = clock
        self.ledger = ledger
        self.traffic = Traffic()
        self.members: list[Far] = []
        self._rng = rng
        self._way_s = way_s
        self._records: dict[int, Job] = {}
        self._hints: set[Hint] = set()
        self.store.subscribe(self._hints.add)

    def way_s(self) -> float:
        """Draw how long one way takes."""
        return min(self._rng.expovariate(1 / self._way_s), 4 * self._way_s)

    def carry_out(
        self, member: Far, name: str, args: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[Any, set[Hint]]:
        """Carry a call out in one step; return its answer, and what has to be told."""
        traffic = self.traffic
        traffic.calls[name] += 1
        traffic.seconds[int(self.clock.monotonic())] += 1
        self._hints.clear()
        if name == "exchange":
            answer: Any = self._exchange(member, *args)
        else:
            answer = carried_out(getattr(self.store, name)(*args, **options))
        if name in ("rescue", "retire"):
            self.ledger.changes(answer)
        hints = set() if name in UNTOLD else set(self._hints)
        if name == "submit":
            hints.add(Hint.WORK)  # also where the memory store knows that nobody has looked since
        if name == "fire":
            traffic.calls["fired in vain"] += sum(step is None for step in answer[0])
        return answer, hints

    def _exchange(self, member: Far, reports: list[Report], claim: Any, returned: Any = ()) -> Exchange:
        own = readdressed(reports, self._records)
        exchange = carried_out(self.store.exchange(own, claim, returned))
        self.ledger.reports(reports, exchange.steps)
        self.ledger.claims(member.host, exchange.claimed)
        for job in exchange.claimed:
            self._records[job.seq] = job
        if not (self._has_ready_lines() or any(step and step.after in LIVE for step in exchange.steps)):
            self._hints.discard(Hint.WORK)  # what moved up was claimed in the same turn: nobody need know
        calls = self.traffic.calls
        calls["claimed"] += len(exchange.claimed)
        calls["without a claim"] += claim is None
        calls["empty"] += claim is not None and not exchange.claimed
        return copied_exchange(exchange)

    def _has_ready_lines(self) -> bool:
        return any(section.ready.peek() for section in self.store._waiting.lines.sections.values())

    def ring(self, sender: Far, hints: set[Hint]) -> None:
        """Have all others hear, each after its own way; who waits for ends is not simulated."""
        others = [member for member in self.members if member is not sender and not member.is_dead]
        self.traffic.calls["notifications"] += 1
        self.traffic.calls["notifications heard"] += len(others)
        loop = asyncio.get_running_loop()
        heard = hints - {Hint.ENDED}
        for member in others if heard else ():
            loop.call_later(self.way_s(), member.hear, heard)


class Far:
    """The shared store as one process reaches it; `Member` adds the calls.

    Attributes:
        host: the process's name.
        is_dead: it has died.
    """

    is_durable = True

    def __init__(self, yard: Yard, host: str) -> None:
        self._yard = yard
        self.host = host
        self.is_dead = False
        self._ears: list[Callable[[Hint], None]] = []
        self._to_ring: set[Hint] = set()
        self._rung_at = -BELL_PAUSE_S

    def now(self) -> Micros:
        """The store's time."""
        return self._yard.store.now()

    def heap_entries(self) -> tuple[int, int]:
        """Nothing, as with a database."""
        return 0, 0

    async def close(self) -> None:
        """Let the shared store be."""

    def subscribe(self, hear: Callable[[Hint], None]) -> Callable[[], None]:
        """Have hints told."""
        self._ears.append(hear)
        return lambda: self._ears.remove(hear)

    def hear(self, hints: set[Hint]) -> None:
        """Hear from the bell."""
        if not self.is_dead:
            for hint in sorted(hints, key=lambda hint: hint.value):
                for hear in tuple(self._ears):
                    hear(hint)

    async def call(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Send a call, and wait for its answer."""
        await self._live()
        await pass_time(self._yard.way_s())
        answer, hints = self._yard.carry_out(self, name, args, options)
        await pass_time(self._yard.way_s())
        await self._live()
        if hints:
            self.hear(hints)
            self._note(hints)
        return answer

    async def _live(self) -> None:
        if self.is_dead:
            await asyncio.get_running_loop().create_future()  # for ever

    def _note(self, hints: set[Hint]) -> None:
        if not self._to_ring:
            loop = asyncio.get_running_loop()
            loop.call_at(max(loop.time(), self._rung_at + BELL_PAUSE_S), self._ring)
        self._to_ring |= hints

    def _ring(self) -> None:
        hints, self._to_ring = self._to_ring, set()
        self._rung_at = asyncio.get_running_loop().time()
        if not self.is_dead:
            self._yard.ring(self, hints)


def _sent(name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def sent(self: Far, *args: Any, **options: Any) -> Any:
        return await self.call(name, args, options)

    sent.__name__ = name
    return sent


def new_member(yard: Yard, host: str) -> Any:
    """Return the store as a new process of this name reaches it."""
    member = Member(yard, host)
    yard.members.append(member)
    return member


Member: Any = type(
    "Member",
    (Far, Store),
    {name: _sent(name) for name in sorted(Store.__abstractmethods__) if not hasattr(Far, name)},
)
"""A `Far` with every other call of the contract, each of which travels."""
