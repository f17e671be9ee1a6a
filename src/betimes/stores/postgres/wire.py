"""The wire: one connection, which knows for how long it has waited for an answer.

A server that has gone without a word, or a network that swallows all, leaves a caller waiting for as long as
the system cares to. So whoever watches asks how long a wire has been waiting, and cuts it: the waiting thread
then gets an error at once, whatever the server's own timeouts say.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from betimes.stores.postgres.failures import translated
from betimes.stores.postgres.target import Target
from betimes.stores.relational.statements import Row

PREPARE_AFTER = 3
"""How often a statement is carried out before the server keeps its plan."""

IDLE_IN_TRANSACTION_MS = 10_000
"""A process that stands still within a transaction holds its locks for so long, and no longer."""

LOCK_MS = 15_000
"""Whoever waits longer for a lock gives up: also a server's process whose client has gone meanwhile, which
nothing else would tell. It is less than our own deadline, so that the transaction ends with a word."""

BY_INDEX = {"enable_seqscan": "off", "enable_bitmapscan": "off", "jit": "off"}
"""Statements go by indexes and in their order, also while the server has no statistics, or has them of a time
when a table was empty: to read a whole table, or to sort all that waits, takes a thousand times as long."""

SETTLE_S = 10.0
"""How long to wait for the first answer on a new connection."""

_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class Wire:
    """A connection with the schema, and the time of its server.

    Args:
        target: where to.
        monotonic: seconds on a clock that never jumps.
        patience_s: how long to wait for a server that does not answer at all; None: as the target says.

    Attributes:
        is_pooled: whether a pooler stands between: then nothing of a session outlives its transaction.

    Raises:
        StoreUnavailable: nobody answers, or not now.
        ConfigurationError: who answers does not let us in.
    """

    def __init__(
        self, target: Target, *, monotonic: Callable[[], float], patience_s: float | None = None
    ) -> None:
        self._monotonic = monotonic
        parameters = dict(target.parameters)
        if patience_s is not None:
            parameters["connect_timeout"] = str(max(1, round(patience_s)))
        self._waits_since: float | None = None
        try:
            self._conn = psycopg.connect(
                autocommit=True,
                cursor_factory=psycopg.RawCursor,
                prepare_threshold=None,
                **parameters,  # type: ignore[arg-type]
            )
            with self._within(SETTLE_S if patience_s is None else patience_s):
                self._settle(target)
        except psycopg.Error as error:
            raise translated(error, target.shown) from error

    def _settle(self, target: Target) -> None:
        conn = self._conn
        row = conn.execute("SELECT pg_backend_pid()").fetchone()
        assert row is not None
        # A pooler hands out numbers of its own.
        self.is_pooled = row[0] != conn.info.backend_pid
        if not self.is_pooled:
            conn.prepare_threshold = PREPARE_AFTER
        settings = {
            "search_path": f"{target.schema}, pg_temp",
            "idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION_MS,
            "lock_timeout": LOCK_MS,
            **BY_INDEX,
        }
        # Behind a pooler, settings last for a transaction at most: there they come with each beginning, in
        # the same round trip.
        scope = "LOCAL" if self.is_pooled else "SESSION"
        text = "".join(f"SET {scope} {name} TO {value}; " for name, value in settings.items())
        if not self.is_pooled:
            conn.execute(text)
            text = ""
        self._begin = f"BEGIN; {text}{_NOW}"
        self._begin_look = f"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; {text}{_NOW}"

    @property
    def conn(self) -> psycopg.Connection[Any]:
        """The driver's connection."""
        return self._conn

    @property
    def is_usable(self) -> bool:
        """Whether it has not been lost."""
        return not self._conn.closed

    def has_hung_up(self) -> bool:
        """Say whether the server has closed an idle connection: also one that nobody has used since."""
        try:
            while not self._conn.closed and _has_words(self._conn.fileno()):
                self._conn.pgconn.consume_input()
        except (psycopg.Error, OSError):
            return True
        return self._conn.closed

    def waits_for(self) -> float:
        """Return for how many seconds it has waited for an answer; 0: it does not. From any thread."""
        since = self._waits_since
        return 0.0 if since is None else self._monotonic() - since

    def run(self, text: str, values: Row = ()) -> psycopg.Cursor[Any]:
        """Carry out a text."""
        self._waits_since = self._monotonic()
        try:
            return self._conn.execute(text, values or None)
        finally:
            self._waits_since = None

    def begin(self, *, for_looking: bool = False) -> int:
        """Begin a transaction; return the server's time, in microseconds since the Unix epoch.

        With `for_looking` it sees one state of the whole, and writes nothing.
        """
        cursor = self.run(self._begin_look if for_looking else self._begin)
        while cursor.nextset():
            pass
        row = cursor.fetchone()
        assert row is not None, "the last of the texts asks for the time"
        return int(row[0])

    def commit(self) -> None:
        """Commit; whatever error this ends with, it may or may not have been done."""
        self.run("COMMIT")

    def rollback(self) -> None:
        """Roll back, as far as there is anything left to do it with."""
        with suppress(psycopg.Error):
            self.run("ROLLBACK")

    def cut(self) -> None:
        """Have whoever waits for an answer get an error instead; from any thread."""
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self._conn.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; twice is fine."""
        with suppress(psycopg.Error):
            self._conn.close()

    @contextmanager
    def _within(self, patience_s: float) -> Iterator[None]:
        """Have it cut off if this takes longer: nobody else watches a connection that is still new."""
        timer = threading.Timer(patience_s, self.cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        except BaseException:
            self.close()
            raise
        finally:
            timer.cancel()


def _has_words(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))
