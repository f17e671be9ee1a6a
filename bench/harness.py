"""Rows and rounds: the limit, the peers and Betimes take turns, each run in a process of its own.

What makes a figure comparable:

1. *One run, one process.* A measured run starts a fresh interpreter (`bench.child`), warms up, measures and
   ends, so that no library's threads, caches or garbage disturb the next. All stay in one process group.
2. *Turns.* In each round everyone runs once, and the order rotates from round to round, so that the
   machine's moods meet all alike.
3. *Ratios are taken within a round*; what is reported is their median. Absolute figures come with the least
   and the greatest.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[1]
MOST_SECONDS = 300
MISSING = 3
"""The exit code of a run whose library is not installed."""


class RunFailed(Exception):
    """A measured run did not come to its end; the text is what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One who does the work of a row.

    Attributes:
        name: as the table shows it, with the settings that matter.
        role: the limit, ours (the one that is held to the targets), a variant of ours, or a peer.
        call: `module:function` under `bench`; it returns figures by name.
        params: its keyword arguments.
        quick: those that are different in a quick run.
        library: the package to import, if it is a peer's.
        venv: the environment, a folder of the project, that has it; None: this one.
    """

    name: str
    role: Literal["limit", "ours", "variant", "peer"]
    call: str
    params: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    library: str | None = None
    venv: str | None = None

    @property
    def python(self) -> str:
        """The interpreter that runs it."""
        return sys.executable if self.venv is None else str(ROOT / self.venv / "bin" / "python")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the ratio of ours to somebody, or our figure itself, shall be.

    Attributes:
        against: whose figure ours is divided by; None: our figure as it is.
        at_least, at_most: the bound; one of them.
        of: whose figure; the name of the contender whose role is "ours" unless given.
    """

    against: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    of: str | None = None

    def is_met(self, value: float) -> bool:
        """Whether the bound holds."""
        if self.at_least is not None:
            return value >= self.at_least
        assert self.at_most is not None
        return value <= self.at_most


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kind of work, done by several.

    Attributes:
        name: to choose it by.
        section: where the table shows it (`report.SECTIONS`).
        work: what is done, in one sentence.
        figure: which of a run's figures counts; `rate` is better when more, all others when less.
        unit: of that figure.
        also: other figures to show beside it.
        rounds: how often everyone runs.
        shows_cpu: whether ratios by processor time are shown, too: they leave out the waiting for the disk,
            and what neighbours on the machine take away.
        is_long: left out unless asked for.
        has_server: its runs are told where a PostgreSQL server is, as `server`.
        prepare: `module:function` that fills the row's folder once, before the first round.
        prepare_params, prepare_quick: its keyword arguments.
    """

    name: str
    section: str
    work: str
    contenders: tuple[Contender, ...]
    targets: tuple[Target, ...] = ()
    figure: str = "rate"
    unit: str = "jobs/s"
    also: tuple[str, ...] = ()
    rounds: int = 5
    shows_cpu: bool = False
    is_long: bool = False
    has_server: bool = False
    prepare: str | None = None
    prepare_params: Mapping[str, Any] = field(default_factory=dict)
    prepare_quick: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Measured:
    """What came of a row: for each contender one mapping of figures a round; None where it could not run."""

    row: Row
    runs: dict[str, list[dict[str, float]] | None]

    def figures(self, name: str, figure: str | None = None) -> list[float]:
        """Return one figure of a contender, round by round."""
        return [run[figure or self.row.figure] for run in self.runs[name] or ()]

    def ratios(self, name: str, against: str) -> list[float]:
        """Return how often `against`'s figure goes into the other's, round by round."""
        pairs = zip(self.figures(name), self.figures(against), strict=True)
        return [mine / theirs for mine, theirs in pairs]

    @property
    def ours(self) -> str:
        """The name of the contender that is held to the targets."""
        return next(each.name for each in self.row.contenders if each.role == "ours")

    def reached(self, target: Target) -> float | None:
        """Return what stands against a target's bound; None if one of the two could not run."""
        mine = target.of or self.ours
        if not self.runs.get(mine) or (target.against and not self.runs.get(target.against)):
            return None
        values = self.figures(mine) if target.against is None else self.ratios(mine, target.against)
        return statistics.median(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How to measure.

    Attributes:
        rounds: for every row; None: as each row says.
        is_quick: smaller work and two rounds: to see that everything runs, not to report.
        folder: where files are made; it should be on the disk whose fsync counts.
        say: told of each step.
        server: starts a PostgreSQL server, if it does not run yet, and returns its URL.
        prepared: the folders that have been prepared, by how; rows that ask for the same share one.
    """

    folder: Path
    rounds: int | None = None
    is_quick: bool = False
    say: Callable[[str], None] = print
    server: Callable[[], str] = str
    prepared: dict[str, str] = field(default_factory=dict)

    def rounds_of(self, row: Row) -> int:
        """Return how many rounds a row gets."""
        return self.rounds or (2 if self.is_quick else row.rounds)


def measure(row: Row, plan: Plan) -> Measured:
    """Run a row's contenders in turns."""
    runs: dict[str, list[dict[str, float]] | None] = {each.name: [] for each in row.contenders}
    more: dict[str, str] = {"server": plan.server()} if row.has_server else {}
    if row.prepare is not None:
        more["shared"] = _prepared(row, row.prepare, plan)
    rounds = plan.rounds_of(row)
    for number in range(rounds):
        for contender in _rotated(row.contenders, number):
            _take_turn(contender, runs, plan, more=more)
        plan.say(f"{row.name}: round {number + 1} of {rounds}: {_last(row, runs)}")
    return Measured(row, runs)


def _prepared(row: Row, prepare: str, plan: Plan) -> str:
    """Return the folder of a row, filled for it or for one before that asked for the same."""
    params = {**row.prepare_params, **(row.prepare_quick if plan.is_quick else {})}
    key = f"{prepare} {params}"
    if key not in plan.prepared:
        plan.say(f"{row.name}: preparing")
        made = tempfile.mkdtemp(prefix=f"betimes-{row.name}-", dir=plan.folder)
        run_once(prepare, params | {"shared": made}, folder=plan.folder)
        plan.prepared[key] = made
    return plan.prepared[key]


def _rotated(contenders: tuple[Contender, ...], by: int) -> Iterable[Contender]:
    by %= len(contenders)
    return contenders[by:] + contenders[:by]


def _take_turn(
    contender: Contender,
    runs: dict[str, list[dict[str, float]] | None],
    plan: Plan,
    *,
    more: Mapping[str, str],
) -> None:
    taken = runs[contender.name]
    if taken is None:
        return
    params = {**contender.params, **(contender.quick if plan.is_quick else {}), **more}
    found = run_once(contender.call, params, folder=plan.folder, python=contender.python)
    if found is None:
        plan.say(f"{contender.name}: {contender.library} is not installed, and is left out")
        runs[contender.name] = None
    else:
        taken.append(found)


def _last(row: Row, runs: dict[str, list[dict[str, float]] | None]) -> str:
    shown = (f"{name} {taken[-1][row.figure]:,.0f}" for name, taken in runs.items() if taken)
    return ", ".join(shown) + f" ({row.unit})"


def run_once(
    call: str, params: Mapping[str, Any], *, folder: Path, python: str = sys.executable
) -> dict[str, float] | None:
    """Carry out one measured run in a process of its own, with a folder of its own.

    Returns:
        Its figures; None if the library it needs, or its whole environment, is not installed.

    Raises:
        RunFailed: it failed, or took longer than `MOST_SECONDS`.
    """
    if not Path(python).exists():
        return None
    with tempfile.TemporaryDirectory(prefix="betimes-run-", dir=folder) as own:
        command = [python, "-m", "bench.child", call, json.dumps(dict(params)), own]
        try:
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, timeout=MOST_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise RunFailed(f"{call} {dict(params)} took longer than {MOST_SECONDS} s") from None
    if done.returncode == MISSING:
        return None
    if done.returncode != 0:
        raise RunFailed(f"{call} {dict(params)} failed:\n{done.stdout}{done.stderr}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures
