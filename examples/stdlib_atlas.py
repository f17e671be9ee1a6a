"""An atlas of your own Python: each file of its standard library read, hashed, parsed and measured.

    python examples/stdlib_atlas.py [--limit N] [--store FILE | --memory] [--concurrency N] [--fresh] [--stay]

For each file there are three jobs: one reads and hashes it, in a thread; one, which depends on the first,
parses and measures it, in a process; and one enters it into a catalogue that bears only so many calls a
second. A last job depends on all of these and sums up. Two more files are there on purpose. One is broken:
its job is tried three times and fails. The other makes the process that parses it crash, which costs that job
and no other. Both harm nobody; the summary runs all the same, and names them.

All jobs are submitted in one atomic write, each under a key of its own. So the program may be killed at any
moment: started again, it submits the same jobs, is handed those that are there, and goes on where it was.

Two things recur, each on a schedule of its task: the line that shows the progress, every half second, and a
fresh survey every night. The report says when the next ones are; with `--stay` the program waits for them.

Which files: everything below `sysconfig.get_path("stdlib")` that ends in `.py`, in the order of the names,
outside the folders in `SKIPPED`. What was installed later is not the standard library; and the suites that
test it hold files which are broken on purpose, and do not come with every Python.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import hashlib
import logging
import os
import sys
import sysconfig
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from betimes import (
    BetimesError,
    BoundJob,
    JobError,
    JobHandle,
    JobInfo,
    Metrics,
    Priority,
    Rate,
    RetryPolicy,
    Scheduler,
    cron,
    every,
)

SKIPPED = {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test"}
BROKEN_NAME = "atlas-broken.py"
BROKEN_TEXT = "def never_closed(:\n    return 1\n"
CRASHING_NAME = "atlas-crashing.py"
CRASHING_TEXT = "# whoever parses this crashes\n"
CALLS_A_SECOND, CALLS_AT_ONCE = 200, 20  # what the catalogue bears
TOTALS = ("files", "bytes", "lines", "functions", "classes", "depth")
NIGHTLY = cron(
    "30 2 * * *", tz="Europe/Berlin"
)  # 02:30 is skipped in one night of a year, and comes twice in one
KEEP = "30d"  # how long the store remembers finished jobs, and the keys they were submitted under

BLOCKS = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.AsyncFor, ast.While,
    ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match,
)  # fmt: skip


# --- what jobs return: small values that are stored as JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What reading a file gives."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What parsing a file gives; `depth` counts blocks within blocks."""

    lines: int
    functions: int
    classes: int
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A file that could not be measured."""

    name: str
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The whole survey; `digest` is the SHA-256 of all files' hashes, and `longest` holds (lines, name)."""

    files: int
    bytes: int
    lines: int
    functions: int
    classes: int
    depth: int
    digest: str
    longest: list[tuple[int, str]]
    failures: list[Failure]


# --- the work: plain functions, which Betimes calls in threads and in processes


def read_file(path: str) -> Contents:
    """Read a file and hash it."""
    data = Path(path).read_bytes()
    return Contents(size=len(data), sha256=hashlib.sha256(data).hexdigest())


def measure_file(path: str) -> Shape:
    """Parse a file and measure its syntax tree."""
    data = Path(path).read_bytes()
    if data.startswith(CRASHING_TEXT.encode()):
        os.abort()  # as a fault in a library written in C would
    functions = classes = depth = 0
    tree = ast.parse(data, filename=path)
    nodes: list[tuple[ast.AST, int]] = [(tree, 0)]
    while nodes:
        node, level = nodes.pop()
        functions += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        classes += isinstance(node, ast.ClassDef)
        level += isinstance(node, BLOCKS)
        depth = max(depth, level)
        nodes += [(child, level - is_elif(node, child)) for child in ast.iter_child_nodes(node)]
    return Shape(lines=len(data.splitlines()), functions=functions, classes=classes, depth=depth)


