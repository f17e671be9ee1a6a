"""Writes `docs/reference/` from the code: `python -m docs.generate`, at the project's root.

A test writes it once more and compares, so the reference cannot fall behind the code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_overloads

from docs.command_line import command_line
from docs.docstrings import (
    code,
    described,
    docstring_of,
    entries_table,
    members,
    settings_table,
    signature_of,
    table,
)
from docs.modules import module_lines

import betimes
from betimes import errors, testing
from betimes.blocking_scheduler import BlockingJob, BlockingScheduler
from betimes.core import events
from betimes.core.due_task import TaskState
from betimes.core.explain import Explanation
from betimes.core.job import TERMINAL, WAITING, JobStatus
from betimes.core.lifecycle import LEGAL
from betimes.core.quantiles import Quantiles
from betimes.core.reason import Reason, ReasonCode
from betimes.core.schedule_reason import ScheduleReasonCode
from betimes.core.triggers import trigger_from_stored
from betimes.registrar import Registrar

FOLDER = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py from the code. Do not edit: run `./run docs`. -->"

STATUS_TEXTS = {
    JobStatus.BLOCKED: "waits for jobs it depends on, or for an older version of its id that still runs",
    JobStatus.DELAYED: "its `run_at` is ahead: it was submitted so, waits for its next attempt, or snoozes",
    JobStatus.READY: "may start; a job that no worker can run waits here too, put aside (parked)",
    JobStatus.RUNNING: "a worker holds it under its lease",
    JobStatus.COMPLETED: "its code returned, and the result is stored",
    JobStatus.FAILED: "its last attempt raised, or its workers died too often",
    JobStatus.TIMED_OUT: "its last attempt passed its timeout",
    JobStatus.CANCELLED: "it was cancelled, replaced, expired, or lost a job it depends on",
}


def page(title: str, *parts: str) -> str:
    """Put a page together."""
    return "\n\n".join([NOTE, f"# {title}", *parts]) + "\n"


# --- states


def states() -> str:
    """Write the states, the diagram and the table of events."""
    rows = [(code(each.name), STATUS_TEXTS[each]) for each in JobStatus]
    return page(
        "States of a job",
        "Drawn from `LEGAL` in [`core/lifecycle.py`](../../src/betimes/core/lifecycle.py), the table by "
        "which every store moves every job. A way that is not here is refused with `IllegalTransition`.",
        "## JobStatus",
        table(("status", "the job"), rows),
        diagram(),
        "## Events",
        "What can happen to a job, in which states it applies, and where it may lead.",
        table(("event", "what happened", "from", "to"), event_rows()),
    )


def diagram() -> str:
    """Draw the states and the ways between them."""
    ways: dict[tuple[str, str], list[str]] = {}
    for event, targets in LEGAL.items():
        for status, afters in targets.items():
            for each in afters:
                ways.setdefault((status.name, each.name), []).append(event.__name__)
    lines = [f"    [*] --> {each.name}" for each in JobStatus if each in WAITING]
    order = [each.name for each in JobStatus]
    for before, after in sorted(ways, key=lambda way: (order.index(way[0]), order.index(way[1]))):
        lines.append(f"    {before} --> {after}: {', '.join(ways[before, after])}")
    lines += [f"    {each.name} --> [*]" for each in JobStatus if each in TERMINAL]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def event_rows() -> list[tuple[str, ...]]:
    """Give each event's row."""
    rows: list[tuple[str, ...]] = []
    for event, targets in LEGAL.items():
        by_target: dict[str, list[str]] = {}
        for status in JobStatus:
            if status in targets:
                to = ", ".join(each.name for each in JobStatus if each in targets[status])
                by_target.setdefault(to, []).append(status.name)
        for to, befores in by_target.items():
            assert getattr(events, event.__name__) is event
            rows.append((code(event.__name__), docstring_of(event).prose, ", ".join(befores), to))
    return rows


# --- settings


