"""The calls on gates, orders and logs, as one simulated process sees them: at the other end of a `Way`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.simulation.way import Way

from betimes.core.job import Job
from betimes.core.limits import GateTerms, GateView
from betimes.core.log import LogLine, LogPage


class FaultyGates(Way):
    """The shared store's gates, far away."""

    async def declare_gates(self, terms: Sequence[GateTerms]) -> None:
        """Have the store keep rules."""
        shared, rules = self._shared.gates, tuple(terms)
        await self._call("declare", lambda: shared.declare(self._host, rules))

    async def change_gates(self, rule: str, terms: GateTerms | None) -> GateTerms | None:
        """Have gates go by other rules."""
        shared = self._shared.gates
        return await self._call(f"change {rule}", lambda: shared.change(self._host, rule, terms))

    async def trip(self, key: str, *, is_open: bool) -> None:
        """Open a circuit, or close it."""
        shared = self._shared.gates
        await self._call(f"trip {key} {is_open}", lambda: shared.trip(self._host, key, is_open=is_open))

    async def gates(self, keys: Sequence[str], *, most: int = 100) -> list[GateView]:
        """Look at gates."""
        shared, asked = self._shared.gates, tuple(keys)
        return await self._call("gates", lambda: shared.get(self._host, asked, most))

    async def gates_under(self, rule: str | None, *, limit: int = 1000) -> list[GateView]:
        """Look at the gates of a rule."""
        shared = self._shared.gates
        return await self._call("gates under", lambda: shared.under(self._host, rule, limit))

    async def rekey(self, *, strategy: str, assign: Callable[[Job], None]) -> int:
        """Refuse: nobody orders a store anew while others work on it."""
        raise AssertionError(f"{self._host} orders the jobs anew, by {strategy} and {assign}")

    async def write_log(self, pages: Sequence[LogPage]) -> None:
        """Add lines to jobs' logs."""
        shared, sent = self._shared.gates, tuple(pages)
        await self._call("write log", lambda: shared.write_log(self._host, sent))

    async def log(self, job: Job, *, after: int = 0, limit: int = 1000) -> list[LogLine]:
        """Read a job's log."""
        shared = self._shared.gates
        return await self._call("log", lambda: shared.log(self._host, job, after, limit))