def is_elif(parent: ast.AST, child: ast.AST) -> bool:
    """Say whether a statement is the `elif` of another: in the tree it stands within, in the text beside."""
    return (
        isinstance(parent, ast.If)
        and isinstance(child, ast.If)
        and [child] == parent.orelse
        and child.col_offset == parent.col_offset
    )


class Catalogue:
    """Stands for a service elsewhere that bears only so many calls: it turns away what is too much."""

    def __init__(self) -> None:
        self.calls: deque[float] = deque()
        self.busiest = 0

    async def enter(self, name: str, sha256: str) -> None:
        """Take one entry."""
        now = asyncio.get_running_loop().time()
        self.calls.append(now)
        while self.calls[0] < now - 1:
            self.calls.popleft()
        self.busiest = max(self.busiest, len(self.calls))
        if len(self.calls) > CALLS_A_SECOND + CALLS_AT_ONCE:
            raise ConnectionError(f"the catalogue is busy: {name} ({sha256:.8}) was not entered")


# --- the jobs


class Atlas:
    """The scheduler, its tasks, and how their jobs hang together."""

    def __init__(self, store: str, concurrency: int, files: dict[str, Path]) -> None:
        self.files = files
        self.edition = edition_of(files)
        self.progress = Progress(total=3 * len(files) + 1)
        self.catalogue = Catalogue()
        self.scheduler = Scheduler(store, concurrency=concurrency, keep=KEEP)
        patient = RetryPolicy(3, base_delay="100ms")
        task = self.scheduler.task
        self.read = task(name="atlas.read", retry=patient, timeout="1m")(read_file)
        # What was begun is finished before more is begun: measuring goes before reading.
        more_urgent = task(
            name="atlas.measure", executor="process", retry=patient, timeout="1m", priority=Priority.HIGH
        )
        self.measure = more_urgent(measure_file)
        gently = Rate(f"{CALLS_A_SECOND}/s", burst=CALLS_AT_ONCE)
        self.upload = task(name="atlas.upload", rate=gently, retry=patient, priority=Priority.HIGH)(
            self.enter
        )
        self.summary = task(name="atlas.summary", priority=Priority.CRITICAL)(self.summarise)
        # What was missed while nobody looked is of no use to anybody; a survey that was missed is made once.
        looking = task(
            name="atlas.progress",
            schedule=every("500ms"),
            missed="skip",
            priority=Priority.CRITICAL,
            keep="1m",
        )
        looking(self.show_progress)
        self.nightly = task(name="atlas.nightly", schedule=NIGHTLY, missed="skip")(self.begin_anew)

    async def show_progress(self) -> None:
        """Show how far the work is; every half second."""
        self.progress.show(await self.scheduler.metrics())

    async def enter(self, survey: str, name: str) -> None:
        """Enter a file that was read into the catalogue."""
        read = await self.scheduler.job(f"{survey}/read/{name}")
        contents: Contents = await read.result()
        await self.catalogue.enter(name, contents.sha256)

    async def begin_anew(self) -> str:
        """Begin a fresh survey of the same files; every night."""
        survey = await self.survey(fresh=True)
        await self.submit(survey)
        return survey

    async def survey(self, *, fresh: bool) -> str:
        """Name the survey to work on: the newest one of this edition, or the next."""
        edition = self.edition
        newest = await self.scheduler.jobs(task=self.summary.name, tag=edition, limit=1)
        number = int(newest[0].id.removeprefix(f"{edition}-").removesuffix("/summary")) if newest else 0
        return f"{edition}-{number + 1 if fresh or not newest else number}"

    async def submit(self, survey: str) -> JobHandle[Summary]:
        """Submit what is not there yet of a survey, in one atomic write; return the summary's handle."""
        jobs: list[BoundJob[Any]] = []
        tags = [self.edition]
        for name, path in self.files.items():
            read, measure, upload = (f"{survey}/{what}/{name}" for what in ("read", "measure", "upload"))
            reading = self.read.using(job_id=read, key=read, key_for=KEEP, tags=tags)
            measuring = self.measure.using(
                job_id=measure, key=measure, key_for=KEEP, tags=tags, depends_on=read
            )
            uploading = self.upload.using(job_id=upload, key=upload, key_for=KEEP, tags=tags, depends_on=read)
            jobs += [reading.bind(str(path)), measuring.bind(str(path)), uploading.bind(survey, name)]
        last = f"{survey}/summary"
        summing = self.summary.using(
            job_id=last,
            key=last,
            key_for=KEEP,
            tags=tags,
            depends_on=[f"{survey}/{what}/{name}" for what in ("measure", "upload") for name in self.files],
            on_dependency_failure="run",
        )
        handles = await self.scheduler.submit_many([*jobs, summing.bind(survey, list(self.files))])
        return handles[-1]

    async def summarise(self, survey: str, names: list[str]) -> Summary:
        """Sum up the results of the jobs before; they have all ended."""
        found: dict[str, tuple[Contents, Shape]] = {}
        failures: list[Failure] = []
        for name in names:
            read = await self.scheduler.job(f"{survey}/read/{name}")
            measure = await self.scheduler.job(f"{survey}/measure/{name}")
            try:
                found[name] = await read.result(), await measure.result()
            except JobError as error:
                failures.append(await self.failure(name, error))
        contents = [each for each, _ in found.values()]
        shapes = [each for _, each in found.values()]
        hashes = "".join(each.sha256 for each in contents)
        return Summary(
            files=len(found),
            bytes=sum(each.size for each in contents),
            lines=sum(each.lines for each in shapes),
            functions=sum(each.functions for each in shapes),
            classes=sum(each.classes for each in shapes),
            depth=max((each.depth for each in shapes), default=0),
            digest=hashlib.sha256(hashes.encode()).hexdigest(),
            longest=sorted(((shape.lines, name) for name, (_, shape) in found.items()), reverse=True)[:5],
            failures=failures,
        )

    async def failure(self, name: str, error: JobError) -> Failure:
        """Describe how a file's job ended."""
        job = await self.scheduler.job(error.job_id)
        info = await job.info()
        reason = info.error or info.reason or info.status.value
        return Failure(name=name, attempts=len(info.attempts), reason=str(reason))


