"""How the gates stand, for operators and `explain`: who holds permits, and who waits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import merge
from itertools import islice

from betimes.core.job import Job, Micros
from betimes.core.limits import GateTerms, GateView, rule_of
from betimes.stores.memory.gates import Door, Gates
from betimes.stores.memory.line import Line
from betimes.stores.memory.lines import Lines
from betimes.stores.memory.permits import Permits


def show(
    keys: Sequence[str], gates: Gates, lines: Lines, permits: Permits, *, most: int, now: Micros
) -> list[GateView]:
    """Show gates by key, with the first holders and waiters; those whose rule is not known are left out."""
    stopped = _stopped(lines, now)
    views = []
    for key in keys:
        rule, door = gates.rules.get(rule_of(key)), gates.get(key)
        if rule is None:
            continue
        if door is None:
            views.append(GateView(key=key, terms=rule.terms, is_changed=rule.changed is not None))
            continue
        waiting = stopped.get(door, [])
        holders = [(job.id, job.seq, worker) for worker, job, _ in permits.of(door)]
        views.append(
            _view(
                door,
                is_changed=rule.changed is not None,
                holders=tuple(holders[:most]),
                waiting=sum(line.size for line in waiting),
                waiters=tuple((job.id, job.seq) for job in islice(_in_order(waiting), most)),
            )
        )
    return views


def show_used(rule: str | None, gates: Gates, lines: Lines, *, limit: int, now: Micros) -> list[GateView]:
    """Show the gates of a rule, or of all, that are in use, by key; a rule without such shows as one."""
    stopped = _stopped(lines, now)
    used = {door for line in lines.all() if line.head is not None for door in line.doors}
    used.update(door for door in gates.all() if not door.is_at_rest(now))
    views = []
    unused = set(gates.rules) if rule is None else {rule} & set(gates.rules)
    for door in used:
        name = rule_of(door.key)
        if rule is None or name == rule:
            unused.discard(name)
            is_changed = gates.rules[name].changed is not None
            waiting = sum(line.size for line in stopped.get(door, ()))
            views.append(_view(door, is_changed=is_changed, waiting=waiting))
    for name in unused:
        known = gates.rules[name]
        views.append(GateView(key=name, terms=known.terms, is_changed=known.changed is not None))
    return sorted(views, key=lambda view: view.key)[:limit]


def _view(
    door: Door,
    *,
    is_changed: bool,
    holders: tuple[tuple[str, int, str], ...] = (),
    waiting: int = 0,
    waiters: tuple[tuple[str, int], ...] = (),
) -> GateView:
    terms: GateTerms = door.terms
    return GateView(
        key=door.key,
        terms=terms,
        is_changed=is_changed,
        held=door.held,
        full_at=door.full_at,
        tripped_at=door.tripped_at,
        holders=holders,
        waiting=waiting,
        waiters=waiters,
    )


def _stopped(lines: Lines, now: Micros) -> dict[Door, list[Line]]:
    """Find the lines that stand at each gate; a ready one too, if it would find the gate closed."""
    stopped: dict[Door, list[Line]] = {}
    for line in lines.all():
        if line.head is not None:
            door = lines.stands_at(line, now)
            if door is not None:
                stopped.setdefault(door, []).append(line)
    return stopped


def _in_order(lines: Iterable[Line]) -> Iterable[Job]:
    return merge(*(line.jobs() for line in lines), key=lambda job: (job.sort_key, job.seq))
