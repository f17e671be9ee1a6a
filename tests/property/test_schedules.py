"""Schedules over random triggers, policies, runs and clocks: every instant has exactly one fate."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from itertools import pairwise

from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from betimes.core.firing import Plan
from betimes.core.grid import STEPS, Grid
from betimes.core.job import FireKey, Job, JobSpec, JobStatus, Micros
from betimes.core.overlapping import settle
from betimes.core.schedule import Fire, FireOutcome, Missed, Overlap, ScheduleRecord, followed
from betimes.core.schedule_terms import ScheduleTerms
from betimes.core.triggers import Trigger, cron, every

S = 1_000_000
ADDED = 1_900_000_000 * S
SPEC = JobSpec(task="t")

TRIGGERS = st.one_of(
    st.integers(1, 900).map(lambda period_s: every(period_s).anchored(ADDED)),
    st.sampled_from(
        [
            cron("* * * * *"),
            cron("*/7 8-17 * * *", tz="Europe/Berlin"),
            cron("30 2 * * *", tz="America/New_York"),
            every("1h", align=True) | every("25m").anchored(ADDED),
            every("10m").anchored(ADDED).excluding(date(2030, 3, 17)),
        ]
    ),
)


class Life:
    """One schedule, its jobs and its clock, as a worker and a store make them live.

    Attributes:
        most_due: the most jobs that one step was planned to make.
        nexts: `next_fire_at` as each step has set it.
    """

    def __init__(self, trigger: Trigger, overlap: Overlap, missed: Missed, max_catchup: int) -> None:
        self.grid = Grid(trigger=trigger)
        self.terms = ScheduleTerms(trigger={}, overlap=overlap, missed=missed, max_catchup=max_catchup)
        self.now = ADDED
        self.record = ScheduleRecord(id="s", spec=SPEC, next_fire_at=self.grid.next(ADDED))
        self.jobs: dict[int, Job] = {}
        self.waits: dict[int, tuple[int, ...]] = {}
        self.fires: list[Fire] = []
        self.seq = self.most_due = 0
        self.nexts = [self.record.next_fire_at or 0]

    def tick(self) -> None:
        """Fire what is due, step by step."""
        while self.record.next_fire_at is not None and self.record.next_fire_at <= self.now:
            self._step()
        self.start()

    def _step(self) -> None:
        plan = Plan(terms=self.terms, grid=self.grid, now=self.now, new_job=self._new_job)
        advance = plan.advance(self.record)
        self.most_due = max(self.most_due, len(advance.due))
        live = [self.jobs[seq] for seq in self.record.jobs if seq in self.jobs]
        settled = settle(advance, live=live, taken=self.decided(), now=self.now)
        for job in settled.cancels:
            self.end(job)
        for job, waits_for in settled.runs:
            self.seq += 1
            job.seq, job.id = self.seq, f"job-{self.seq}"
            self.jobs[job.seq] = job
            self.waits[job.seq] = tuple(other.seq for other in waits_for)
        self.record = settled.record_with([job.seq for job, _ in settled.runs])
        self.fires += settled.fires
        if self.record.next_fire_at is not None:
            self.nexts.append(self.record.next_fire_at)
        self.start()

    def _new_job(self, at: Micros) -> Job:
        job = Job("new", SPEC)
        job.fire = FireKey("s", at)
        return job

    def decided(self) -> set[Micros]:
        """The instants that have a fate of their own."""
        return {fire.at for fire in self.fires}

    def start(self, *, slots: int = 1000) -> None:
        """Let start what waits for no other, as far as there are slots."""
        for job in list(self.jobs.values()):
            is_free = not any(seq in self.jobs for seq in self.waits[job.seq])
            if job.status is not JobStatus.RUNNING and is_free and slots > 0:
                job.status, job.started_at = JobStatus.RUNNING, self.now

    def end(self, job: Job) -> None:
        """End a job, however."""
        if self.jobs.pop(job.seq, None) is not None:
            after = followed(self.record, job.seq, self.now)
            self.record = after or self.record

    def running(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.status is JobStatus.RUNNING]

    def re_aim(self) -> None:
        """What a worker does when it sees that the clock was set back (`Timetable.re_aim`)."""
        self.record = replace(
            self.record,
            next_fire_at=None if self.record.held_at is not None else self.grid.next(self.now),
            held_at=None if self.record.held_at is None else self.grid.next(self.now),
        )

    def instants(self, first: Micros, last: Micros) -> Iterator[Micros]:
        """The grid's own instants, both bounds included."""
        at = self.grid.next(first - 1)
        while at is not None and at <= last:
            yield at
            at = self.grid.next(at)


LIVES = st.builds(
    Life, TRIGGERS, st.sampled_from(Overlap), st.sampled_from(Missed), st.sampled_from([1, 2, 3, 7, 50])
)
AWAY = st.one_of(st.integers(1, 120), st.integers(1, 7_200), st.integers(1, 86_400))
MOVES = st.lists(st.tuples(st.sampled_from(["wait", "end", "end all"]), AWAY), max_size=30)


def live(life: Life, moves: list[tuple[str, int]]) -> None:
    """Let time pass and runs end, in this order."""
    for move, seconds in moves:
        if move == "wait":
            life.now += seconds * S
        elif move == "end" and life.running():
            life.end(life.running()[0])
        elif move == "end all":
            for job in life.running():
                life.end(job)
        life.tick()
        if life.terms.overlap is not Overlap.ALLOW:
            assert len(life.running()) <= 1, "runs overlap"


@given(LIVES, MOVES)
def test_p17_every_instant_is_fired_or_skipped_exactly_once(life: Life, moves: list[tuple[str, int]]) -> None:
    live(life, moves)
    fates: dict[Micros, FireOutcome] = {}
    for fire in life.fires:
        of_fire = list(life.instants(fire.first_at, fire.at))
        assert of_fire[0] == fire.first_at
        assert of_fire[-1] == fire.at
        assert len(of_fire) == fire.count or (not fire.is_exact and fire.count < len(of_fire))
        assert not fates.keys() & set(of_fire), "an instant has two fates"
        fates.update(dict.fromkeys(of_fire, fire.outcome))
        event(fire.outcome.value)
    pending = life.record.next_fire_at if life.record.held_at is None else life.record.held_at
    assert pending is not None
    assert sorted(fates) == list(life.instants(ADDED + 1, pending - 1)), "an instant has no fate"
    if life.record.held_at is None:
        assert pending > life.now, "what is due was not fired"
    if all(fire.is_exact for fire in life.fires):
        assert life.record.fired + life.record.skipped == len(fates)
    assert life.record.fired == sum(fire.outcome is FireOutcome.FIRED for fire in life.fires)


@given(LIVES, MOVES)
def test_p17_the_next_instant_strictly_increases(life: Life, moves: list[tuple[str, int]]) -> None:
    live(life, moves)
    assert all(sooner < later for sooner, later in pairwise(life.nexts))
    pending = life.nexts[-1] if life.record.held_at is None else life.record.held_at
    assert life.record.last_fire_at is None or life.record.last_fire_at < pending


@given(LIVES, MOVES)
def test_p17_a_step_never_makes_more_jobs_than_max_catchup(life: Life, moves: list[tuple[str, int]]) -> None:
    live(life, moves)
    makes_many = life.terms.missed is Missed.ALL and life.terms.overlap is Overlap.ALLOW
    assert life.most_due <= (life.terms.max_catchup if makes_many else 1)


@given(LIVES, MOVES, AWAY)
def test_p18_what_was_missed_is_dealt_with_as_the_policy_says(
    life: Life, moves: list[tuple[str, int]], away_s: int
) -> None:
    live(life, moves)
    live(life, [("end all", 0)] * 1000 if life.jobs else [])
    before, pending = len(life.fires), life.record.next_fire_at
    if life.jobs or pending is None:
        return
    life.now += away_s * S
    missed = list(life.instants(pending, life.now))
    life.tick()
    while life.jobs:
        live(life, [("end all", 0)])
    fired = [fire.at for fire in life.fires[before:] if fire.outcome is FireOutcome.FIRED]
    if life.terms.missed is Missed.ALL:
        assert fired == missed[-life.terms.max_catchup :]
    elif life.terms.missed is Missed.LATEST:
        assert fired == missed[-1:]
    else:
        assert fired == [at for at in missed[-1:] if life.now - at <= 30 * S]


CLOCKS = st.lists(st.one_of(AWAY, AWAY.map(lambda seconds: -seconds)), min_size=1, max_size=20)


@given(LIVES, CLOCKS, st.booleans())
def test_p16_nothing_is_fired_twice_however_the_clock_is_set(
    life: Life, clocks: list[int], is_quick: bool
) -> None:
    for seconds in clocks:
        life.now = max(ADDED, life.now + seconds * S)
        if seconds < 0:
            life.re_aim()
        life.tick()
        if is_quick:
            live(life, [("end all", 0)])
    fired = [fire.at for fire in life.fires if fire.outcome is FireOutcome.FIRED]
    assert len(fired) == len(set(fired))
    assert life.record.fired == len(fired)
    assert set(fired) <= set(life.instants(ADDED + 1, max(fired, default=ADDED)))
    if life.record.held_at is None:
        following = life.grid.next(life.now)
        assert life.record.next_fire_at == following, "it stalls"


@given(st.integers(1, 2_500), st.integers(1, 1_000), st.integers(1, 100_000))
def test_a_window_is_what_stepping_finds(total: int, keep: int, period_s: int) -> None:
    grid = Grid(trigger=every(period_s).anchored(0))
    instants = [period_s * n * S for n in range(1, total + 1)]
    window = grid.window(instants[0], instants[-1] + period_s * S - 1, keep=keep)
    assert window.newest == tuple(instants[-keep:])
    assert window.earlier == max(0, total - keep)
    assert window.following == instants[-1] + period_s * S
    event("stepped" if total <= keep + STEPS else "looked for")
