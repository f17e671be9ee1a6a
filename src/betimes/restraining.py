"""The restraining face of a scheduler: limits, rates and circuits, looked at and changed while it runs."""

from __future__ import annotations

from msgspec.structs import replace

from betimes.core.limits import GateKind, GateTerms, gate_key, value_name
from betimes.core.restraints import MOST_RUNNING, Rate
from betimes.core.wording import shown
from betimes.errors import ConfigurationError
from betimes.limit_info import LimitInfo
from betimes.ports import Store
from betimes.runtime.engine import Engine
from betimes.tasks import check_name

MOST_LISTED = 1000


class Restraining:
    """Shows and changes what holds tasks back."""

    _engine: Engine

    async def limits(self, name: str | None = None) -> list[LimitInfo]:
        """List limits, rates and breakers, without who holds them and waits; at most 1,000.

        Args:
            name: only those of this name, one for each value in use; None: all.

        Raises:
            SchedulerClosed: the scheduler is not open.
        """
        store = await self._looked_at()
        if name is None:
            views = await store.gates_under(None, limit=MOST_LISTED)
        else:
            check_name(name, "name")
            views = [
                view
                for kind in GateKind
                for view in await store.gates_under(gate_key(kind, name), limit=MOST_LISTED)
            ]
        return [LimitInfo.of(view, store.now()) for view in views]

    async def limit(self, name: str, value: str | None = None, *, kind: str = "limit") -> LimitInfo:
        """Return a limit, a rate or a breaker as it stands, with who holds it and who waits.

        Args:
            name: its name; a rate without a name of its own, and a breaker, have their task's.
            value: of one that is by an argument, the argument's value (text as it is, other values as JSON).
            kind: `"limit"`, `"rate"` or `"breaker"`.

        Raises:
            ConfigurationError: there is none of this name; or `value` or `kind` is wrong.
            SchedulerClosed: the scheduler is not open.
        """
        store = await self._looked_at()
        key = gate_key(_kind(kind), check_name(name, "name"), _value(value))
        views = await store.gates([key])
        if not views:
            raise _unknown(kind, name)
        return LimitInfo.of(views[0], store.now())

    async def set_limit(self, name: str, max_running: int | None) -> None:
        """Have a limit let so many run, from now on and for all processes; what runs goes on.

        It holds until this is called with None, which brings back what the code says.

        Args:
            name: the limit's name.
            max_running: how many; 0 holds all of its jobs back.

        Raises:
            ConfigurationError: there is no such limit in the store, or the number is wrong.
            SchedulerClosed: the scheduler is not open.
        """
        if max_running is not None and (
            isinstance(max_running, bool)
            or not isinstance(max_running, int)
            or not 0 <= max_running <= MOST_RUNNING
        ):
            raise ConfigurationError(
                f"max_running is {shown(max_running)}; it is a whole number from 0 to {MOST_RUNNING:,}"
            )
        standing = await self._standing(GateKind.LIMIT, name)
        await self._change(
            standing, None if max_running is None else replace(standing, max_running=max_running)
        )

    async def set_rate(self, name: str, rate: str | None, burst: int = 1) -> None:
        """Have a rate go by other numbers, from now on and for all processes.

        Tokens that were used stay used. It holds until this is called with None, which brings back what the
        code says.

        Args:
            name: the rate's name; of one without a name, its task's.
            rate: as for `Rate`, such as `"10/s"`.
            burst: as for `Rate`.

        Raises:
            ConfigurationError: there is no such rate in the store, or an argument is wrong.
            SchedulerClosed: the scheduler is not open.
        """
        new = None if rate is None else Rate(rate, burst)
        standing = await self._standing(GateKind.RATE, name)
        await self._change(
            standing, None if new is None else replace(standing, every_us=new.every_us, burst=new.burst)
        )

    async def open_circuit(self, task: str) -> None:
        """Open the circuit of a task's breaker: none of its jobs starts before `open_for` is over.

        Raises:
            ConfigurationError: the task has no breaker.
            SchedulerClosed: the scheduler is not open.
        """
        await self._standing(GateKind.BREAKER, task)
        await self._engine.store.trip(gate_key(GateKind.BREAKER, task), is_open=True)

    async def close_circuit(self, task: str) -> None:
        """Close the circuit of a task's breaker: its jobs start again.

        Raises:
            ConfigurationError: the task has no breaker.
            SchedulerClosed: the scheduler is not open.
        """
        await self._standing(GateKind.BREAKER, task)
        await self._engine.store.trip(gate_key(GateKind.BREAKER, task), is_open=False)

    async def _looked_at(self) -> Store:
        """Return the store, once it knows the rules of all tasks that are registered."""
        self._engine.check_here()
        if self._engine.declarations.are_due:
            await self._engine.declarations.declare()
        return self._engine.store

    async def _standing(self, kind: GateKind, name: str) -> GateTerms:
        store = await self._looked_at()
        views = await store.gates_under(gate_key(kind, check_name(name, "name")), limit=1)
        if not views:
            raise _unknown(kind, name)
        return views[0].terms

    async def _change(self, standing: GateTerms, terms: GateTerms | None) -> None:
        await self._engine.store.change_gates(standing.rule, terms)


def _kind(kind: str) -> GateKind:
    try:
        return GateKind(kind)
    except ValueError:
        raise ConfigurationError(f"kind is {shown(kind)}; it is one of {', '.join(GateKind)}") from None


def _value(value: object) -> str | None:
    """Return what a value is told apart by; only text is taken, since `True` would name a gate no job has."""
    if value is None:
        return None
    if isinstance(value, str):
        return value_name(value)
    raise ConfigurationError(
        f"value is {shown(value)}; it must be text: an argument that is none is meant by its JSON, such as "
        '"5", "true" or "null"'
    )


def _unknown(kind: str, name: str) -> ConfigurationError:
    return ConfigurationError(f"the store knows no {kind} named {name!r}: limits() lists what there is")
