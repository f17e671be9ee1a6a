"""What a checkup says of the scheduler of this process, from what it has counted since it was started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from betimes.core.facts import Facts
from betimes.core.finding import Finding, FindingCode, Severity
from betimes.core.wording import listed

STALLED_S = 10.0
"""A worker that the store has kept waiting for so long does not work."""


def turns(facts: Facts) -> Iterator[Finding]:
    """See that the worker of this process has turns with the store."""
    process = facts.process
    if process is not None and process.stalled_s > STALLED_S:
        yield Finding(
            code=FindingCode.NOT_WORKING,
            severity=Severity.ERROR,
            text=f"The worker of this process has tried for {process.stalled_s:.0f} s to report to the store "
            "and to claim, in vain.",
            remedy="See its log: the store may be locked, full or unreachable.",
        )


def slots(facts: Facts) -> Iterator[Finding]:
    """Name what holds slots of this process without working."""
    process = facts.process
    if process is None:
        return
    if process.stuck:
        yield Finding(
            code=FindingCode.SLOTS_STUCK,
            severity=Severity.ERROR if len(process.stuck) >= process.slots else Severity.WARNING,
            text=f"{len(process.stuck)} of {process.slots} slots here are held by code whose outcome is "
            f"recorded: {listed(process.stuck)}.",
            remedy="A thread's function should look at ctx.cancelled; executor='process' can be killed. What "
            "never returns ends with this process only.",
        )
    if process.deadlocked:
        yield Finding(
            code=FindingCode.SLOTS_DEADLOCKED,
            severity=Severity.ERROR,
            text=f"{process.deadlocked} jobs hold slots here and wait for jobs that cannot start.",
            remedy="Cancel one of them; have jobs wait through depends_on, which holds no slot.",
        )


def counted(facts: Facts) -> Iterator[Finding]:
    """Say what has gone wrong here since the start."""
    process = facts.process
    if process is None:
        return
    if process.store_errors:
        yield Finding(
            code=FindingCode.STORE_ERRORS,
            severity=Severity.NOTE,
            text=f"{process.store_errors} call(s) of the store have failed here since the start.",
            remedy="They were made again; the log says why each failed.",
        )
    if process.leases_lost:
        yield Finding(
            code=FindingCode.LEASES_LOST,
            severity=Severity.WARNING,
            text=f"{process.leases_lost} job(s) of this process were given to others, since its lease was "
            "over before it was renewed.",
            remedy="Was the process stopped, or the machine asleep? If not, a longer lease= helps.",
        )
    if process.loop_stalls:
        yield Finding(
            code=FindingCode.LOOP_STALLS,
            severity=Severity.WARNING,
            text=f"The event loop was blocked {process.loop_stalls} time(s) here, for "
            f"{process.longest_stall_s:.1f} s at most.",
            remedy="The log names the code: give it executor='thread' or 'process'.",
        )


HERE_CHECKS: tuple[Callable[[Facts], Iterable[Finding]], ...] = (turns, slots, counted)
