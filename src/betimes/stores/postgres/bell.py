"""The bell: hints between processes, by NOTIFY and LISTEN, on one connection of its own.

Only hints: at most one notification for each pause of some milliseconds, sent after the commit that it tells
of and never within it, since NOTIFY takes a lock on the whole database. One that is lost costs the time until
the next poll. After each new connection everybody is told to look, since what was sent meanwhile is gone.
Behind a pooler nothing can be heard, and so nothing is sent there either.
"""

from __future__ import annotations

import math
import os
import select
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

import psycopg

from betimes.errors import BetimesError
from betimes.ports import Clock, Hint
from betimes.stores.postgres.session import Session
from betimes.stores.postgres.target import Target
from betimes.stores.postgres.wire import Wire

PAUSE_S = 0.01
"""The least time between two notifications of a process."""
LONGEST_RETRY_S = 10.0
"""The longest that it waits before a lost connection is made anew: hints are no more than that."""
PING_EVERY_S = 15.0
"""How often it asks a silent server for a word: whoever only listens would never notice that it is gone."""


class Bell(Session[Hint]):
    """Tells other processes, and hears them.

    Args:
        tell: called on the loop with what was heard.
        target, clock: as for any session.
    """

    def __init__(self, target: Target, *, tell: Callable[[Collection[Hint]], None], clock: Clock) -> None:
        super().__init__(target, clock=clock, name="bell", longest_retry_s=LONGEST_RETRY_S)
        self._tell = tell
        self._channel = f"betimes_{target.schema}"[:63]
        self._is_deaf = self._is_closed = False
        self._heard: set[Hint] = set()
        self._to_ring: set[Hint] = set()
        self._rung_at = 0.0
        self._answered_at = 0.0
        self._wake_reading, self._wake_writing = os.pipe()
        os.set_blocking(self._wake_writing, False)
        os.set_blocking(self._wake_reading, False)

    def put(self, call: Hint | None) -> None:
        """Have others told; on the loop. None: only have the thread look up."""
        if self._is_closed:
            return  # its numbers may be others' files by now
        super().put(call)
        with suppress(BlockingIOError):
            os.write(self._wake_writing, b".")

    async def close(self) -> None:
        """End the thread and close the connection."""
        await super().close()
        if self.has_ended:
            self._is_closed = True
            for fd in (self._wake_reading, self._wake_writing):
                os.close(fd)

    # in the thread

    def _gather(self, pause_s: float | None) -> list[Hint]:
        self._listen()
        wire = self._wire
        ends = [self._wake_reading]
        if wire is not None and wire.is_usable:
            ends.append(wire.conn.fileno())
        ready = _readable(ends, pause_s)
        if self._wake_reading in ready:
            with suppress(BlockingIOError):
                os.read(self._wake_reading, 4096)
        if wire is not None and len(ready) > (self._wake_reading in ready):
            self._hear(wire)
        return super()._gather(0)

    def _pause_s(self) -> float | None:
        now = self._clock.monotonic()
        if self._to_ring:
            return max(0.0, self._rung_at + PAUSE_S - now)
        if self._is_deaf:
            return None
        if self._wire is not None and self._wire.is_usable:
            return max(0.0, self._answered_at + PING_EVERY_S - now)
        return max(0.0, self._reconnecting.next_at - now)

    def _carry_out(self, batch: list[Hint]) -> None:
        self._to_ring.update(batch)

    def _keep_up(self) -> None:
        now = self._clock.monotonic()
        if self._to_ring and now >= self._rung_at + PAUSE_S:
            hints, self._to_ring = self._to_ring, set()
            self._rung_at = now
            self._ring(hints)
        elif now >= self._answered_at + PING_EVERY_S:
            self._ask("SELECT 1")
        if self._heard:
            heard, self._heard = self._heard, set()
            self._post(self._tell, heard)

    def _listen(self) -> None:
        """Connect, if that is due."""
        if self._is_deaf or self._is_ending or (self._wire is not None and self._wire.is_usable):
            return
        if self._clock.monotonic() < self._reconnecting.next_at:
            return
        try:
            wire = self._connected()
            if wire.is_pooled:
                self._is_deaf = True
                self._disconnect()
                return
            wire.conn.add_notify_handler(lambda note: self._note(note.pid, note.payload))
            # A notification commits, but keeps nothing: that need not reach the disk.
            wire.run("SET synchronous_commit TO off")
            wire.run(f"LISTEN {self._channel}")
        except BetimesError:
            return
        except psycopg.Error as error:
            self._lose(error)
            return
        self._answered_at = self._clock.monotonic()
        self._heard.update(Hint)

    def _ring(self, hints: Collection[Hint]) -> None:
        self._ask("SELECT pg_notify($1, $2)", self._channel, " ".join(sorted(hint.value for hint in hints)))

    def _ask(self, text: str, *values: str) -> None:
        wire = self._wire
        if self._is_deaf or wire is None or not wire.is_usable:
            return
        try:
            wire.run(text, values)
        except psycopg.Error as error:
            self._lose(error)
        else:
            self._answered_at = self._clock.monotonic()

    def _lose(self, error: psycopg.Error) -> None:
        """Give a connection up that answers no more; the next comes after a pause."""
        self._disconnect()
        self._reconnecting.failed(error)

    def _hear(self, wire: Wire) -> None:
        try:
            pgconn = wire.conn.pgconn
            pgconn.consume_input()
            while (notification := pgconn.notifies()) is not None:
                self._note(notification.be_pid, notification.extra.decode("utf-8", "replace"))
        except psycopg.Error as error:
            self._lose(error)

    def _note(self, sender: int, text: str) -> None:
        wire = self._wire
        if wire is not None and sender == wire.conn.info.backend_pid:
            return  # it is our own
        for value in text.split():
            with suppress(ValueError):  # of a later version, perhaps
                self._heard.add(Hint(value))


def _readable(ends: Sequence[int], pause_s: float | None) -> list[int]:
    """Wait until one of them has something to read; return those that have, or have been closed."""
    poll = select.poll()
    for end in ends:
        poll.register(end, select.POLLIN)
    return [end for end, _ in poll.poll(None if pause_s is None else math.ceil(pause_s * 1000))]
