"""From what users write to what the engine takes: stores from URLs, settings from options, executors."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qsl, unquote

from betimes.clock import is_gone, process_identity
from betimes.core.durations import duration_s, duration_us
from betimes.core.job import JobStatus
from betimes.core.recycle import Recycle
from betimes.core.strategy import PriorityStrategy, SchedulingStrategy
from betimes.core.wording import shown
from betimes.errors import ConfigurationError
from betimes.executors.command import CommandExecutor
from betimes.executors.loop import LoopExecutor
from betimes.executors.process import ProcessExecutor
from betimes.executors.thread import ThreadExecutor
from betimes.ports import Clock, Executor, JobFilter, Store, WorkerInfo
from betimes.runtime.settings import Settings
from betimes.stores.memory import MemoryStore
from betimes.tasks import Duration, check_name

_log = logging.getLogger("betimes")

_POSTGRES = re.compile(r"postgres(ql)?(\+\w+)?:|postgres(ql)?//")
"""What is meant for PostgreSQL, also where it is not quite right: then its adapter says what is wrong."""

_CREDENTIALS = re.compile(r"//.*@", re.DOTALL)

MOST = 100_000
"""The largest concurrency."""

MOST_HISTORY = 1_000_000_000
"""The longest history."""

MOST_SHARE = 1000
"""The largest share of a queue."""

MOST_LISTED = 1000
"""The most jobs that one listing returns."""

POLL_DURABLE_S = 1.0
POLL_MEMORY_S = 30.0


def make_store(store: str | Path | Store, *, clock: Clock, history: int) -> Store:
    """Return the store that `Scheduler(store)` means; nothing is opened.

    Raises:
        ConfigurationError: it names no store; the text lists the forms.
    """
    _count(history, "history", most=MOST_HISTORY)
    if isinstance(store, Store):
        return store
    if store == "memory:":
        return MemoryStore(clock=clock, history=history)
    if isinstance(store, str) and _POSTGRES.match(store):
        return _postgres_store(store, clock)
    return _sqlite_store(*_sqlite_path(store), clock)


def _sqlite_path(store: object) -> tuple[Path, str | None]:
    """Return the file and the journal mode asked for."""
    if isinstance(store, Path):
        return store, None
    journal = None
    if isinstance(store, str) and store.startswith("sqlite:///"):
        path, _, query = store.removeprefix("sqlite:///").partition("?")
        path, journal = unquote(path), _journal(store, query)
    elif isinstance(store, str) and "://" not in store and store.strip() and store != ":memory:":
        path = store
    else:
        raise ConfigurationError(
            f"store is {_shown(store)!r:.200}; it is 'memory:', a file such as 'jobs.db' or "
            "'sqlite:///jobs.db', a 'postgresql://user@host/database', or a Store"
        )
    if not path or path.endswith("/"):
        raise ConfigurationError(f"store {store!r} names no file: write for example 'sqlite:///jobs.db'")
    return Path(path), journal


def _shown(store: object) -> object:
    """Return what a message may say of a store: no password."""
    return _CREDENTIALS.sub("//…@", store) if isinstance(store, str) else store


def _journal(store: str, query: str) -> str | None:
    parameters = parse_qsl(query, keep_blank_values=True)
    if [name for name, _ in parameters] not in ([], ["journal"]):
        raise ConfigurationError(
            f"store {store!r:.200} has something else than journal=wal or journal=delete behind its '?'; a "
            "'?' in a file's name is written '%3F'"
        )
    return parameters[0][1] if parameters else None


def _sqlite_store(path: Path, journal: str | None, clock: Clock) -> Store:
    # Imported here: `import betimes` must not load sqlite3 for those who stay in memory.
    from betimes.stores.sqlite import SqliteStore  # noqa: PLC0415

    return SqliteStore(path, clock=clock, is_gone=is_gone, journal=journal)


def _postgres_store(url: str, clock: Clock) -> Store:
    try:
        from betimes.stores.postgres import PostgresStore  # noqa: PLC0415 - its driver is an extra
    except ImportError as error:
        raise ConfigurationError(
            f"a store on PostgreSQL needs its driver: pip install 'betimes[postgres]' ({error})"
        ) from error
    return PostgresStore(url, clock=clock, is_gone=is_gone)


def make_settings(
    *,
    concurrency: int,
    threads: int | None,
    processes: int | None,
    queues: Iterable[str] | Mapping[str, int] | None,
    lease: Duration,
    grace: Duration,
    keep: Duration,
    poll: Duration | None,
    watchdog: Duration | None,
    is_durable: bool,
) -> Settings:
    """Check the scheduler's options and return them as raw numbers.

    Raises:
        ConfigurationError: one is wrong; the text names it.
    """
    _count(concurrency, "concurrency")
    for name, most in (("threads", threads), ("processes", processes)):
        if most is not None and _count(most, name) > concurrency:
            _log.warning(
                "%s=%d never binds: at most concurrency=%d attempts run at once", name, most, concurrency
            )
    default_poll_s = POLL_DURABLE_S if is_durable else POLL_MEMORY_S
    names, shares = _queues(queues)
    return Settings(
        concurrency=concurrency,
        queues=names,
        shares=shares,
        lease_us=duration_us(lease, name="lease"),
        grace_s=duration_s(grace, name="grace", allow_zero=True),
        keep_us=duration_us(keep, name="keep", allow_zero=True),
        poll_s=default_poll_s if poll is None else duration_s(poll, name="poll"),
        stall_s=None if watchdog is None else duration_s(watchdog, name="watchdog"),
    )


def check_strategy(strategy: SchedulingStrategy | None) -> SchedulingStrategy:
    """Return the strategy, or the default one.

    Raises:
        ConfigurationError: it is no strategy.
    """
    if strategy is None:
        return PriorityStrategy()
    if not isinstance(strategy, SchedulingStrategy):
        raise ConfigurationError(
            f"strategy is {strategy!r:.100}; it is a SchedulingStrategy, such as PriorityStrategy()"
        )
    return strategy


def describe_worker(worker_id: str, settings: Settings) -> WorkerInfo:
    """Describe the worker of this process for the store."""
    me = process_identity()
    return WorkerInfo(
        id=worker_id,
        lease_us=settings.lease_us,
        host=me.host,
        pid=me.pid,
        pid_namespace=me.pid_namespace,
        process_started=me.started or 0,
        boot_id=me.boot_id,
        queues=settings.queues,
        concurrency=settings.concurrency,
    )


def check_parts(*, clock: object, rng: object, executors: Iterable[object]) -> None:
    """See that what was given in place of the scheduler's own parts can take their place.

    Raises:
        ConfigurationError: one cannot; the text names it.
    """
    if not isinstance(clock, Clock | None):
        raise ConfigurationError(f"clock is {shown(clock)}; it is a Clock, or None for the system's")
    if not isinstance(rng, Random | None):
        raise ConfigurationError(f"rng is {shown(rng)}; it is a random.Random, or None for one of its own")
    for executor in executors:
        if not isinstance(executor, Executor):
            raise ConfigurationError(f"executors has {shown(executor)}; each of them is an Executor")


def make_filter(
    *,
    status: JobStatus | str | None,
    task: str | None,
    queue: str | None,
    tag: str | None,
    limit: int,
    before: int | None,
) -> JobFilter:
    """Check what a listing of jobs asks for.

    Raises:
        ConfigurationError: an argument is wrong; the text names it.
    """
    for name, value in (("task", task), ("queue", queue), ("tag", tag)):
        if value is not None:
            check_name(value, name)
    if before is not None and (isinstance(before, bool) or not isinstance(before, int)):
        raise ConfigurationError(f"before is {shown(before)}; it is the version of a job, a whole number")
    _count(limit, "limit", most=MOST_LISTED)
    try:
        wanted = None if status is None else JobStatus(status)
    except ValueError:
        raise ConfigurationError(f"status is {status!r}; it is one of {', '.join(JobStatus)}") from None
    return JobFilter(status=wanted, task=task, queue=queue, tag=tag, limit=limit, before=before)


def check_page(after: object, limit: object) -> None:
    """See that a page of a log can be asked for so.

    Raises:
        ConfigurationError: it cannot; the text names the argument.
    """
    if isinstance(after, bool) or not isinstance(after, int) or after < 0:
        raise ConfigurationError(f"after is {shown(after)}; it is the number of a line, or 0 for the first")
    check_limit(limit)


def check_limit(limit: object) -> None:
    """See that a listing can be as long as this.

    Raises:
        ConfigurationError: it cannot.
    """
    _count(limit, "limit", most=MOST_LISTED)


def _count(value: object, name: str, *, most: int = MOST) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ConfigurationError(f"{name} is {shown(value)}; it is a whole number from 1 to {most:,}")
    return value


def _queues(queues: object) -> tuple[tuple[str, ...] | None, Mapping[str, int] | None]:
    """Return the queues served (None: all), and their shares, if they are served by shares."""
    if queues is None:
        return None, None
    if isinstance(queues, str) or not isinstance(queues, Iterable):
        raise ConfigurationError(
            f"queues is {queues!r:.100}; it is a list of queue names, a dict from names to shares, or None "
            "for all"
        )
    names = tuple(dict.fromkeys(check_name(name, "queues") for name in queues))
    if not names:
        raise ConfigurationError("queues is empty: name the queues to serve, or leave it out to serve all")
    if not isinstance(queues, Mapping):
        return names, None
    return names, {
        name: _count(queues[name], f"the share of queue {name!r}", most=MOST_SHARE) for name in names
    }


def check_recycle(recycle: Recycle | None) -> Recycle:
    """Return when processes are replaced, or the default.

    Raises:
        ConfigurationError: it is no `Recycle`.
    """
    if recycle is None:
        return Recycle()
    if not isinstance(recycle, Recycle):
        raise ConfigurationError(f"recycle is {shown(recycle)}; it is a Recycle, such as Recycle(jobs=100)")
    return recycle


def make_executors(
    settings: Settings,
    *,
    threads: int | None,
    processes: int | None,
    recycle: Recycle,
    new_token: Callable[[], str],
) -> dict[str, Executor]:
    """Make the executors of one run, by lane."""
    most = settings.concurrency
    executors: Any = (
        LoopExecutor(most),
        ThreadExecutor(min(threads or most, most)),
        ProcessExecutor(
            min(processes or _cores(), most), grace_s=settings.grace_s, new_token=new_token, recycle=recycle
        ),
        CommandExecutor(most, grace_s=settings.grace_s),
    )
    return {executor.lane: executor for executor in executors}


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
