"""Limits, rates and circuit breakers on the stage: what scenes about them have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from betimes.core.events import Event, Succeeded
from betimes.core.job import Job
from betimes.core.limits import GateKind, GateTerms, GateView, gate_key, rule_of
from betimes.core.transition import Transition
from betimes.ports import Report
from betimes.testing.store_contract.stage import SECOND, Stage, Taken


class GateStage:
    """A scene's gates.

    Attributes:
        stage: where the rest of the scene plays.
        terms: what was declared, by rule.
    """

    def __init__(self, stage: Stage) -> None:
        """Begin without gates."""
        self.stage = stage
        self.store = stage.store
        self.terms: dict[str, GateTerms] = {}

    # declaring

    async def limit(self, name: str = "l", max_running: int = 1, *, by: str | None = None) -> str:
        """Declare a limit; returns its rule, which is the key of its gate without a value."""
        return await self.declare(GateTerms(kind=GateKind.LIMIT, name=name, max_running=max_running, by=by))

    async def rate(
        self, name: str = "r", *, every_s: float = 1.0, burst: int = 1, by: str | None = None
    ) -> str:
        """Declare a rate; returns its rule."""
        every_us = round(every_s * SECOND)
        return await self.declare(
            GateTerms(kind=GateKind.RATE, name=name, every_us=every_us, burst=burst, by=by)
        )

    async def breaker(self, name: str = "b", *, open_for_s: float = 30.0) -> str:
        """Declare a circuit breaker; returns its rule."""
        return await self.declare(
            GateTerms(kind=GateKind.BREAKER, name=name, every_us=round(open_for_s * SECOND))
        )

    async def declare(self, terms: GateTerms) -> str:
        """Declare the rules of gates, or declare them anew."""
        await self.store.declare_gates([terms])
        self.terms[terms.rule] = terms
        return terms.rule

    async def change(self, rule: str, **fields: int) -> None:
        """Change the rules of gates at run time."""
        changed = replace(self.terms[rule], **fields)
        assert await self.store.change_gates(rule, changed) == changed

    @staticmethod
    def of(rule: str, value: str) -> str:
        """The key of a rule's gate for a value."""
        kind, _, name = rule.partition(":")
        return gate_key(GateKind(kind), name, value)

    # working

    async def add(self, number: int, *gates: str, sort_key: int = 0, **options: Any) -> list[Job]:
        """Submit so many jobs behind these gates."""
        stage = self.stage
        return await stage.submit(
            *(stage.job(gates=gates, sort_key=sort_key, **options) for _ in range(number))
        )

    async def start(self, *gates: str, worker: str = "w1", **options: Any) -> Taken:
        """Submit a job behind these gates, and claim it before any other."""
        return await self.stage.start(worker=worker, gates=gates, **options)

    def report(self, taken: Taken, event: Event | None = None) -> Report:
        """The report of how an attempt ended (None: well), whose code has returned."""
        return Report(taken.job, taken.fence, event or Succeeded(self.stage.now, b"1"))

    async def tell(
        self, taken: Taken, event: Event | None = None, *, has_begun: bool = True, has_returned: bool = True
    ) -> Transition | None:
        """Report how an attempt ended (None: well), and whether its code has begun and returned."""
        report = with_code(self.report(taken, event), begun=has_begun, returned=has_returned)
        return (await self.stage.turn([report])).steps[0]

    async def returned(self, *attempts: Taken) -> None:
        """Say that the code of these attempts has returned since they were reported."""
        await self.stage.turn(returned=[(one.job.seq, one.fence) for one in attempts])

    async def wait_for_claims(self, *, seconds: float) -> list[tuple[float, int]]:
        """Claim now and whenever the store says that time has brought something, for so many seconds.

        Returns:
            When each job was claimed, in seconds from now, and which.
        """
        stage, begun = self.stage, self.stage.now
        found: list[tuple[float, int]] = []
        for _ in range(200):
            request = stage.request()
            exchange = await stage.turn(claim=request)
            found += [((stage.now - begun) / SECOND, job.seq) for job in exchange.claimed]
            next_at = exchange.next_at
            if exchange.claimed and len(exchange.claimed) == request.limit:
                continue
            if next_at is None or next_at - begun > seconds * SECOND:
                stage.advance(seconds - (stage.now - begun) / SECOND)
                return found
            assert next_at > stage.now, "what time has brought by now must have been claimed"
            stage.advance((next_at - stage.now) / SECOND)
        raise AssertionError("the store has its workers look again and again, and nothing comes of it")

    # looking

    async def view(self, key: str) -> GateView:
        """A gate as it stands."""
        (view,) = await self.store.gates([key])
        assert view.key == key
        assert rule_of(view.key) == view.terms.rule
        return view

    async def held(self, *keys: str) -> list[int]:
        """How many permits are out of each."""
        return [(await self.view(key)).held for key in keys]

    async def waiting(self, key: str) -> list[int]:
        """Which jobs wait at a gate, in the order in which they will pass."""
        view = await self.view(key)
        assert view.waiting == len(view.waiters)
        return [seq for _, seq in view.waiters]

    async def holders(self, key: str) -> list[tuple[int, str]]:
        """Who holds a limit's permits: which versions, and for which worker."""
        view = await self.view(key)
        assert view.held == len(view.holders)
        return [(seq, worker) for _, seq, worker in view.holders]


def with_code(report: Report, *, begun: bool = True, returned: bool = True) -> Report:
    """The report of an attempt whose code has not begun, or has not returned."""
    if begun and returned:
        return report
    # What most attempts never change stands on the class: a worker's own reports are of classes of their own.
    kind = type("Told", (Report,), {"__slots__": (), "has_begun": begun, "has_returned": returned})
    told: Report = kind(report.job, report.fence, report.event)
    return told


def seqs(jobs: Iterable[Job] | Iterable[Taken]) -> list[int]:
    """The numbers of versions, in order."""
    return [one.job.seq if isinstance(one, Taken) else one.seq for one in jobs]


def at(seconds: Sequence[float], jobs: Sequence[Job]) -> list[tuple[float, int]]:
    """What `wait_for_claims` should return: each of these jobs at its time."""
    return [(when, job.seq) for when, job in zip(seconds, jobs, strict=True)]
