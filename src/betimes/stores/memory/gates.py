"""The gates in memory: the rules they go by, and those of them that do not stand as fresh ones would."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from betimes.core.heap import LazyHeap
from betimes.core.job import Job, Micros
from betimes.core.limits import Gate, GateKind, GateTerms, rule_of
from betimes.errors import ConfigurationError
from betimes.stores.memory.line import Line, Section

_LIMIT = GateKind.LIMIT


class Door(Gate):
    """A gate, and the lines that wait at it.

    Attributes:
        number: which door, among all there ever were.
        most: how many permits a limit gives out; None: it is none.
        waiting: the lines that wait here, by section, first the one with the first head.
        watched_at: the instant at which it is to be looked at again; None: time alone changes nothing.
    """

    __slots__ = ("most", "number", "waiting", "watched_at")

    def __init__(self, key: str, terms: GateTerms, number: int) -> None:
        super().__init__(key, terms)
        self.number = number
        # Of the terms, what each claim asks for.
        self.most = terms.max_running if terms.kind is _LIMIT else None
        self.waiting: dict[Section, LazyHeap[int, Line]] = {}
        self.watched_at: Micros | None = None

    def wait_in(self, section: Section) -> LazyHeap[int, Line]:
        """Make the heap of those lines of a section that wait here."""
        heap = self.waiting[section] = LazyHeap(slack=0)
        return heap

    def change(self, terms: GateTerms, now: Micros) -> None:
        """Go by other rules from now on."""
        super().change(terms, now)
        self.most = terms.max_running if terms.kind is _LIMIT else None

    @property
    def has_waiting(self) -> bool:
        """Whether any line waits here."""
        return any(heap.live for heap in self.waiting.values())

    def grows_at(self, now: Micros) -> Micros | None:
        """Return when one more than now may pass by the passing of time alone; None: time changes nothing."""
        terms = self.terms
        if not self.full_at:
            return None
        free = self.free(now, terms.burst)
        return None if free >= terms.burst else self.full_at - (terms.burst - free - 1) * terms.every_us


class Rule:
    """What the gates of one rule go by (mutable: it is declared anew, and changed at run time)."""

    __slots__ = ("changed", "declared")

    def __init__(self, declared: GateTerms) -> None:
        self.declared = declared
        self.changed: GateTerms | None = None

    @property
    def terms(self) -> GateTerms:
        """The terms in force."""
        return self.changed or self.declared


class Gates:
    """The rules by name, and the doors by key.

    Attributes:
        rules: what was declared.
        tripped: the doors of breakers whose circuit is open, by key.
    """

    def __init__(self) -> None:
        """Start without rules."""
        self.rules: dict[str, Rule] = {}
        self._doors: dict[str, Door] = {}
        self._last_number = 0
        self.tripped: dict[str, Door] = {}

    def __len__(self) -> int:
        """How many doors there are."""
        return len(self._doors)

    def get(self, key: str) -> Door | None:
        """Return a gate's door; None: it is at rest, or there is no such gate."""
        return self._doors.get(key)

    def door(self, key: str) -> Door:
        """Return a gate's door, which may have been at rest; its rule was declared."""
        door = self._doors.get(key)
        if door is None:
            self._last_number += 1
            door = self._doors[key] = Door(key, self.rules[rule_of(key)].terms, self._last_number)
        return door

    def all(self) -> Iterator[Door]:
        """Iterate over the doors."""
        return iter(self._doors.values())

    def under(self, rule: str) -> list[Door]:
        """List the doors of a rule."""
        return [door for door in self._doors.values() if rule_of(door.key) == rule]

    def check(self, job: Job) -> None:
        """See that the terms of all a job's gates are known.

        Raises:
            ConfigurationError: those of one were never declared.
        """
        for key in job.gates:
            if key not in self._doors and rule_of(key) not in self.rules:
                raise ConfigurationError(
                    f"job {job.id!r} has the gate {key!r}, whose rule {rule_of(key)!r} was never declared: "
                    "declare_gates must come first"
                )

    def forget_resting(self, used: Collection[Door], now: Micros) -> None:
        """Forget the doors that stand as fresh ones would, but for those that are in use."""
        self._doors = {
            key: door for key, door in self._doors.items() if door in used or not door.is_at_rest(now)
        }