def settings() -> str:
    """Write the options of the scheduler, of tasks, of single submits, and the policies."""
    return page(
        "Settings",
        'Durations are seconds, a `timedelta`, or text such as `"1h30m"`. Instants are aware datetimes. '
        "Whatever is unknown or out of range is refused at the call, and the error names the nearest option.",
        "## Scheduler",
        settings_table(betimes.Scheduler.__init__, docstring_of(betimes.Scheduler).entries("Args")),
        "## scheduler.task",
        docstring_of(Registrar.task).prose,
        settings_table(get_overloads(Registrar.task)[-1], docstring_of(Registrar.task).entries("Args")),
        "## task.using",
        docstring_of(betimes.Task.using).prose,
        settings_table(betimes.Task.using, docstring_of(betimes.Task.using).entries("Args")),
        "## Priority",
        "Any whole number from -1000 to 1000, larger first; these have names:",
        table(("name", "number"), [(code(each.name), str(each.value)) for each in betimes.Priority]),
        "## RetryPolicy",
        docstring_of(betimes.RetryPolicy).prose,
        settings_table(betimes.RetryPolicy.__init__, docstring_of(betimes.RetryPolicy).entries("Args")),
        described(betimes.SchedulingStrategy, title="SchedulingStrategy"),
        *[described(each, title=each.__name__) for each in strategies()],
    )


def strategies() -> list[type[betimes.SchedulingStrategy]]:
    """Give the strategies there are."""
    return [
        betimes.PriorityStrategy,
        betimes.AgingPriorityStrategy,
        betimes.EarliestDueStrategy,
        betimes.FairShareStrategy,
    ]


# --- calls


def calls_of(kind: type[Any], receiver: str) -> list[str]:
    """Describe the public methods and properties that a class and its bases define."""
    parts = []
    for name, value in inspect.getmembers_static(kind):
        if name.startswith("_") or not inspect.getdoc(value):
            continue
        if isinstance(value, property):
            parts.append(described(value, title=code(f"{receiver}.{name}"), level=3))
        elif callable(value) or isinstance(value, classmethod):
            fn = getattr(kind, name)
            what = "await " if inspect.iscoroutinefunction(fn) else ""
            title = code(f"{what}{receiver}.{signature_of(fn, name=name)}")
            parts.append(described(fn, title=title, level=3))
    return parts


def the_class(kind: type[Any], receiver: str) -> list[str]:
    """Describe a class and its calls."""
    return [described(kind, title=kind.__name__), *calls_of(kind, receiver)]


def scheduler_calls() -> list[str]:
    """Describe the scheduler's calls; its options have a page of their own."""
    prose = docstring_of(betimes.Scheduler).prose
    calls = [
        part
        for part in calls_of(betimes.Scheduler, "scheduler")
        if not part.startswith("### `scheduler.task(")
    ]
    return ["## Scheduler", f"{prose} Its options and those of tasks: [Settings](settings.md).", *calls]


def without_await(kind: type[Any], receiver: str) -> list[str]:
    """Describe a class whose calls are mostly those of another, without `await`."""
    own, same = [], []
    for part in calls_of(kind, receiver):
        title, prose = part.split("\n\n", 1)
        if prose.startswith("As `"):
            same.append(title.removeprefix("### "))
        else:
            own.append(part)
    return [described(kind, title=kind.__name__), f"The same calls without `await`: {', '.join(same)}.", *own]


def calls() -> str:
    """Write the calls of the scheduler and of what it hands out."""
    return page(
        "Calls",
        "What can be called. Everything named here is imported from `betimes`, unless it says otherwise.",
        *scheduler_calls(),
        described(betimes.Task, title="Task"),
        *[part for part in calls_of(betimes.Task, "task") if not part.startswith("### `task.using(")],
        *the_class(betimes.BoundJob, "bound")[:1],
        *the_class(betimes.JobHandle, "job"),
        described(betimes.JobInfo, title="JobInfo"),
        described(betimes.AttemptInfo, title="AttemptInfo"),
        described(betimes.JobEvent, title="JobEvent"),
        described(betimes.LogLine, title="LogLine"),
        described(betimes.CommandResult, title="CommandResult"),
        described(betimes.Recycle, title="Recycle"),
        described(betimes.CancelAnswer, title="CancelAnswer"),
        entries_table(("answer", "what it means"), members(betimes.CancelAnswer)),
        described(betimes.CancelReason, title="CancelReason"),
        ", ".join(code(each.value) for each in betimes.CancelReason),
        *the_class(betimes.Context, "ctx"),
        described(betimes.current_job, title=code("current_job()")),
        *without_await(BlockingScheduler, "s"),
        *without_await(BlockingJob, "job"),
    )


# --- the rest


def error_page() -> str:
    """Write the errors."""
    kinds = [
        kind
        for kind in vars(errors).values()
        if inspect.isclass(kind)
        and issubclass(kind, errors.BetimesError)
        and kind.__module__ == errors.__name__
    ]
    parts = []
    for kind in kinds:
        bases = ", ".join(code(base.__name__) for base in kind.__bases__)
        parts += [described(kind, title=kind.__name__), f"Bases: {bases}."]
    return page("Errors", "All have one root, so `except BetimesError` catches them all.", *parts)


