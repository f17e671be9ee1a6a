"""Is all well with a store and its workers? Facts in, findings out: each says what is so, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from betimes.core.checkup_file import FILE_CHECKS
from betimes.core.checkup_here import HERE_CHECKS
from betimes.core.checkup_server import SERVER_CHECKS
from betimes.core.checkup_work import WORK_CHECKS
from betimes.core.durations import from_us
from betimes.core.facts import Facts
from betimes.core.finding import Checkup, Finding, FindingCode, Severity

MIN_CLOCK_US = 1_735_689_600_000_000
"""The start of 2025: a clock that shows less has never been set."""

STEP_US = 60_000_000
"""What is on record for later than now by no more than this may be another process's rounding or slew."""

Check = Callable[[Facts], Iterable[Finding]]


def checkup(facts: Facts) -> Checkup:
    """Say what is well and what is not, the worst first."""
    findings = [finding for check in CHECKS for finding in check(facts)]
    vitals = facts.vitals
    where = f"{vitals.kind} {vitals.place}" if vitals.place else f"the {vitals.kind} store"
    where = vitals.place if vitals.kind == "postgres" else where
    return Checkup(
        at=from_us(facts.now),
        store=where,
        findings=tuple(sorted(findings, key=lambda finding: finding.severity, reverse=True)),
    )


def python(facts: Facts) -> Iterable[Finding]:
    """Name the interpreter."""
    yield Finding(code=FindingCode.PYTHON, severity=Severity.OK, text=f"Python {facts.machine.python}.")


def zone_data(facts: Facts) -> Iterable[Finding]:
    """See that time zones can be read."""
    machine = facts.machine
    if machine.zone_problem:
        yield Finding(
            code=FindingCode.ZONE_DATA,
            severity=Severity.WARNING,
            text=f"There is no data of time zones: {machine.zone_problem}.",
            remedy="Install the system's package tzdata, or `pip install tzdata`; until then a schedule with "
            "another zone than UTC cannot be read here.",
        )
        return
    local = f"; the system's own zone is {machine.local_zone}" if machine.local_zone else ""
    text = f"Time zones are read from {machine.zone_data}{local}."
    yield Finding(code=FindingCode.ZONE_DATA, severity=Severity.OK, text=text)


def clock(facts: Facts) -> Iterable[Finding]:
    """See that the wall clock is not behind what is on record."""
    now, latest = facts.now, facts.vitals.latest
    shown = f"{from_us(now):%Y-%m-%d %H:%M:%S} UTC"
    if now < MIN_CLOCK_US:
        yield Finding(
            code=FindingCode.CLOCK,
            severity=Severity.ERROR,
            text=f"The clock shows {shown}: it has never been set.",
            remedy="Set it, and keep it right (chrony, systemd-timesyncd); nothing becomes due until then.",
        )
    elif latest is not None and latest > now + STEP_US:
        yield Finding(
            code=FindingCode.CLOCK,
            severity=Severity.WARNING,
            text=f"The clock shows {shown}, but something is on record for "
            f"{from_us(latest):%Y-%m-%d %H:%M:%S} UTC: the clock has been set back, or was ahead then.",
            remedy="Keep it right (chrony, systemd-timesyncd). Nothing runs twice; what was to come at an "
            "instant waits until the clock shows it.",
        )
    else:
        yield Finding(code=FindingCode.CLOCK, severity=Severity.OK, text=f"The clock shows {shown}.")


CHECKS: tuple[Check, ...] = (
    *FILE_CHECKS,
    *SERVER_CHECKS,
    python,
    zone_data,
    clock,
    *WORK_CHECKS,
    *HERE_CHECKS,
)
"""What is looked at, in the order in which findings of the same severity are shown."""
