"""A store behind a slow line: calls and answers take the time that a test gives them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from tests.runtime.stage import pass_time

from betimes import StoreUnavailable
from betimes.core.job import Job, JobEvent, JobStatus
from betimes.ports import Cancellation, ClaimRequest, Exchange, Report
from betimes.stores.memory import MemoryStore


class SlowStore(MemoryStore):
    """The memory store, with hooks around the calls that matter here.

    Attributes:
        before: awaited before a call is carried out, with its name; a delay, a gate, or an error on its way.
        after: awaited after it was carried out and before its answer arrives.
        is_in_order: whether answers arrive in the order of the calls, as stores promise.
        claims: how many jobs each claim took.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.before: Callable[[str], Any] | None = None
        self.after: Callable[[str, Any], Any] | None = None
        self.is_in_order = False
        self.claims: list[int] = []
        self._line = asyncio.Lock()
        self._held_up: list[Gate] = []

    def hold(self, name: str, *, answers: bool = False, skip: int = 0) -> Gate:
        """Hold up the calls of a name, or their answers, until the gate is opened; let some pass before."""
        gate = Gate(name, skip=skip)
        self._held_up.append(gate)
        if answers:
            self.after = gate
        else:
            self.before = gate
        return gate

    def let_through(self) -> None:
        """Hold up nothing any more."""
        self.before = self.after = None
        for gate in self._held_up:
            gate.opened.set()

    async def _before(self, name: str) -> None:
        if self.before is not None:
            await self.before(name)

    async def _after(self, name: str, answer: Any) -> None:
        if self.after is None:
            return
        if self.is_in_order:
            async with self._line:
                await self.after(name, answer)
        else:
            await self.after(name, answer)

    async def submit(self, jobs: Sequence[Job]) -> tuple[list[Job], Sequence[JobEvent]]:
        await self._before("submit")
        answer = await super().submit(jobs)
        # Read the events now: they speak of the jobs as they stand at this moment.
        answer = (answer[0], list(answer[1]))
        await self._after("submit", answer)
        return answer

    async def cancel(self, job: Job, *, reason: str, abandon: bool = False) -> Cancellation:
        await self._before("cancel")
        answer = await super().cancel(job, reason=reason, abandon=abandon)
        await self._after("cancel", answer)
        return answer

    async def exchange(
        self, reports: Sequence[Report], claim: ClaimRequest | None, returned: Sequence[tuple[int, int]] = ()
    ) -> Exchange:
        await self._before("exchange")
        answer = await super().exchange(reports, claim, returned)
        self.claims.append(len(answer.claimed))
        await self._after("exchange", answer)
        return answer

    async def counts(self) -> dict[str, dict[JobStatus, int]]:
        await self._before("counts")
        return await super().counts()


class Gate:
    """Lets calls of one name through only when told, and tells when one has come."""

    def __init__(self, name: str, *, skip: int = 0) -> None:
        """Hold up calls of this name, after letting some through."""
        self.name = name
        self.skip = skip
        self.came = asyncio.Event()
        self.opened = asyncio.Event()

    async def __call__(self, name: str, answer: Any = None) -> None:
        if name != self.name or self.opened.is_set():
            return
        if self.skip:
            self.skip -= 1
            return
        self.came.set()
        await self.opened.wait()


def taking(seconds: Callable[[], float]) -> Callable[..., Any]:
    """Make a hook that lets time pass."""

    async def hook(*_: Any) -> None:
        await pass_time(seconds())

    return hook


def failing(name: str, times: int) -> Callable[..., Any]:
    """Make a hook that fails the next so many calls of a name."""
    left = times

    async def hook(called: str, answer: Any = None) -> None:
        nonlocal left
        if called == name and left:
            left -= 1
            raise StoreUnavailable(f"{name} is not to be had now")

    return hook
