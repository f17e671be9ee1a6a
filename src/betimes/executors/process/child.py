"""One child process, as the scheduler's process sees it: what is in it, what it says, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Collection
from typing import Protocol

import msgspec

from betimes.core.outcome import Outcome
from betimes.core.recycle import Recycle
from betimes.core.remote import Died
from betimes.executors.guard import Guard
from betimes.executors.process.channel import Channel, Outbox
from betimes.executors.process.frames import (
    DOOMED,
    LOST_PIPE,
    Answered,
    FrameReader,
    Logged,
    Progressed,
    Ready,
    Request,
    decode_from_child,
    frame_of,
    mark_of,
)
from betimes.executors.process.launching import program_of
from betimes.executors.process.printed import Printed
from betimes.executors.spawned import Exit, Spawned
from betimes.ports import Run

_READ_BYTES = 256 * 1024

UNDER_WAY_S = 60.0
"""How long a child may take to start before it is given up."""

_GARBLED = "what it answered could not be read, since the job has written into its pipe; it was killed"


class Entry:
    """A run that is in a child (mutable: its outcome comes later)."""

    __slots__ = ("number", "outcome", "run")

    def __init__(self, number: int, run: Run) -> None:
        self.number = number
        self.run = run
        self.outcome: Outcome | None = None


class Owner(Protocol):
    """Who has the children."""

    def ready(self, child: Child) -> None:
        """Hear that a child has started."""

    def answered(self, child: Child, entries: Collection[Entry]) -> None:
        """Hear that the code of these has ended; their outcomes are known."""

    def dead(self, child: Child) -> None:
        """Hear that a child is dead: what has not begun is to be taken back."""

    def lost(self, child: Child, how: Exit) -> None:
        """Hear that nothing of a dead child is left but `inside`."""


class Child:
    """A child that starts, runs, or ends.

    Args:
        owner: is told what happens.
        token: what begins the marks in its output.
        recycle: when it is replaced.
        guard: kills it when this process dies.

    Attributes:
        inside: the runs that are in it, in order; the first one is running.
        is_ready: it has started.
        is_leaving: it gets nothing more.
        doomed: the run that was told to stop, if one was.
        served: how many runs it has had.
        since: when its first run became its first.

    Raises:
        OSError: there are too many open files, or this process's directory is gone.
    """

    def __init__(self, owner: Owner, *, token: str, recycle: Recycle, guard: Guard) -> None:
        self._owner = owner
        self._loop = loop = asyncio.get_running_loop()
        self._channel = channel = Channel()
        try:
            program = program_of(channel, token, recycle)
        except OSError:
            channel.discard()
            raise
        self.born_at = self.since = loop.time()
        self.inside: deque[Entry] = deque()
        self.is_ready = self.is_leaving = False
        self.doomed: Entry | None = None
        self.served = 0
        self._outbox = Outbox(channel, loop)
        self._frames = FrameReader()
        self._is_garbled = False
        mark = mark_of(token)
        self._printed = tuple(
            Printed(fd, stream, channel.words, mark=mark, inside=self.inside)
            for stream, fd in enumerate((channel.stdout, channel.stderr))
        )
        loop.add_reader(channel.answers, self.read)
        for printed in self._printed:
            printed.open(loop)
        self.process = Spawned(program, self._exited, guard=guard)
        self._patience = loop.call_later(UNDER_WAY_S, self.process.kill)

    # --- what goes in

    def give(self, run: Run) -> None:
        """Have a run's code run after those that are in it; sent with the next `flush`.

        Raises:
            Exception: what keeps the call from being sent; the child does not have the run.
        """
        number = self.served + 1
        frame = frame_of(Request(number, run.call()))
        self.served = number
        if not self.inside:
            self.since = self._loop.time()
        run.handle = self
        self.inside.append(Entry(number, run))
        self._outbox.add(number, frame)

    def flush(self) -> None:
        """Send what it was given."""
        self._outbox.flush()

    def withdraw(self) -> list[Run]:
        """Take back the runs that have not begun; they never will, here.

        What has ended is heard first. So at most one run is left in it, and that one is running: a child
        takes the next ticket only after it has answered.
        """
        numbers = self._outbox.withdraw()
        while self.read():
            pass
        if self._is_garbled:
            # Whatever came after the first one may have begun, and even ended: nobody will ever know. None of
            # them may start only once, since such a run never waits behind another; so they run again.
            numbers.update([entry.number for entry in self.inside][1:])
        back = [entry.run for entry in self.inside if entry.number in numbers]
        rest = [entry for entry in self.inside if entry.number not in numbers]
        self.inside.clear()  # the same object: `Printed` looks at it
        self.inside.extend(rest)
        return back

    def doom(self, grace_s: float) -> None:
        """Tell the code that is running to stop, and kill the child after the grace; after `withdraw`."""
        self.is_leaving = True
        if self.inside and self.doomed is None:
            self.doomed = self.inside[0]
            self._channel.words[DOOMED] = self.doomed.number
            self._channel.ring()
        self.dismiss(grace_s)

    def dismiss(self, grace_s: float) -> None:
        """Let it end once it has done what is in it, and kill it after the grace; twice is fine."""
        self.is_leaving = True
        self._outbox.close()
        self.process.terminate(grace_s)

    # --- what comes out

    def read(self) -> bool:
        """Read one piece of what it says; False if it says nothing."""
        if self._is_garbled:
            return False
        try:
            data = os.read(self._channel.answers, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._channel.answers)
            return False
        ended: list[Entry] = []
        try:
            for body in self._frames.feed(data):
                self._hear(body, ended)
        except (msgspec.MsgspecError, LookupError, ValueError):
            self._is_garbled = True
        if self._is_garbled or self._frames.is_broken:
            # A job has written into our pipe: nothing that comes after it can be made sense of.
            self._is_garbled = True
            self._loop.remove_reader(self._channel.answers)
            self.is_leaving = True
            self.process.kill()
        if ended:
            self._owner.answered(self, ended)
        return True

    def _hear(self, body: bytes, ended: list[Entry]) -> None:
        message = decode_from_child(body)
        if type(message) is Answered:
            entry = self.inside[0]
            if entry.number != message.number:
                raise LookupError(f"an answer to request {message.number} came at request {entry.number}")
            if message.marked:
                for stream, printed in enumerate(self._printed):
                    if message.marked & 1 << stream:
                        printed.read_up_to(entry.number)
            self.inside.popleft()
            entry.outcome = entry.run.answered(message.answer)
            self.is_leaving |= message.is_last
            ended.append(entry)
        elif type(message) is Ready:
            self.is_ready = True
            self._patience.cancel()
            for printed in self._printed:
                printed.is_early = False
            self._owner.ready(self)
        else:
            assert isinstance(message, Logged | Progressed)
            for entry in self.inside:
                if entry.number == message.number:
                    _pass_on(message, entry.run)

    def _exited(self, how: Exit) -> None:
        self._patience.cancel()
        # What it has taken and not answered it has died of; what it has not taken is somebody else's.
        self._owner.dead(self)
        for printed in self._printed:
            printed.close()
        first = self.inside[0] if self.inside else None
        self.last_words = b"".join(printed.conclude(first) for printed in self._printed)
        if first is not None:
            first.outcome = first.run.answered(Died(self._story(how)))
        self._outbox.close()
        self._loop.remove_reader(self._channel.answers)
        self._channel.close()
        self._owner.lost(self, how)

    def _story(self, how: Exit) -> str:
        words = _GARBLED if self._is_garbled else in_words(how)
        process = f"the process that ran the job (pid {how.pid})"
        if self.doomed is not None:
            if how.code == -signal.SIGKILL:
                words = "it was killed by SIGKILL when its grace was over"
            return f"{process} was told to stop, and {words}"
        return f"{process} died: {words}"


def _pass_on(message: Logged | Progressed, run: Run) -> None:
    if isinstance(message, Logged):
        run.write_log(message.text, source=message.source, level=message.level)
    else:
        run.progressed(message.done, message.total)


def in_words(how: Exit) -> str:
    """Say how a child ended, and what that may mean."""
    if how.error is not None:
        return f"it could not be started ({how.error})"
    if how.code is None:
        return "somebody else in this program has waited for its end, so how it ended is not known"
    if how.code == LOST_PIPE:
        return "the job has closed the pipe through which it answers"
    if how.code >= 0:
        return f"it ended itself with exit code {how.code} (os._exit, say)"
    try:
        name = signal.Signals(-how.code).name
    except ValueError:
        name = f"signal {-how.code}"
    if name in {"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT"}:
        return f"it was killed by {name}: a crash in native code, most likely (the job's log may show where)"
    if name == "SIGKILL":
        return "it was killed by SIGKILL: by somebody, or by the system for want of memory"
    return f"it was killed by {name}"
