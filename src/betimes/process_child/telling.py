"""How a child's code is told to stop: SIGTERM, and a look at the shared page for whom it is meant.

One signal is not enough. It may come between the interpreter's last look for signals and the code's call
into the system, which then waits as if nothing had been; or while the interpreter is in a place (a `__del__`,
say) from which no exception gets out. So the parent also says by the lifeline that somebody was told, and the
thread that reads it sends the signal again until the code has heard.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from betimes.executors.process.frames import DOOMED
from betimes.process_child.wire import Page

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_OURS = (signal.SIGTERM, signal.SIGINT)


class ToldToStop(BaseException):
    """Raised in the code of a job that was cancelled or is late, so that `finally:` is carried out.

    Not an `Exception`: code that catches those would go on.
    """


class Bell:
    """Hears SIGTERM, and raises in the code of the request it is meant for; others never notice.

    Used on the main thread, where Python runs its signal handlers.
    """

    def __init__(self, page: Page) -> None:
        self._words = page.words
        self._number = -1
        self._is_running = self._is_armed = False
        self._shields = 0
        self._is_due = False
        self._hear = self._heard

    def is_doomed(self, number: int) -> bool:
        """Say whether this request is to stop; from any thread."""
        return self._words[DOOMED] == number

    @property
    def is_told(self) -> bool:
        """Whether the current request is to stop."""
        return self._words[DOOMED] == self._number

    def arm(self, number: int) -> None:
        """Begin a request's code.

        Raises:
            ToldToStop: it is to stop already.
        """
        if signal.getsignal(signal.SIGTERM) is not self._hear:  # the job before has set its own
            signal.signal(signal.SIGTERM, self._hear)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _OURS)  # or has blocked it
        self._number = number
        self._is_due = False
        self._is_running = self._is_armed = True
        # The number is in the page before the signal is sent, so one of the two is noticed.
        if self.is_told:
            self._ring()

    def disarm(self) -> None:
        """End the request's code: from here on nothing is raised."""
        self._is_running = self._is_armed = False

    def insist(self, pause: Callable[[], object]) -> None:
        """Send the main thread SIGTERM again and again, until the code that is to stop has heard.

        From another thread.

        Args:
            pause: waits between two signals, and before the first one; true: enough.
        """
        main = threading.main_thread().ident
        assert main is not None
        while not pause() and self._is_running and self.is_told:
            # A handler of the job's own is not ours to call twice.
            if self._is_armed and signal.getsignal(signal.SIGTERM) is self._hear:
                signal.pthread_kill(main, signal.SIGTERM)

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Raise nothing while the block runs, but at its end: half a message must not be sent, say."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if self._is_due and not self._shields:
            self._ring()

    def install(self) -> None:
        """Handle the signals of this process from now on."""
        signal.signal(signal.SIGTERM, self._hear)
        # A handler, and not SIG_IGN, which the programs that jobs start would inherit.
        signal.signal(signal.SIGINT, _ignore)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _OURS)
        usual = sys.unraisablehook

        def dropped(what: UnraisableHookArgs) -> None:
            if isinstance(what.exc_value, ToldToStop):
                self._is_armed = self._is_running  # nobody has heard it
            else:
                usual(what)

        sys.unraisablehook = dropped

    def _heard(self, _number: int, _frame: FrameType | None) -> None:
        if self.is_told:
            self._ring()

    def _ring(self) -> None:
        if not self._is_armed:
            return
        if self._shields:
            self._is_due = True
            return
        # Once only: what the code does about it must not be broken into.
        self._is_armed = self._is_due = False
        raise ToldToStop("the job was told to stop")


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: an interrupt is for the program in the foreground, which tells its children itself."""
