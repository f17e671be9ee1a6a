"""Between rows and records: only here, and for schedules in `schedule_rows`, is the columns' order known.

The views `betimes_live` and `betimes_ended` give live and ended jobs the same columns, so that there is
one way from a row to a `Job`. What few jobs need travels as JSON, and is made only where there is
something to say.

A text that cannot be read (somebody has written to the file, or the disk has) must not keep the other rows
from being read. Its job has the error `UNREADABLE`, which says what the text was, and no worker runs it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from betimes.core.job import (
    UNREADABLE,
    AttemptOutcome,
    ErrorInfo,
    FireKey,
    Job,
    JobSpec,
    JobStatus,
    Micros,
    Tenant,
)
from betimes.ports import WorkerInfo
from betimes.stores.relational.statements import Row

SPECS_KEPT = 1000
"""How many different specs are kept in either direction before the memory is cleared."""

TROUBLES_KEPT = 1000
"""How many texts that cannot be read are remembered before all is forgotten."""

GATES_KEPT = 10_000
"""How many different sets of gates are kept in either direction before the memory is cleared."""

STATUS = {status.value: status for status in JobStatus}
TEXT = {status: status.value for status in JobStatus}
"""Plain text for each status: the driver binds a subclass of `str` by a slower way."""


class _Options(msgspec.Struct, omit_defaults=True):
    """What the column `options` holds: the rarer fields of a `JobSpec`."""

    at_most_once: bool = False
    timeout_s: float | None = None
    retry: dict[str, Any] | None = None
    keep_s: float | None = None
    tags: tuple[str, ...] = ()


class _Rare(msgspec.Struct, omit_defaults=True):
    """What the column `rare` holds: the fields that few jobs ever fill."""

    crashes: int = 0
    superseded: bool = False
    error: ErrorInfo | None = None
    reason: str | None = None
    attempts: tuple[AttemptOutcome, ...] = ()
    depends_on: tuple[str, ...] = ()
    key: str | None = None
    fire: tuple[str, Micros] | None = None
    by_hand: bool = False


_NO_OPTIONS = _Options()
_NOTHING_RARE = _Rare()
_encode = msgspec.json.Encoder().encode
_decode_options = msgspec.json.Decoder(_Options).decode
_decode_rare = msgspec.json.Decoder(_Rare).decode
_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_tenant = msgspec.json.Decoder(Tenant).decode


class Specs:
    """Remembers specs by their columns, and columns by their spec, since jobs share them; gates likewise."""

    __slots__ = ("_columns", "_gates", "_specs", "_texts", "_troubles")

    def __init__(self) -> None:
        """Start empty."""
        self._gates: dict[str, tuple[str, ...]] = {}
        self._texts: dict[tuple[str, ...], str] = {}
        self._specs: dict[tuple[str, str, str, int, str | None], JobSpec] = {}
        self._columns: dict[int, tuple[JobSpec, tuple[str, str, str, int, str | None]]] = {}
        # What is wrong with texts that cannot be read, by the text.
        self._troubles: dict[str, ErrorInfo] = {}

    def spec(self, columns: tuple[str, str, str, int, str | None]) -> JobSpec:
        """Return the spec of (task, queue, lane, priority, options)."""
        spec = self._specs.get(columns)
        if spec is None:
            task, queue, lane, priority, text = columns
            options = self._options(text)
            spec = JobSpec(
                task=task,
                queue=queue,
                lane=lane,
                priority=priority,
                at_most_once=options.at_most_once,
                timeout_s=options.timeout_s,
                retry=options.retry,
                keep_s=options.keep_s,
                tags=options.tags,
            )
            if len(self._specs) >= SPECS_KEPT:
                self._specs.clear()
            self._specs[columns] = spec
            if self._troubles:
                self._columns[id(spec)] = (spec, columns)  # what cannot be read is written as it was
        return spec

    def _options(self, text: str | None) -> _Options:
        if text is None:
            return _NO_OPTIONS
        try:
            return _decode_options(text)
        except msgspec.MsgspecError as error:
            self._troubles[text] = _trouble("options", text, error)
            return _NO_OPTIONS

    def trouble(self, *texts: str | None) -> ErrorInfo | None:
        """Return what is wrong with the first of these texts that could not be read, if any."""
        if not self._troubles:
            return None
        found = (self._troubles.get(text) for text in texts if text is not None)
        return next((trouble for trouble in found if trouble is not None), None)

    def columns(self, spec: JobSpec) -> tuple[str, str, str, int, str | None]:
        """Return (task, queue, lane, priority, options) of a spec."""
        known = self._columns.get(id(spec))
        if known is not None:
            return known[1]
        options = _Options(
            at_most_once=spec.at_most_once,
            timeout_s=spec.timeout_s,
            retry=None if spec.retry is None else dict(spec.retry),
            keep_s=spec.keep_s,
            tags=spec.tags,
        )
        text = None if options == _NO_OPTIONS else _encode(options).decode()
        columns = (spec.task, spec.queue, spec.lane, spec.priority, text)
        if len(self._columns) >= SPECS_KEPT:
            self._columns.clear()
        self._columns[id(spec)] = (spec, columns)  # holding the spec keeps its id from being given again
        return columns

    def gates(self, text: str) -> tuple[str, ...]:
        """Return the keys in a column `gates`."""
        keys = self._gates.get(text)
        if keys is None:
            try:
                keys = _decode_texts(text)
            except msgspec.MsgspecError as error:
                self._troubles[text] = _trouble("gates", text, error)
                keys = ()
            if len(self._gates) >= GATES_KEPT:
                self._gates.clear()
            self._gates[text] = keys
        return keys

    def gates_text(self, keys: tuple[str, ...]) -> str:
        """Return the column `gates` of a job that has some."""
        text = self._texts.get(keys)
        if text is None:
            text = array(keys)
            if len(self._texts) >= GATES_KEPT:
                self._texts.clear()
            self._texts[keys] = text
        return text

    def job(self, row: Row) -> Job:
        """Return the job that a row of either view describes."""
        job = Job.__new__(Job)
        (
            job.seq, job.id, task, queue, lane, priority, options, payload, job.submitted_at, job.run_at,
            job.sort_key, status, job.attempt, job.fence, job.worker, job.started_at, job.finished_at,
            job.expires_at, job.unmet, job.parked, cancel_requested, rare, result, gates,
            tenant, _,
        ) = row  # fmt: skip
        job.spec = self.spec((task, queue, lane, priority, options))
        job.gates = () if gates is None else self.gates(gates)
        job.tenant = None if tenant is None else self._tenant(tenant)
        job.status = STATUS[status]
        job.payload = payload.encode()
        job.result = None if result is None else result.encode()
        job.cancel_requested = cancel_requested == 1
        _add_rare(job, rare)
        if self._troubles:
            job.error = self.trouble(options, gates, tenant) or job.error
            if len(self._troubles) > TROUBLES_KEPT:
                self._forget()
        return job

    def _forget(self) -> None:
        """Forget all that was read: what cannot be read is found out anew."""
        for memory in (self._specs, self._columns, self._gates, self._troubles):
            memory.clear()

    def _tenant(self, text: str) -> Tenant | None:
        try:
            return _decode_tenant(text)
        except msgspec.MsgspecError as error:
            self._troubles[text] = _trouble("tenant", text, error)
            return None

    def current(self, given: Job, state: Row) -> Job:
        """Return a live job from a reference to it, for what never changes, and from its `state`."""
        job = Job.__new__(Job)
        (
            job.seq, status, job.run_at, job.sort_key, job.attempt, job.fence, job.worker, job.started_at,
            job.expires_at, job.unmet, job.parked, cancel_requested, rare, _,
        ) = state  # fmt: skip
        job.id = given.id
        job.spec = given.spec
        job.payload = given.payload
        job.submitted_at = given.submitted_at
        job.gates = given.gates
        job.tenant = given.tenant
        job.status = STATUS[status]
        job.cancel_requested = cancel_requested == 1
        job.finished_at = job.result = None
        _add_rare(job, rare)
        return job

    def new_row(
        self,
        job: Job,
        *,
        seq: int,
        status: JobStatus,
        token: str | None = None,
        sort_key: int | None = None,
    ) -> Row:
        """Return the values of `insert_job`; a number, status or sort key that the record lacks is given."""
        gates, tenant = job.gates, job.tenant
        key = job.sort_key if sort_key is None else sort_key
        return (
            seq, job.id, *self.columns(job.spec), job.payload.decode(), job.submitted_at, job.run_at,
            key, TEXT[status], job.expires_at, rare_text(job), token,
            self.gates_text(gates) if gates else None, None if tenant is None else array(tenant),
        )  # fmt: skip


def _add_rare(job: Job, text: str | None) -> None:
    """Fill in the fields that the column `rare` holds."""
    trouble = None
    try:
        rare = _NOTHING_RARE if text is None else _decode_rare(text)
    except msgspec.MsgspecError as error:
        rare, trouble = _NOTHING_RARE, _trouble("rare", text, error)
    job.crashes = rare.crashes
    job.superseded = rare.superseded
    job.error = rare.error or trouble
    job.reason = rare.reason
    job.attempts = rare.attempts
    job.depends_on = rare.depends_on
    job.key = rare.key
    job.fire = None if rare.fire is None else FireKey(*rare.fire, rare.by_hand)
    job.terms = None


def _trouble(column: str, text: str | None, error: Exception) -> ErrorInfo:
    """Say what is wrong with a row: what it holds is part of it, since it may be written over."""
    return ErrorInfo(type=UNREADABLE, message=f"the column {column} cannot be read ({error}): {text}")


def rare_text(job: Job) -> str | None:
    """Return the column `rare`: nothing for nearly every job."""
    if (
        not job.attempts
        and job.error is None
        and job.reason is None
        and not job.depends_on
        and job.key is None
        and job.fire is None
        and not job.crashes
        and not job.superseded
    ):
        return None
    unusual = _Rare(
        crashes=job.crashes,
        superseded=job.superseded,
        error=job.error,
        reason=None if job.reason is None else str(job.reason),
        attempts=job.attempts,
        depends_on=job.depends_on,
        key=job.key,
    )
    fire = job.fire
    if fire is not None:
        unusual.fire, unusual.by_hand = (fire.schedule, fire.at), fire.by_hand
    return _encode(unusual).decode()


def changed_row(job: Job) -> Row:
    """Return the values of `update_job`."""
    return (
        job.seq, TEXT[job.status], job.run_at, job.sort_key, job.attempt, job.fence, job.worker,
        job.started_at, job.expires_at, job.parked, int(job.cancel_requested), rare_text(job),
    )  # fmt: skip


def finished_row(job: Job) -> Row:
    """Return the values of `finish_job`."""
    finished_at = job.finished_at or 0
    result = None if job.result is None else job.result.decode()
    return (
        job.seq, job.run_at, job.sort_key, TEXT[job.status], job.attempt, job.fence, job.started_at,
        finished_at, job.expires_at, int(job.cancel_requested), rare_text(job), result,
        forget_at(job.spec, finished_at),
    )  # fmt: skip


def forget_at(spec: JobSpec, finished_at: Micros) -> Micros | None:
    """Return when an ended job is to be forgotten, if that is its own affair."""
    return None if spec.keep_s is None else finished_at + round(spec.keep_s * 1_000_000)


def worker_row(worker: WorkerInfo, *, lease_until: int, lease_boot_id: str) -> Row:
    """Return the values of `register_worker`."""
    return (
        worker.id, worker.host, worker.pid, worker.pid_namespace, worker.process_started, worker.boot_id,
        texts(worker.queues), worker.concurrency, worker.lease_us, lease_until, lease_boot_id,
    )  # fmt: skip


def known_row(worker: WorkerInfo) -> Row:
    """Return the values of `write_known`."""
    return worker.id, texts(worker.lanes), texts(worker.tasks)


def texts(values: tuple[str, ...] | None) -> str | None:
    """Return a column that holds texts, or nothing."""
    return None if values is None else _encode(values).decode()


def texts_of(column: str | None) -> tuple[str, ...] | None:
    """Return the texts that a column holds."""
    return None if column is None else _decode_texts(column)


def worker_of(row: Row) -> WorkerInfo:
    """Return the worker that a row of `workers` describes, without what it knows."""
    return WorkerInfo(
        id=row[0],
        host=row[1],
        pid=row[2],
        pid_namespace=row[3],
        process_started=row[4],
        boot_id=row[5],
        queues=texts_of(row[6]),
        concurrency=row[7],
        lease_us=row[8],
    )


def array(values: Collection[object]) -> str:
    """Return a JSON array for `json_each`."""
    return _encode(list(values)).decode()
