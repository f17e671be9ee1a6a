"""What people ask of limits, rates and circuits while jobs run: drawn by chance."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

from tests.simulation.process import Process
from tests.simulation.restraints import LONG, SHORT, Restraints

from betimes.errors import ConfigurationError, SchedulerClosed, StoreUnavailable


class GateClients:
    """Draws and carries out operations on what holds tasks back."""

    def __init__(self, rng: Random, restraints: Restraints, fail: Callable[[str], None]) -> None:
        self._rng = rng
        self._restraints = restraints
        self._fail = fail

    def operate(self, process: Process) -> None:
        """Begin one operation, drawn by chance."""
        restraints = self._restraints
        kinds: list[tuple[int, Callable[[Process], Awaitable[None]]]] = [(2, self._look)]
        kinds += [(4, self._set_limit)] if restraints.limits else []
        kinds += [(3, self._set_rate)] if restraints.rates else []
        kinds += [(3, self._set_circuit)] if restraints.circuits else []
        operation = self._rng.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])[0]
        process.spawn(self._guarded(process, operation), operation.__name__.strip("_"))

    async def _guarded(self, process: Process, operation: Callable[[Process], Awaitable[None]]) -> None:
        try:
            await operation(process)
        except (StoreUnavailable, SchedulerClosed):
            return
        except ConfigurationError as error:
            self._fail(f"{process.name} was refused: {error}")

    async def _set_limit(self, process: Process) -> None:
        name = self._rng.choice(self._restraints.limits)
        await process.scheduler.set_limit(name, self._rng.choice((0, 1, 1, 2, 4, None)))

    async def _set_rate(self, process: Process) -> None:
        name, rng = self._rng.choice(self._restraints.rates), self._rng
        await process.scheduler.set_rate(name, rng.choice((*SHORT, *LONG, None)), rng.randint(1, 4))

    async def _set_circuit(self, process: Process) -> None:
        name = self._rng.choice(self._restraints.circuits)
        if self._rng.random() < 0.7:
            await process.scheduler.open_circuit(name)
        else:
            await process.scheduler.close_circuit(name)

    async def _look(self, process: Process) -> None:
        names = self._restraints.limits
        await process.scheduler.limits()
        if names:
            await process.scheduler.limit(self._rng.choice(names))
