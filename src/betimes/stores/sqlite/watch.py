"""When to look for commits of other connections, and whether to tell of them.

A look is `PRAGMA data_version`: a few microseconds, and the only thing that knows. What calls for one is a
touch of the file (see `doorbell`), and between a touch and its commit lies the time that the disk takes. So:

1. After a touch it is looked at once, and then again after 1, 2, 4, 8 and every 10 ms, until a commit shows
   or a second has passed without a touch: what was touched was then rolled back.
2. The touches so far are forgotten before each look. If it shows a commit, they count as that commit's, but
   some may have been another's, which was under way already: so three looks more follow, over 70 ms.
3. Subscribers are told at most every 10 ms, however many commit; a touch is not heard meanwhile.
4. Without touches it is looked twice a second, for what a touch may have failed to tell. Where nothing
   tells of touches at all, it is looked every 10 ms.
5. What another connection has committed is not known, so that subscribers are told of everything it may be.
   Only a cancel is looked for: a worker answers that with a beat, which is itself a commit, and two workers
   would go on waking each other for ever.
6. After a commit of one's own it is looked, too, since its touches are forgotten together with those that
   came before it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from betimes.ports import Hint
from betimes.stores.sqlite.doorbell import Doorbell
from betimes.stores.sqlite.statements import statement

CANCEL_REQUESTS = statement("cancel_requests")

POLL_US = 10_000
"""The longest from a commit to the look that finds it while one is expected, and between two tellings."""
FIRST_STEP_US = 1_000
"""How long after a touch that shows no commit yet to look again; then twice as long, up to `POLL_US`."""
SETTLE_US = 1_000_000
"""How long after a touch a commit is expected."""
LATER_LOOKS_US = (10_000, 20_000, 40_000)
"""How long to wait before each look that follows a commit found."""
SAFETY_US = 500_000
"""How often to look although nothing was touched."""


class Watch:
    """Notices commits of other connections; one's own do not count (mutable: it belongs to the writer).

    Args:
        sql: the writing connection.
        bell: tells of touches, or does not.
        now: the boot clock's instant.
    """

    def __init__(self, sql: sqlite3.Connection, bell: Doorbell, *, now: int) -> None:
        self._sql = sql
        self._bell = bell
        self._version = self._read()
        self._is_found = False
        self._look_at = self._tell_from = now
        self._expected_until = 0
        self._step_us = FIRST_STEP_US
        self._later: tuple[int, ...] = ()
        self._cancels: set[tuple[int, int]] = set()

    def has_changed(self) -> bool:
        """Say whether another connection has committed since the last look; a locked file counts as such."""
        version = self._read()
        changed = version is None or version != self._version
        self._version = version
        return changed

    def touched(self, now: int) -> None:
        """Note that somebody has written to the file."""
        self._step_us = FIRST_STEP_US
        self._look_at = now
        self._expect(now)

    def committed(self, now: int) -> None:
        """Forget the touches of a commit of one's own; called while everybody else is still kept out."""
        self._bell.hush()
        if self.has_changed():
            self._found(now)
        elif now < self._expected_until:
            self._expected_until = 0  # who writes one by one: what was expected has been rolled back
            self._plan(now)

    def wants_touches(self, now: int) -> bool:
        """Say whether a touch would bring the next look nearer."""
        return now >= self._tell_from and now >= self._expected_until

    def next_in_us(self, now: int) -> int:
        """Return how long until `has_news` has something to do."""
        when = self._look_at
        if self._is_found or now < self._tell_from:
            when = min(when, self._tell_from)
        return max(0, when - now)

    def has_news(self, now: int) -> bool:
        """Look, if it is time to; say whether to tell subscribers now."""
        if now >= self._look_at:
            was_touched = self._bell.hush()
            if self.has_changed():
                self._found(now)
            else:
                self._not_found(now, was_touched)
        if self._is_found and now >= self._tell_from:
            self._is_found = False
            self._tell_from = now + POLL_US
            return True
        return False

    def hints(self, workers: Iterable[str]) -> set[Hint]:
        """Say what to tell subscribers of once there is news; these workers are here."""
        hints = {Hint.WORK, Hint.ENDED, Hint.FIRE}
        try:
            cancels = {
                (seq, fence)
                for worker in workers
                for seq, fence in self._sql.execute(CANCEL_REQUESTS, (worker,)).fetchall()
            }
        except sqlite3.Error:
            return {*hints, Hint.CANCEL}
        if cancels - self._cancels:
            hints.add(Hint.CANCEL)
        self._cancels = cancels
        return hints

    def _expect(self, now: int) -> None:
        self._expected_until = now + SETTLE_US
        self._later = ()

    def _found(self, now: int) -> None:
        self._is_found = True
        self._expected_until = 0
        self._later = LATER_LOOKS_US
        self._plan(now)

    def _not_found(self, now: int, was_touched: bool) -> None:
        if was_touched:
            if now >= self._expected_until:
                self._step_us = FIRST_STEP_US
            self._expect(now)
        if now < self._expected_until:
            self._look_at = now + self._step_us
            self._step_us = min(2 * self._step_us, POLL_US)
        else:
            self._plan(now)

    def _plan(self, now: int) -> None:
        """Have the next look come when no commit is known to be under way."""
        if self._bell.touches is None:
            self._look_at = now + POLL_US
        elif self._later:
            self._look_at = now + self._later[0]
            self._later = self._later[1:]
        else:
            self._look_at = now + SAFETY_US

    def _read(self) -> int | None:
        try:
            version: int = self._sql.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error:
            return None
        return version
