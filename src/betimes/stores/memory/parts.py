"""What the parts of the memory store share: where everything is kept, and who is told of changes."""

from __future__ import annotations

from collections.abc import Callable

from betimes.core.job import JobEvent, Micros
from betimes.core.queue_view import Pause
from betimes.errors import ConfigurationError
from betimes.ports import Clock, Hint, Store
from betimes.stores.memory.gates import Gates
from betimes.stores.memory.history import History
from betimes.stores.memory.leases import Leases
from betimes.stores.memory.logs import Logs
from betimes.stores.memory.moves import Moves
from betimes.stores.memory.permits import Permits
from betimes.stores.memory.schedules import Schedules
from betimes.stores.memory.turns import Turns
from betimes.stores.memory.waiting import Waiting


class MemoryParts(Store):
    """The places, and the subscribers; what the methods of the contract do with them stands elsewhere."""

    is_durable = False

    def __init__(self, *, clock: Clock, history: int = 10_000) -> None:
        """Start empty."""
        if history < 1:
            raise ConfigurationError(f"history is {history}; it must be at least 1 finished job")
        self._clock = clock
        # The clock's own method in place of `now` below: it is called for each job.
        self.now = clock.now  # type: ignore[method-assign]
        self._gates = Gates()
        self._waiting = Waiting(self._gates, clock.now)
        self._permits = Permits(self._gates, self._waiting.lines, clock.now)
        self._leases = Leases()
        self._logs = Logs()
        self._history = History(history, self._logs)
        self._schedules = Schedules()
        self._moves = Moves(
            self._waiting,
            self._leases,
            self._history,
            self._schedules,
            gates=self._gates,
            permits=self._permits,
        )
        self._turns = Turns(self._waiting, self._leases, self._moves, self._permits)
        # Replaced as a whole, so that what was handed out never changes.
        self._paused: dict[str, Pause] = {}
        self._strategy: str | None = None
        # Replaced as a whole, so that one may leave while they are called.
        self._subscribers: tuple[Callable[[Hint], None], ...] = ()
        # Whether all were told of work since somebody looked last: who has not looked need not be told again.
        self._is_told = False

    async def open(self, *, strategy: str | None) -> None:
        """Remember the strategy of the first open, and refuse another while jobs are here."""
        if strategy is None:
            return
        if self._strategy not in (None, strategy) and any(True for _ in self._history.all()):
            raise ConfigurationError(
                f"this store holds jobs ordered by strategy {self._strategy!r} and was opened with "
                f"{strategy!r}; open it with the same strategy, order its jobs anew (rekey), or use a new "
                "store"
            )
        self._strategy = strategy

    async def close(self) -> None:
        """Do nothing: the jobs stay for the next `open`."""

    def now(self) -> Micros:
        """Return the wall clock's time."""
        return self._clock.now()

    def subscribe(self, hear: Callable[[Hint], None]) -> Callable[[], None]:
        """Have `hear` called within the step that changed something."""
        self._subscribers += (hear,)
        self._is_told = False

        def stop() -> None:
            self._subscribers = tuple(each for each in self._subscribers if each != hear)

        return stop

    def _tell(self) -> None:
        moves, lines = self._moves, self._waiting.lines
        if lines.has_moved:
            lines.has_moved = False
            moves.work_appeared = True
        if moves.work_appeared:
            moves.work_appeared = False
            self._is_told = bool(self._subscribers)
            for hear in self._subscribers:
                hear(Hint.WORK)
        if moves.something_ended:
            moves.something_ended = False
            self._history.trim()
            for hear in self._subscribers:
                hear(Hint.ENDED)
        if self._schedules.has_moved:
            self._schedules.has_moved = False
            for hear in self._subscribers:
                hear(Hint.FIRE)

    def _done(self) -> list[JobEvent]:
        changes = self._moves.take_changes()
        self._tell()
        return changes