# --- the files


def library_files(limit: int | None) -> dict[str, Path]:
    """Find the standard library's files, in the order of their names (paths below the library's folder)."""
    root = Path(sysconfig.get_path("stdlib"))
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*.py") if path.is_file()}
    wanted = [name for name in sorted(found) if SKIPPED.isdisjoint(name.split("/"))]
    return {name: found[name] for name in wanted[:limit]}


def edition_of(files: dict[str, Path]) -> str:
    """Name what is surveyed: this interpreter, and these files."""
    return hashlib.sha256("\n".join([sys.version, *map(str, files.values())]).encode()).hexdigest()[:12]


@contextmanager
def bad_files(folder: Path) -> Iterator[dict[str, Path]]:
    """Keep the two bad files; in the same place each time, for their jobs hold the path."""
    texts = {BROKEN_NAME: BROKEN_TEXT, CRASHING_NAME: CRASHING_TEXT}
    paths = {name: folder / name for name in texts}
    for name, path in paths.items():
        path.write_text(texts[name])
    try:
        yield paths
    finally:
        for path in paths.values():
            path.unlink(missing_ok=True)


# --- what is shown


class Progress:
    """One line that is written over on a terminal; elsewhere a line for each tenth of the work."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.shown = -1
        self.has_ended = False
        self.is_terminal = sys.stdout.isatty()

    def show(self, metrics: Metrics) -> None:
        """Show how many jobs have ended, but for the one that looks."""
        live = metrics.ready + metrics.delayed + metrics.blocked + metrics.running - 1
        if self.has_ended:
            return
        done = min(max(self.total - live, 0), self.total)
        running = max(metrics.in_flight - 1, 0)
        line = f"{done:,} of {self.total:,} jobs done, {running} running, {metrics.retries} retries"
        if self.is_terminal:
            print(f"\r\x1b[K{line}", end="", flush=True)
        elif done * 10 // self.total > self.shown:
            self.shown = done * 10 // self.total
            print(line, flush=True)

    def end(self) -> None:
        """Leave the line."""
        self.has_ended = True
        if self.is_terminal:
            print("\r\x1b[K", end="")


def report(summary: Summary, info: JobInfo, metrics: Metrics) -> str:
    """Write the report of a finished survey."""
    lines = [f"Standard library of Python {sys.version.split()[0]}", ""]
    lines += [f"  {name:<10} {getattr(summary, name):>12,}" for name in TOTALS]
    lines += [f"  digest     {summary.digest}", "", "Longest files", ""]
    lines += [f"  {length:>7,}  {name}" for length, name in summary.longest]
    lines += ["", f"Failed: {len(summary.failures)}", ""]
    lines += [f"  {each.name}, after {each.attempts} attempts: {each.reason}" for each in summary.failures]
    if info.finished_at is not None:
        took = (info.finished_at - info.submitted_at).total_seconds()
        lines += ["", f"From the submit to the summary: {took:.1f} s"]
    return "\n".join([*lines, "", *scheduler_lines(metrics)])


def scheduler_lines(metrics: Metrics) -> list[str]:
    """Write what the scheduler counted in this run."""
    if metrics.attempts <= metrics.fires:
        return ["Scheduler: nothing was left to run."]
    lag, run = metrics.schedule_lag, metrics.run_time
    return [
        "Scheduler, in this run",
        "",
        f"  attempts   {metrics.attempts:>12,}   of them to be repeated: {metrics.retries:,}",
        f"  rescued    {metrics.rescued:>12,}   jobs, from a process that was killed",
        f"  in flight  {metrics.peak_running:>12,}   at most, of {metrics.workers:,} workers",
        f"  lag        {lag.p50:>10.3f} s   median; 99 %: {lag.p99:.3f} s",
        f"  run time   {run.p50:>10.3f} s   median; 99 %: {run.p99:.3f} s",
    ]


async def make_atlas(atlas: Atlas, *, fresh: bool, stay: bool) -> None:
    """Run the survey to its end, from wherever it stands, and print the report."""
    scheduler = atlas.scheduler
    async with scheduler:
        last = await atlas.submit(await atlas.survey(fresh=fresh))
        if (await last.status()).is_terminal:
            print("This survey is finished; its report again (--fresh makes a new one):\n")
        await last.wait()
        atlas.progress.end()
        print(report(await last.result(), await last.info(), await scheduler.metrics()))
        most = CALLS_A_SECOND + CALLS_AT_ONCE
        print(f"\nCatalogue: at most {atlas.catalogue.busiest} calls in one second, of the {most} it bears")
        print(f"\nEvery night\n\n{await scheduler.explain_schedule(atlas.nightly.name)}", flush=True)
        if stay:
            await asyncio.Event().wait()


def at_least_one(text: str) -> int:
    """Read a number that counts something."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="atlas", description="Survey the standard library of this Python.")
    parser.add_argument("--limit", type=at_least_one, metavar="N", help="only the first N files")
    parser.add_argument("--store", default="atlas.db", metavar="FILE", help="the SQLite file (%(default)s)")
    parser.add_argument("--memory", action="store_true", help="keep nothing: run in memory")
    parser.add_argument(
        "--concurrency", type=at_least_one, default=8, metavar="N", help="jobs at once (%(default)s)"
    )
    parser.add_argument("--fresh", action="store_true", help="begin anew, though a survey is there")
    parser.add_argument("--stay", action="store_true", help="stay, and survey again every night")
    return parser.parse_args()


def main() -> int:
    """Make the atlas."""
    logging.basicConfig(format="%(levelname)s: %(message)s")
    options = arguments()
    files = library_files(options.limit)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if options.memory else Path(options.store).resolve().parent
        with bad_files(folder) as bad:
            files |= bad
            store = "memory:" if options.memory else options.store
            atlas = Atlas(store, options.concurrency, files)
            try:
                asyncio.run(make_atlas(atlas, fresh=options.fresh, stay=options.stay))
            except KeyboardInterrupt:
                print("\nStopped. Started again, it goes on where it was.")
                return 130
            except BetimesError as error:
                print(f"atlas: {error}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
