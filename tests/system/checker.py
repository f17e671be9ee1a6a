"""Compares what really happened with what a store says: a pure function over evidence and final states.

Its words: a *run* is what a `begin` in the evidence speaks of, one start of a job's code under one fence. The
store's history tells of claims, each under a fence of its own; a claim that was *lost* raised the fence once
more. So the fences of all claims follow from the history, and each run has to have its claim.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.system.evidence import Entry, micros

from betimes import FireInfo, JobInfo, JobStatus

HISTORY = 50
"""How many attempts a store remembers of one job."""

JUST_US = 1_000_000
"""How long after the word of its worker's end a run may still begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Where the instants of a schedule are: `every(period)` from `start` until `end`, both included.

    Attributes:
        start, period, end: in microseconds; the grid.
        since: instants after this must have their fates: the schedule was there.
    """

    start: int
    period: int
    end: int
    since: int = 0

    def instants(self) -> range:
        return range(self.start, self.end + 1, self.period)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the tasks were promised.

    Attributes:
        limits: of a task, how many may run at once.
        once: tasks that start at most once.
        grids: of a schedule, its instants; each must have had its fate.
        behind_us: how far the time that a store tells between two of its answers may be behind.
    """

    limits: Mapping[str, int] = field(default_factory=dict)
    once: frozenset[str] = frozenset()
    grids: Mapping[str, Grid] = field(default_factory=dict)
    behind_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """What the store says in the end, read through the public interface."""

    jobs: Mapping[str, JobInfo]
    fires: Mapping[str, Sequence[FireInfo]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found: `violations` must be empty; `duplicates` are runs that somebody's death explains."""

    violations: list[str]
    duplicates: list[str]


def check(entries: Sequence[Entry], final: Final, rules: Rules) -> Verdict:
    """Find everything that breaks a promise, each in a sentence that names the job."""
    story = _Story(entries)
    duplicates: list[str] = []
    violations = [
        *_lost(story, final),
        *_keys(story),
        *_completions(story, final),
        *_runs(story, final, rules, duplicates),
        *_early(story, final),
        *_crowds(story, rules),
        *_repeated_starts(story, rules),
        *_schedules(story, final, rules),
    ]
    return Verdict(violations=violations, duplicates=duplicates)


class _Story:
    """The evidence, in order of what it speaks of."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.kept = [entry for entry in entries if entry.what == "kept"]
        self.recorded = [entry for entry in entries if entry.what == "recorded"]
        self.runs: dict[str, list[Entry]] = defaultdict(list)
        self.ends = {(entry.job, entry.fence): entry.at for entry in entries if entry.what == "end"}
        for entry in entries:
            if entry.what == "begin":
                self.runs[entry.job].append(entry)
        self._cuts: dict[tuple[str, int], list[int]] = defaultdict(list)
        for entry in entries:
            if entry.what in {"cut", "told"}:
                self._cuts[entry.what, entry.worker].append(entry.at)

    def cut_at(self, run: Entry, *whats: str) -> int | None:
        """When the run's worker was killed or stopped (or told to end), after the run began or just before.

        Whoever kills says so first, and a claim that is on its way may still begin, even in a child.
        """
        cuts = [at for what in whats for at in self._cuts.get((what, run.worker), ())]
        return min((max(at, run.at) for at in cuts if at >= run.at - JUST_US), default=None)


def claims_of(job: JobInfo) -> dict[int, str]:
    """Say under which fences a job was claimed, and how each of these claims ended."""
    fence, claims = 0, {}
    for attempt in job.attempts:
        fence += 1
        claims[fence] = attempt.outcome
        fence += attempt.outcome == "lost"
    if claims and job.status is JobStatus.FAILED and job.fence == fence + 1:
        claims[fence] = "lost"  # the last straw: a poison pill, or a job that may start only once
    return claims


def _lost(story: _Story, final: Final) -> Iterator[str]:
    for kept in story.kept:
        if kept.job not in final.jobs:
            yield f"{kept.job} was acknowledged, and is not there"
    for name, job in final.jobs.items():
        if not job.status.is_terminal:
            yield f"{name} is {job.status.value} in the end"


def _keys(story: _Story) -> Iterator[str]:
    jobs: dict[str, set[str]] = defaultdict(set)
    for kept in story.kept:
        if kept.key:
            jobs[kept.key].add(kept.job)
    for key, found in jobs.items():
        if len(found) > 1:
            yield f"key {key} stands for {len(found)} jobs: {', '.join(sorted(found))}"


def _completions(story: _Story, final: Final) -> Iterator[str]:
    for job, count in Counter(entry.job for entry in story.recorded).items():
        if count > 1:
            yield f"the end of {job} was recorded {count} times"
    for recorded in story.recorded:
        job_info = final.jobs.get(recorded.job)
        if job_info is None or job_info.status.value != recorded.status:
            says = "nothing" if job_info is None else job_info.status.value
            yield f"{recorded.job} was recorded as {recorded.status}, and in the end the store says {says}"
    for name, info in final.jobs.items():
        completed = [fence for fence, outcome in claims_of(info).items() if outcome == "completed"]
        if len(completed) > 1:
            yield f"{name} was completed {len(completed)} times"
        if info.status is JobStatus.COMPLETED and (name, info.fence) not in story.ends:
            yield f"{name} is recorded as completed under fence {info.fence}, and no such run came to its end"


def _runs(story: _Story, final: Final, rules: Rules, duplicates: list[str]) -> Iterator[str]:
    for name, runs in story.runs.items():
        info = final.jobs.get(name)
        if info is None:
            yield f"{name} ran, and is not there"
            continue
        for fence, count in Counter(run.fence for run in runs).items():
            if count > 1:
                yield f"{name} was started {count} times under fence {fence}"
        if len(info.attempts) < HISTORY:
            claims = claims_of(info)
            for run in runs:
                yield from _run(story, run, claims, duplicates)
                finished_at = None if info.finished_at is None else micros(info.finished_at)
                is_counted = claims.get(run.fence, "lost") not in {"lost", "given_back"}
                if is_counted and finished_at is not None and run.at > finished_at + rules.behind_us:
                    which = f"{run.job} under fence {run.fence}"
                    yield f"{which} began after the end of the job had been recorded"


def _run(story: _Story, run: Entry, claims: Mapping[int, str], duplicates: list[str]) -> Iterator[str]:
    """See that a run has its claim, and, if nothing of it was recorded, that somebody's end explains it."""
    which = f"{run.job} under fence {run.fence}"
    outcome = claims.get(run.fence)
    if outcome is None:
        yield f"{which} ran, and the store knows of no such claim"
    elif outcome in {"lost", "given_back"}:
        whats = ("cut",) if outcome == "lost" else ("cut", "told")
        if story.cut_at(run, *whats) is None:
            yield f"{which} is {outcome}, though nobody stopped its worker"
        elif (run.job, run.fence) in story.ends:
            duplicates.append(f"{which} came to its end and was {outcome}")


def _early(story: _Story, final: Final) -> Iterator[str]:
    for kept in story.kept:
        for run in story.runs.get(kept.job, ()):
            if kept.due is not None and run.at < kept.due:
                yield f"{kept.job} began {kept.due - run.at} µs before it was due"
    for name, info in final.jobs.items():
        for run in story.runs.get(name, ()):
            for need in info.depends_on:
                parent = final.jobs[need].finished_at
                if parent is None or run.at < micros(parent):
                    yield f"{name} began before the end of {need}, which it depends on"
            if run.scheduled_for is not None and run.at < run.scheduled_for:
                yield f"{name} began {run.scheduled_for - run.at} µs before its schedule's instant"


def _crowds(story: _Story, rules: Rules) -> Iterator[str]:
    """Find tasks of which more ran at once than their limit allows; what a worker's end cut short is over."""
    for task, most in rules.limits.items():
        steps: list[tuple[int, int]] = []
        for run in _runs_of(story, task):
            ends = [at for at in (story.ends.get((run.job, run.fence)), story.cut_at(run, "cut")) if at]
            steps.append((run.at, 1))
            if ends:
                steps.append((min(ends), -1))
        live = highest = 0
        for _, step in sorted(steps):
            live += step
            highest = max(highest, live)
        if highest > most:
            yield f"{highest} of {task} ran at once, and the limit is {most}"


def _repeated_starts(story: _Story, rules: Rules) -> Iterator[str]:
    for task in rules.once:
        for job, count in Counter(run.job for run in _runs_of(story, task)).items():
            if count > 1:
                yield f"{job} may start only once, and started {count} times"


def _runs_of(story: _Story, task: str) -> Iterator[Entry]:
    return (run for runs in story.runs.values() for run in runs if run.task == task)


def _schedules(story: _Story, final: Final, rules: Rules) -> Iterator[str]:
    made: dict[tuple[str, int], list[str]] = defaultdict(list)
    for name, info in final.jobs.items():
        at = None if info.scheduled_for is None else micros(info.scheduled_for)
        if info.schedule is not None and at is not None:
            made[info.schedule, at].append(name)
        for run in story.runs.get(name, ()):
            if run.scheduled_for != at:
                yield f"{name} was told that it is for {run.scheduled_for}, and the store says {at}"
    for (schedule, at), names in made.items():
        if len(names) > 1:
            yield f"{schedule} fired {len(names)} times for {at}: {', '.join(sorted(names))}"
        grid = rules.grids.get(schedule)
        if grid is not None and at not in grid.instants():
            yield f"{schedule} fired for {at}, which is off its grid"
    for schedule, grid in rules.grids.items():
        yield from _fates(schedule, grid, final.fires.get(schedule, ()), final.jobs)


def _fates(
    schedule: str, grid: Grid, fires: Iterable[FireInfo], jobs: Mapping[str, JobInfo]
) -> Iterator[str]:
    """See that each instant of the grid has one fate, and each that fired its job."""
    fates: Counter[int] = Counter()
    for fire in fires:
        first, last = micros(fire.first_at), micros(fire.at)
        fates.update(range(first, last + 1, grid.period))
        if fire.outcome == "fired" and fire.job_id not in jobs:
            yield f"{schedule} fired for {last}, and its job {fire.job_id} is not there"
    for at in grid.instants():
        if fates[at] != 1 and at > grid.since:
            yield f"{schedule} has {fates[at]} fates on record for {at}"