def metrics() -> str:
    """Write the metrics."""
    doc = docstring_of(betimes.Metrics)
    quantiles = docstring_of(Quantiles)
    return page(
        "Metrics",
        "What `await scheduler.metrics()` shows. " + doc.prose,
        entries_table(("attribute", "what it counts"), doc.entries("Attributes")),
        "## schedule_lag and run_time",
        quantiles.prose,
        entries_table(("attribute", "what it is"), quantiles.entries("Attributes")),
    )


def explain() -> str:
    """Write the reasons that `explain()` gives."""
    rows = [(code(each.name), members(ReasonCode)[each.name]) for each in ReasonCode]
    return page(
        "Reasons of explain()",
        "`await job.explain()` says why a job has not started, what it is doing, or how it ended. It uses "
        "the predicates that the claim itself uses, so the two cannot differ. The list is closed.",
        "## ReasonCode",
        table(("code", "the job"), rows),
        described(Explanation, title="Explanation"),
        described(Reason, title="Reason"),
        "## QueueReasonCode",
        "The kinds of reasons that `await scheduler.explain_queue(name)` gives. The list is closed.",
        entries_table(("code", "the queue"), members(betimes.QueueReasonCode)),
        described(betimes.QueueExplanation, title="QueueExplanation"),
        described(betimes.QueueReason, title="QueueReason"),
        described(betimes.ServingWorker, title="ServingWorker"),
    )


def doctor() -> str:
    """Write what `doctor()` finds."""
    return page(
        "Findings of doctor()",
        "`await scheduler.doctor()` checks up the store, its workers and its work, whether the scheduler is "
        "open or not; nothing is changed. How to read it: [Find out why](../how-to/find-out-why.md).",
        described(betimes.Checkup, title="Checkup"),
        *[
            part
            for name in ("worst", "exit_code", "codes")
            for part in (described(getattr(betimes.Checkup, name), title=code(f"checkup.{name}"), level=3),)
        ],
        described(betimes.Finding, title="Finding"),
        described(betimes.Severity, title="Severity"),
        entries_table(("severity", "what it means"), members(betimes.Severity)),
        "## FindingCode",
        "What a finding is about. The list is closed.",
        entries_table(("code", "what was looked at"), members(betimes.FindingCode)),
    )


def queue() -> str:
    """Write the small scheduler."""
    return page(
        "TaskQueue and ThreadScheduler",
        "The queue alone, and the queue with threads: for code without an event loop, in memory.",
        *the_class(betimes.TaskQueue, "queue"),
        described(betimes.DueTask, title="DueTask"),
        described(betimes.Wait, title="Wait"),
        described(TaskState, title="TaskState"),
        ", ".join(code(each.name) for each in TaskState),
        *the_class(betimes.ThreadScheduler, "s"),
        *the_class(betimes.CancelToken, "token"),
    )


def for_tests() -> str:
    """Write what helps to test code that uses the library."""
    return page(
        "betimes.testing",
        docstring_of(testing).prose,
        "With pytest: the fixture `jobs` is a `Jobs`, the fixture `betimes_scheduler` is yours to override, "
        "and the marker `betimes(start=…, seed=…)` sets where its clock begins. How to use them: "
        "[Test your jobs](../how-to/test-your-jobs.md).",
        *the_class(testing.Jobs, "jobs"),
        described(testing.SubmittedCall, title="SubmittedCall"),
        described(testing.inline_mode, title="inline_mode"),
        described(testing.run_virtual, title=code(signature_of(testing.run_virtual))),
        *the_class(testing.VirtualClock, "clock"),
        described(testing.VirtualLoop, title="VirtualLoop"),
        described(testing.InlineExecutor, title="InlineExecutor"),
        *[
            described(kind, title=kind.__name__)
            for kind in (testing.LoopStuck, testing.Deadlock, testing.Livelock, testing.TimeLimitPassed)
        ],
    )


def triggers() -> str:
    """Write the triggers: what makes them, and what they answer."""
    makers = (betimes.cron, betimes.every, betimes.calendar, betimes.at, trigger_from_stored)
    return page(
        "Triggers",
        "Pure rules that yield instants. What they mean, with examples: [Time](time.md).",
        *[described(maker, title=code(signature_of(maker))) for maker in makers],
        *the_class(betimes.Trigger, "trigger"),
        described(betimes.Trigger.__or__, title="`trigger | other`", level=3),
    )


