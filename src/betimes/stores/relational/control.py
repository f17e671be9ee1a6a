"""What people do to jobs and queues: cancel, retry, pause, unpark, prune."""

from __future__ import annotations

from collections.abc import Sequence

from betimes.core.events import CancelRequested, Retried, Unparked
from betimes.core.job import JobEvent, JobStatus
from betimes.errors import DuplicateJob, UnknownJob
from betimes.ports import CancelAnswer, Cancellation, Hint
from betimes.stores.relational.firing import note_retry
from betimes.stores.relational.rows import array
from betimes.stores.relational.statements import Records, statement
from betimes.stores.relational.turn import STEP_LIMIT, Turn

RUNNING = JobStatus.RUNNING

LIVE_BY_ID = Records("live_by_id")
REOPEN_JOB = statement("reopen_job")
DELETE_FINISHED = statement("delete_finished")
PARKED_UNDER = Records("parked_under")
PAUSE_QUEUE = statement("pause_queue")
RESUME_QUEUE = statement("resume_queue")
FORGETTABLE = statement("forgettable")
FORGET_KEYS_OF = statement("forget_keys_of")
FORGET_KEYS = statement("forget_keys")
FORGET_FIRES = statement("forget_fires")
FORGET_LOGS = statement("forget_logs")
FORGET_GATES = statement("forget_gates")
COUNT_PRUNED = statement("count_pruned")

FIRES_KEPT_US = 86_400_000_000
"""How long fires are kept at least: a clock that is set back by less fires no instant twice."""


def cancel(turn: Turn, seq: int, *, reason: str, abandon: bool) -> Cancellation:
    """End a job that has not started; ask a running one to stop, or abandon it."""
    job = turn.load((seq,)).get(seq)
    if job is None:
        job = turn.ended((seq,)).get(seq)
        answer = CancelAnswer.UNKNOWN if job is None else CancelAnswer.FINISHED
        return Cancellation(answer=answer, job=job)
    step = turn.move(job, CancelRequested(turn.now, reason, abandon), is_left_running=abandon)
    turn.flush()
    if step.after is not RUNNING:
        return Cancellation(answer=CancelAnswer.CANCELLED, job=job, changes=turn.changes)
    turn.hints.add(Hint.CANCEL)
    return Cancellation(answer=CancelAnswer.REQUESTED, job=job)


def retry(turn: Turn, job_id: str, seq: int, *, by: str) -> Sequence[JobEvent]:
    """Take a finished job back to READY; no other version of its id may be live."""
    turn.sql.lock_names({f"id {job_id}"})
    job = turn.version(seq)
    if job is None:
        raise UnknownJob(f"job {job_id!r} has been pruned: submit it again", job_id=job_id)
    for other in turn.read(LIVE_BY_ID, (job.id,)):
        if other is not job:
            raise DuplicateJob(f"another version of job {job.id!r} is {other.status.name}", job_id=job.id)
    turn.move(job, Retried(turn.now, by))
    turn.sql.execute(REOPEN_JOB, (seq,))
    turn.sql.execute(DELETE_FINISHED, (array((seq,)),))
    turn.flush()
    note_retry(turn, job)
    return turn.changes


def unpark(turn: Turn, name: str) -> Sequence[JobEvent]:
    """Make jobs parked under this name claimable, a bounded number."""
    for job in turn.read(PARKED_UNDER, (name, STEP_LIMIT)):
        turn.move(job, Unparked(turn.now))
        turn.hints.add(Hint.WORK)
    turn.flush()
    return turn.changes


def pause_queue(turn: Turn, name: str, by: str | None) -> None:
    """Let nothing of this queue be claimed."""
    turn.sql.execute(PAUSE_QUEUE, (name, turn.now, by))


def resume_queue(turn: Turn, name: str) -> None:
    """Undo `pause_queue`."""
    turn.sql.execute(RESUME_QUEUE, (name,))
    turn.hints.add(Hint.WORK)


def prune(turn: Turn, *, keep_us: int, limit: int) -> int:
    """Forget what ended longer ago than it is to be kept, with keys and logs; and what is over of itself."""
    sql = turn.sql
    before = turn.now - keep_us
    seqs = [seq for (seq,) in sql.execute(FORGETTABLE, (turn.now, before, limit)).fetchall()]
    if seqs:
        gone = (array(seqs),)
        gone_now = sql.execute(DELETE_FINISHED, gone).rowcount
        sql.execute(FORGET_KEYS_OF, gone)
        sql.execute(FORGET_LOGS, gone)
        sql.execute(COUNT_PRUNED, (gone_now,))
    sql.execute(FORGET_KEYS, (turn.now, limit))
    sql.execute(FORGET_GATES, (turn.now, limit))
    turn.tags.forget(limit)
    return len(seqs)


def forget_fires(turn: Turn, *, keep_us: int, limit: int) -> int:
    """Forget what became of instants long ago; return of how many."""
    before = turn.now - max(keep_us, FIRES_KEPT_US)
    return turn.sql.execute(FORGET_FIRES, (before, limit)).rowcount
