"""What must hold of each claim: who may, what may be taken, how much, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tests.simulation.gated_claims import check_gated
from tests.simulation.lives import Life
from tests.simulation.tally import Met

from betimes.core.job import Job, JobStatus
from betimes.ports import ClaimRequest, Exchange

if TYPE_CHECKING:
    from tests.simulation.witness import Witness

READY, RUNNING = JobStatus.READY, JobStatus.RUNNING


def check_claim(witness: Witness, request: ClaimRequest | None, exchange: Exchange) -> None:
    """Follow the claims of one turn, and object to any that must not be."""
    claimed = exchange.claimed
    fail = witness.model.fail
    if request is None:
        if claimed:
            fail(f"{claimed} were claimed, and nobody had asked")
        return
    if len(claimed) > request.limit:
        fail(f"{len(claimed)} were claimed, and {request.limit} asked for")
    ranks = [witness.model.lives[job.seq].rank for job in claimed]
    if ranks != sorted(ranks):
        fail(f"the claimed are out of order: {ranks}")
    if claimed and not witness.model.leases.holds(request.worker, witness.boottime()):
        fail(f"{request.worker} has claimed, and its lease is over")
    if witness.are_restrained:
        for job in claimed:
            _check_one(witness, request, job)
        holds = witness.model.leases.holds(request.worker, witness.boottime())
        check_gated(witness, request, claimed, _waiting(witness, request) if holds else [])
        for job in claimed:
            _take(witness, request, job)
    else:
        for job in claimed:
            _check_one(witness, request, job)
            _take(witness, request, job)
        _check_left(witness, request, claimed)
    _check_concurrency(witness, request)


def _check_one(witness: Witness, request: ClaimRequest, job: Job) -> None:
    model = witness.model
    life = model.lives[job.seq]
    now = model.now()
    others = [
        other for other in model.lives.versions(job.id) if other is not life and other.status is RUNNING
    ]
    rules = {
        "it was not ready": life.status is not READY,
        "it was parked": life.parked is not None,
        f"its time comes in {life.earliest - now} µs": life.earliest > now,
        f"it waits for {sorted(life.unmet)}": bool(life.unmet),
        "its queue is paused": life.spec.queue in witness.paused,
        "its queue is not served": request.queues is not None and life.spec.queue not in request.queues,
        "its lane was not asked for": life.spec.lane not in request.lanes,
        "it was to be held back": job.id in request.hold,
        "it has expired": is_expired(life, now),
        f"another version runs: {others}": bool(others),
        f"its fence went from {life.fence} to {job.fence}": job.fence <= life.fence,
        "it is not its worker's": (job.status, job.worker) != (RUNNING, request.worker),
        f"it is its attempt {job.attempt} after {life.used} of {life.max_attempts}": (
            job.attempt != life.used + 1 or job.attempt > life.max_attempts
        ),
    }
    for rule, is_broken in rules.items():
        if is_broken:
            model.fail(f"{life} was claimed, but {rule}")


def _take(witness: Witness, request: ClaimRequest, job: Job) -> None:
    model = witness.model
    life = model.lives[job.seq]
    model.made[life.seq, READY, RUNNING] += 1
    life.status, life.worker, life.fence = RUNNING, request.worker, job.fence
    life.is_claimed = True
    witness.claims[job.seq, job.fence] = request.worker
    witness.started_at[job.seq, job.fence] = witness.elapsed_s()
    session = witness.session_of.get(request.worker, "")
    witness.outcomes.sessions[job.seq, job.fence] = session
    if witness.outcomes.budgets is not None:
        witness.outcomes.budgets.started(life.spec.task, session, model.now())


def is_expired(life: Life, now: int) -> bool:
    """Say whether a version can never start any more."""
    return life.expires_at is not None and not life.is_claimed and life.expires_at <= now


def _check_concurrency(witness: Witness, request: ClaimRequest) -> None:
    lease = witness.model.leases.get(request.worker)
    held = len(witness.model.running(request.worker))
    if lease is not None and held > lease.info.concurrency:
        witness.model.fail(f"{request.worker} holds {held} jobs, its concurrency is {lease.info.concurrency}")


def _check_left(witness: Witness, request: ClaimRequest, claimed: list[Job]) -> None:
    """What was left must rank behind what was taken, and must not be left while there is room for it."""
    model = witness.model
    if not model.leases.holds(request.worker, witness.boottime()):
        return
    left = _waiting(witness, request)
    model.tally[Met.CHOSEN] += bool(left and claimed)
    taken: dict[str, list[tuple[int, int]]] = {}
    for job in claimed:
        taken.setdefault(job.spec.lane, []).append(model.lives[job.seq].rank)
    for lane, free in request.lanes.items():
        of_lane = taken.get(lane, [])
        behind = [life for life in left if life.spec.lane == lane]
        if len(of_lane) > free:
            model.fail(f"{len(of_lane)} were claimed in lane {lane}, and {free} asked for")
        if not behind:
            continue
        first = min(behind, key=lambda life: life.rank)
        if of_lane and first.rank < max(of_lane):
            model.fail(f"{first} was passed over for {max(of_lane)} in lane {lane}")
        if len(claimed) < request.limit and len(of_lane) < free:
            model.fail(f"{first} was left, and there was room: {_room(request.lanes)}")


def _waiting(witness: Witness, request: ClaimRequest) -> list[Life]:
    """Return the READY jobs that a claim could mean, whatever the lanes."""
    model = witness.model
    ready = [life for life in model.lives if life.status is READY and life.parked is None]
    served = [life for life in ready if request.queues is None or life.spec.queue in request.queues]
    model.tally[Met.PAUSED_QUEUE] += any(life.spec.queue in witness.paused for life in served)
    model.tally[Met.HELD_BACK] += any(life.id in request.hold for life in served)
    left = [life for life in served if life.spec.queue not in witness.paused and life.id not in request.hold]
    return sorted(left, key=lambda life: life.rank) if witness.are_restrained else left


def _room(lanes: Mapping[str, int]) -> str:
    return ", ".join(f"{lane} {free}" for lane, free in lanes.items())
