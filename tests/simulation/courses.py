"""What the witness reckons of each schedule by itself: its grid, and what has become of each instant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.simulation.lives import Life, Lives

from betimes.core.grid import Grid
from betimes.core.job import Micros
from betimes.core.schedule import Fire, FireOutcome, Overlap, ScheduleRecord
from betimes.core.schedule_terms import ScheduleTerms
from betimes.core.triggers import trigger_from_stored

MOST_INSTANTS = 20_000
"""More than any run comes to."""


def aim_of(record: ScheduleRecord) -> Micros | None:
    """Return the first instant that is not decided yet; None: there is none."""
    return record.next_fire_at if record.held_at is None else record.held_at


@dataclass(slots=True)
class Course:
    """One schedule, from its adding to its removal.

    Attributes:
        id: its name.
        anchor: where its grid begins, by its first definition.
        terms, grid: by its present definition, but on the grid of the first.
        since: the instants of this grid that are later must be decided, one after the other.
        decided: the instants decided, each with the turn in which that was last.
        turns: how often the clock was set back so far that it had to go on from an earlier instant.
        jobs: the jobs of instants, by instant.
        told: what became of instants, as the store must remember it: by instant, the first answer.
        held: the instants that were held back until a run had ended.
        live_jobs: its jobs that may be live.
        fired, skipped: how many instants became jobs, and how many did not.
        last_run: the job of its last instant that became one.
        earliest: with a fixed delay, its next instant as it was set when there was no run to wait for; None:
            the end of the last run decides.
    """

    id: str
    anchor: Micros
    terms: ScheduleTerms
    grid: Grid
    since: Micros
    decided: dict[Micros, int] = field(default_factory=dict)
    turns: int = 0
    jobs: dict[Micros, int] = field(default_factory=dict)
    told: dict[Micros, Fire] = field(default_factory=dict)
    held: set[Micros] = field(default_factory=set)
    live_jobs: set[int] = field(default_factory=set)
    fired: int = 0
    skipped: int = 0
    last_run: int | None = None
    earliest: Micros | None = None

    @classmethod
    def of(cls, record: ScheduleRecord, since: Micros) -> Course:
        """Begin with a schedule as it was added; the instants that are later than `since` are to come."""
        terms = ScheduleTerms.from_text(record.definition)
        return cls(
            id=record.id, anchor=terms.anchor, terms=terms, grid=_grid(terms, terms.anchor), since=since
        )

    def change(self, terms: ScheduleTerms, since: Micros) -> None:
        """Go on by another definition, along the grid."""
        self.terms, self.grid, self.since = terms, _grid(terms, self.anchor), since

    @property
    def has_grid(self) -> bool:
        """Whether its instants are fixed beforehand: not with a delay after each run."""
        return self.grid.trigger.delay_after_finish_us is None

    @property
    def allows_overlap(self) -> bool:
        """Whether its runs may overlap."""
        return self.terms.overlap is Overlap.ALLOW

    def live(self, lives: Lives) -> list[Life]:
        """Return its jobs that have not ended, oldest first."""
        self.live_jobs = {seq for seq in self.live_jobs if not lives[seq].status.is_terminal}
        return [lives[seq] for seq in sorted(self.live_jobs)]

    def between(self, first: Micros, last: Micros) -> Iterator[Micros]:
        """Yield the instants of the grid in [first, last]."""
        following = self.grid.next(first - 1)
        for _ in range(MOST_INSTANTS):
            if following is None or following > last:
                return
            yield following
            following = self.grid.next(following)
        raise AssertionError(f"{self} has too many instants to count")

    def note(self, fire: Fire) -> Iterator[str]:
        """Follow what became of one instant, or of several; yield what is wrong with that."""
        instants = list(self.between(fire.first_at, fire.at)) if self.has_grid else [fire.at]
        if not instants or (instants[0], instants[-1]) != (fire.first_at, fire.at):
            yield f"{fire} is not on the grid of {self}"
            return
        if fire.is_exact and fire.count != len(instants):
            yield f"{fire} of {self} stands for {len(instants)} instants"
        for instant in instants:
            if self.decided.get(instant) == self.turns:
                yield f"the instant {instant} of {self} was decided twice, the second time {fire.outcome}"
            self.decided[instant] = self.turns
        if fire.outcome is FireOutcome.FIRED:
            self.fired += 1
        else:
            self.skipped += fire.count
        self.told.setdefault(fire.at, fire)

    def undecided(self, until: Micros) -> list[Micros]:
        """Return the instants up to this one that have become nothing at all."""
        return [instant for instant in self.between(self.since + 1, until) if instant not in self.decided]

    def __str__(self) -> str:
        return f"schedule {self.id}"


def _grid(terms: ScheduleTerms, anchor: Micros) -> Grid:
    trigger = trigger_from_stored(terms.trigger).anchored(anchor)
    return Grid(trigger=trigger, starts_at=terms.starts_at, ends_at=terms.ends_at)
