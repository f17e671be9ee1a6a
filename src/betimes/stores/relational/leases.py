"""Workers and their leases: begun, prolonged, given back, and taken from those that are gone.

A lease is over when the boot clock has passed it, when the machine has been started anew since, or when
the worker's process is gone. A lease that is over, but that nobody has acted on, can still be prolonged:
nothing has been taken from the worker yet. Whoever rescues declares the worker dead in the same
transaction; from then on its beats change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from betimes.core.events import GivenBack, lost_worker
from betimes.core.job import JobEvent
from betimes.ports import Beat, WorkerInfo
from betimes.stores.relational.reports import refund
from betimes.stores.relational.rows import array, known_row, texts, worker_of, worker_row
from betimes.stores.relational.statements import Records, Row, statement
from betimes.stores.relational.turn import STEP_LIMIT, Turn

REGISTER_WORKER = statement("register_worker")
RENEW_LEASE = statement("renew_lease")
DELETE_WORKER = statement("delete_worker")
WRITE_KNOWN = statement("write_known")
CHANGE_KNOWN = statement("change_known")
DELETE_KNOWN = statement("delete_known")
DECLARE_DEAD = statement("declare_dead")
END_LEASE = statement("end_lease")
WORKERS = statement("workers")
HELD_BY = Records("held_by")
HOLDINGS = statement("holdings")
HOLDS_ANY = statement("holds_any")
LOST_JOBS = Records("lost_jobs")
RETURN_PERMITS_OF = statement("return_permits_of")
GATES_HELD_BY = statement("gates_held_by")


def register(turn: Turn, worker: WorkerInfo) -> None:
    """Begin a worker's lease."""
    row = worker_row(worker, lease_until=turn.boottime + worker.lease_us, lease_boot_id=turn.boot_id)
    turn.sql.execute(REGISTER_WORKER, row)
    turn.sql.execute(WRITE_KNOWN, known_row(worker))


def make_known(turn: Turn, worker: str, tasks: tuple[str, ...] | None) -> None:
    """Remember which tasks a registered worker knows."""
    turn.sql.execute(CHANGE_KNOWN, (worker, texts(tasks)))


def renew(turn: Turn, worker: str) -> bool:
    """Prolong a worker's lease for its full term; False, and no change, if it has been ended."""
    return turn.sql.execute(RENEW_LEASE, (worker, turn.boottime, turn.boot_id)).rowcount > 0


def beat(turn: Turn, worker: str, held: Mapping[int, int], running: Mapping[int, int]) -> Beat:
    """Prolong a lease and compare what its worker thinks it holds."""
    if not renew(turn, worker):
        return Beat(is_alive=False)
    rows = {seq: (fence, asked) for seq, fence, asked in turn.sql.execute(HOLDINGS, (worker,)).fetchall()}
    unknown = [seq for seq, (fence, _) in rows.items() if held.get(seq) != fence]
    jobs = turn.load(unknown, if_free=True)  # what is locked comes with the next beat
    for seq in unknown:
        fence, _ = rows.pop(seq)
        job = jobs.get(seq)
        if job is None or job.fence != fence or job.worker != worker:
            continue  # somebody has ended it since
        is_left_running = running.get(seq) == fence
        turn.move(job, GivenBack(turn.now), is_left_running=is_left_running)
        if job.gates and not is_left_running:
            refund(turn, job)
    turn.flush()
    _return_permits(turn, worker, [*held.items(), *running.items()])
    return Beat(
        is_alive=True,
        cancels=[seq for seq, (_, asked) in rows.items() if asked],
        lost=[seq for seq in held if seq not in rows],
        changes=turn.changes,
    )


def retire(turn: Turn, worker: str) -> Sequence[JobEvent]:
    """End a worker's lease and give back what it holds."""
    turn.sql.execute(END_LEASE, (worker,))  # first of all: a claim of it may still be under way
    for job in turn.read(HELD_BY, (worker,)):
        turn.move(job, GivenBack(turn.now))
    turn.flush()
    _return_permits(turn, worker)
    if not turn.sql.execute(HOLDS_ANY, (worker,)).fetchone()[0]:
        _forget(turn, worker)  # otherwise, what another transaction has locked is rescued later
    return turn.changes


def rescue(turn: Turn, tasks: Collection[str], is_gone: Callable[[WorkerInfo], bool]) -> Sequence[JobEvent]:
    """Take back the jobs of these tasks from workers whose lease is over, a bounded number."""
    left = STEP_LIMIT
    for row in turn.sql.execute(WORKERS).fetchall():
        info = worker_of(row)
        has_ended = is_gone(info)
        if lease_holds(row, turn.boottime, turn.boot_id) and not has_ended:
            continue
        worker = info.id
        if not _declare_dead(turn, row):
            continue  # it has beaten meanwhile
        loss = lost_worker(turn.now, worker=worker, pid=info.pid, host=info.host, is_gone=has_ended)
        for job in turn.read(LOST_JOBS, (worker, array(tasks), left)):
            turn.move(job, loss)
            left -= 1
        turn.flush()
        if not turn.sql.execute(HOLDS_ANY, (worker,)).fetchone()[0]:
            _forget(turn, worker)
    return turn.changes


def _forget(turn: Turn, worker: str) -> None:
    turn.sql.execute(DELETE_WORKER, (worker,))
    turn.sql.execute(DELETE_KNOWN, (worker,))


def _declare_dead(turn: Turn, row: Row) -> bool:
    """Declare a worker dead: its beats change nothing any more, and it holds no permits, whatever it runs.

    False, and no change, if its lease is no longer what the row of `workers` says.
    """
    worker, lease_until = row[0], row[9]
    if not turn.sql.execute(DECLARE_DEAD, (worker, lease_until)).rowcount:
        return False
    for (text,) in turn.sql.execute(GATES_HELD_BY, (worker,)).fetchall():
        turn.free_gates(turn.specs.gates(text))
    _return_permits(turn, worker)
    return True


def _return_permits(turn: Turn, worker: str, kept: Sequence[tuple[int, int]] = ()) -> None:
    """Take back what a worker's code holds beyond its jobs, but for attempts (number, fence) that run on."""
    for (text,) in turn.sql.execute(RETURN_PERMITS_OF, (worker, array(kept))).fetchall():
        turn.free_gates(turn.specs.gates(text))
    turn.flush()


def lease_holds(row: Row, boottime: int, boot_id: str) -> bool:
    """Say whether the lease in a row of `workers` is in force."""
    return lease_left(row, boottime, boot_id) > 0


def lease_left(row: Row, boottime: int, boot_id: str) -> int:
    """Return how long the lease in a row of `workers` is in force, in microseconds; 0: it is over."""
    until, lease_boot_id, is_dead = row[9:12]
    is_over = is_dead or lease_boot_id != boot_id
    return 0 if is_over else max(until - boottime, 0)