def schedules() -> str:
    """Write what is shown of schedules, and the reasons that `explain_schedule()` gives."""
    reasons = [(code(each.name), members(ScheduleReasonCode)[each.name]) for each in ScheduleReasonCode]
    policies = (betimes.Overlap, betimes.Missed, betimes.FireOutcome)
    return page(
        "Schedules",
        "What `add_schedule` takes, and what is shown of a schedule. How to use them: "
        "[Schedule work that recurs](../how-to/schedule-work.md).",
        *[
            part
            for kind in policies
            for part in (
                described(kind, title=kind.__name__),
                table(
                    ("value", "what it means"),
                    [(code(each.value), members(kind)[each.name]) for each in kind],
                ),
            )
        ],
        described(betimes.ScheduleInfo, title="ScheduleInfo"),
        described(betimes.FireInfo, title="FireInfo"),
        "## ScheduleReasonCode",
        "The kinds of reasons that `await scheduler.explain_schedule(…)` gives. The list is closed.",
        table(("code", "the schedule, or the instant"), reasons),
        described(betimes.ScheduleExplanation, title="ScheduleExplanation"),
        described(betimes.ScheduleReason, title="ScheduleReason"),
        described(betimes.NextFire, title="NextFire"),
    )


def restraints() -> str:
    """Write what holds work back, and what is shown of it."""
    written = (betimes.Limit, betimes.Rate, betimes.RetryBudget, betimes.CircuitBreaker)
    return page(
        "Limits, rates, budgets, breakers",
        "What tasks are given to be held back, and what is shown of it. How to use them: "
        "[Hold work back](../how-to/limit-work.md).",
        *[described(kind, title=code(signature_of(kind))) for kind in written],
        described(betimes.LimitInfo, title="LimitInfo"),
        described(betimes.LimitHolder, title="LimitHolder"),
        described(betimes.GateKind, title="GateKind"),
        ", ".join(code(each.value) for each in betimes.GateKind),
    )


def cli() -> str:
    """Write the command line."""
    return page("Command line", *command_line())


def time_rules() -> str:
    """Read the rules of time: that page is written by hand, and its examples run in the tests."""
    return (FOLDER / "time.md").read_text(encoding="utf-8")


def modules() -> str:
    """Write the map of the source."""
    return page(
        "Modules",
        "The layers from top to bottom, as the import rules in `pyproject.toml` have them: a module imports "
        "from lower layers only. What they are for: [Architecture](../explanation/architecture.md).",
        "\n".join(module_lines()).rstrip(),
    )


PAGES: dict[str, tuple[str, Callable[[], str]]] = {
    "settings.md": (
        "the options of `Scheduler`, of tasks and of single submits; retries and strategies",
        settings,
    ),
    "calls.md": ("what can be called, on schedulers, tasks, jobs and contexts", calls),
    "time.md": ("the rules of time: cron, zones, changes of the clock, intervals, calendars", time_rules),
    "schedules.md": ("what is shown of schedules, their policies, and why one did not run", schedules),
    "restraints.md": (
        "limits, rates, retry budgets and circuit breakers, and what is shown of them",
        restraints,
    ),
    "triggers.md": ("what makes triggers, and what they answer", triggers),
    "states.md": ("the states of a job, the ways between them, and the events", states),
    "errors.md": ("every error, and what to do about it", error_page),
    "explain.md": ("the reasons that `explain()` and `explain_queue()` give", explain),
    "doctor.md": ("what `doctor()` finds, and how bad it is", doctor),
    "metrics.md": ("what `metrics()` counts", metrics),
    "cli.md": ("every command, its options and variables, and the exit codes", cli),
    "queue.md": ("`TaskQueue` and `ThreadScheduler`, for code without an event loop", queue),
    "modules.md": ("the layers and modules of the source", modules),
    "testing.md": ("the fixture `jobs`, inline mode and virtual time, for tests", for_tests),
}


def index() -> str:
    """Write the list of the pages."""
    lines = [f"- [{name.removesuffix('.md')}]({name}): {text}" for name, (text, _) in PAGES.items()]
    return page("Reference", "Written from the code.", "\n".join(lines))


def reference() -> dict[str, str]:
    """Write all pages: file name → text."""
    return {"index.md": index(), **{name: write() for name, (_, write) in PAGES.items()}}


def main() -> None:
    """Write the files, and remove those that are no longer written."""
    FOLDER.mkdir(exist_ok=True)
    written = reference()
    for path in FOLDER.glob("*.md"):
        if path.name not in written:
            path.unlink()
    for name, text in written.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
