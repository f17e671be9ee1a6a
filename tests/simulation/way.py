"""The way between one simulated process and the shared store: at times slow, and not always there.

A call is a request, which travels to the shared store and is carried out there in one step, and a reply,
which travels back. Each can be slow or get lost. A lost request is never carried out; when a reply is lost,
the call has been carried out all the same; the caller is told `StoreUnavailable` in both cases, and cannot
tell them apart. A request that was sent arrives also if its process dies or is paused meanwhile. Once the
caller has been told, the call is over: it is not carried out later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random
from typing import TypeVar

from tests.simulation.loops import SteppedLoop
from tests.simulation.settings import CALM, Faults
from tests.simulation.shared_store import SharedStore
from tests.simulation.trace import in_short

from betimes.errors import BetimesError, StoreUnavailable

T = TypeVar("T")


class Way:
    """One process's way to the shared store.

    Args:
        shared: where calls are carried out.
        loop: the process's own.
        host: the process's name.
        rng: draws delays and losses.

    Attributes:
        faults: what goes wrong at present.
        is_out: nothing gets through at all.
        is_dead: the process is gone.
        calls: the names of the calls that are on their way.
    """

    def __init__(self, shared: SharedStore, loop: SteppedLoop, host: str, *, rng: Random) -> None:
        self._shared = shared
        self._loop = loop
        self._host = host
        self._rng = rng
        self.faults: Faults = CALM
        self.is_out = self.is_dead = False
        self.calls: list[str] = []

    async def _call(
        self, name: str, carry_out: Callable[[], T], *, lost: Callable[[T], None] | None = None
    ) -> T:
        answer: asyncio.Future[T] = self._loop.create_future()
        if self.is_dead:
            return await answer  # for ever: a dead process sends nothing
        faults, rng = self.faults, self._rng
        self.calls.append(name)
        try:
            if self.is_out or rng.random() < faults.lost_request:
                self._loop.call_later(self._delay(), _refuse, answer, f"{name}: the request was lost")
            else:
                is_lost = rng.random() < faults.lost_reply
                arrive = partial(
                    self._arrive, name, carry_out, answer, lost if is_lost else None, is_lost=is_lost
                )
                delay = self._delay()
                if name.startswith("exchange") and rng.random() < faults.stuck:
                    delay += faults.stuck_s * rng.uniform(1.0, 2.0)
                self._shared.loop.call_later(delay, arrive)
            return await answer
        finally:
            self.calls.remove(name)

    def _delay(self) -> float:
        rng, faults = self._rng, self.faults
        if rng.random() < faults.slow:
            return rng.uniform(0.0, faults.slow_s)
        mean = faults.latency_s
        return min(rng.expovariate(1 / mean), 4 * mean) if mean else 0.0

    def _arrive(
        self,
        name: str,
        carry_out: Callable[[], T],
        answer: asyncio.Future[T],
        lost: Callable[[T], None] | None,
        *,
        is_lost: bool,
    ) -> None:
        """Carry the call out, on the shared store's loop, and send the reply on its way."""
        delay = self._delay()
        try:
            value = carry_out()
        except BetimesError as error:
            self._shared.after_call(self._host, name, type(error).__name__)
            self._loop.call_later(delay, _reject, answer, error)
            return
        except Exception:  # noqa: BLE001 - whatever it is, the store itself is broken
            self._shared.broke(self._host, name)
            return
        self._shared.after_call(self._host, name, in_short(value))
        if is_lost or self.is_out:
            if lost is not None:
                lost(value)
            self._loop.call_later(delay, _refuse, answer, f"{name}: the reply was lost")
        else:
            self._loop.call_later(delay, _resolve, answer, value)


def _resolve(answer: asyncio.Future[T], value: T) -> None:
    if not answer.done():
        answer.set_result(value)


def _reject(answer: asyncio.Future[T], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


def _refuse(answer: asyncio.Future[T], text: str) -> None:
    _reject(answer, StoreUnavailable(text))
