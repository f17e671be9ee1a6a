"""The child's one loop: take a request, run its code, say how it ended."""

from __future__ import annotations

import faulthandler
import os
import resource
import select
import signal
import sys
import threading
from contextlib import suppress
from contextvars import Context as Variables
from pathlib import Path
from typing import TYPE_CHECKING, cast

from betimes.core.job import ErrorInfo
from betimes.core.outcome import AskedToCancel, AskedToSnooze, Raised, outcome_of
from betimes.core.remote import Answer, Call, Returned, Threw, WantsCancel, WantsSnooze
from betimes.core.retry import class_name
from betimes.errors import Snooze
from betimes.executors.process.frames import Answered, Ready, Request
from betimes.process_child.functions import MAIN, MAIN_HERE, Functions
from betimes.process_child.standing import StandIn
from betimes.process_child.telling import Bell
from betimes.process_child.wire import Answers, Output, Page, Requests
from betimes.runtime.context import Context, current_attempt
from betimes.runtime.openness import Openness

if TYPE_CHECKING:
    from betimes.runtime.attempt import Attempt

_STATM = Path("/proc/self/statm")

_AGAIN_S = 0.02
"""How long after a signal to stop the next one follows."""


class Program:
    """Runs requests until there are no more.

    Args:
        requests: what is to be run.
        answers: who is told.
        outputs: stdout and stderr.
        bell: how the code is told to stop.
        functions: finds the code.
        memory_limit: ends after a job that leaves more bytes in memory than this; None: never.
    """

    def __init__(
        self,
        requests: Requests,
        answers: Answers,
        outputs: tuple[Output, ...],
        *,
        bell: Bell,
        functions: Functions,
        memory_limit: int | None,
    ) -> None:
        self._requests = requests
        self._answers = answers
        self._outputs = outputs
        self._bell = bell
        self._functions = functions
        self._memory_limit = memory_limit
        self._pid = os.getpid()

    def serve(self) -> None:
        """Take and answer requests, until there are none or this process is used up."""
        self._answers.send(Ready())
        while (request := self._requests.next()) is not None:
            answered = self._answered(request)
            self._answers.send(answered)
            if answered.is_last:
                break

    def _answered(self, request: Request) -> Answered:
        stand_in = StandIn(request.number, request.call, self._bell, self._answers.send)
        answer = self._run(request, stand_in)
        if os.getpid() != self._pid:
            os._exit(0)  # the job has forked, and the copy came back from it: it is nobody's
        stand_in.settle()
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            with suppress(Exception):  # a job may have closed it, or put anything in its place
                stream.flush()  # type: ignore[union-attr]
        marked, is_whole = 0, True
        for bit, output in enumerate(self._outputs):
            if not output.is_whole:  # a job has closed it, and may have opened a file in its place
                is_whole = False
            elif output.mark(request.number):
                marked |= 1 << bit
        is_last = not is_whole or self._bell.is_told or self._is_too_large()
        return Answered(request.number, answer, marked, is_last)

    def _run(self, request: Request, stand_in: StandIn) -> Answer:
        # Two blocks, because the bell may ring up to the very end of the inner one, but once only.
        try:
            try:
                self._bell.arm(request.number)
                return Variables().run(self._call, request.call, stand_in)
            finally:
                self._bell.disarm()
        except BaseException as error:  # noqa: BLE001 - SystemExit and the like end the job, and nothing else
            return _threw(error)

    def _call(self, call: Call, stand_in: StandIn) -> Answer:
        # Only `Context` looks at it here: no engine is open in this process.
        current_attempt.set(cast("Attempt", stand_in))
        # An import runs callbacks whose exceptions Python drops: what is raised there may be lost.
        with self._bell.shielded():
            fn, signature = self._functions.find(call.module, call.qualname)
        context = None if signature.context_parameter is None else Context(stand_in)
        args, kwargs = signature.decode(call.payload, context)
        value = fn(*args, **kwargs)
        try:
            return Returned(signature.encode_result(value))
        except Exception:
            close = getattr(value, "close", None)
            if hasattr(value, "__await__") and close is not None:
                close()
            raise

    def _is_too_large(self) -> bool:
        return self._memory_limit is not None and _memory() > self._memory_limit


def _threw(error: BaseException) -> Answer:
    """Turn what the code raised into an answer that keeps nothing of it alive."""
    outcome = outcome_of(error, None, 1)
    if isinstance(outcome, AskedToSnooze):
        return WantsSnooze(outcome.delay_us)
    if isinstance(outcome, AskedToCancel):
        return WantsCancel(outcome.reason)
    assert isinstance(outcome, Raised)
    info = outcome.error
    if isinstance(error, Snooze):  # one that says no time: trying again would not help
        return Threw(info)
    prefix = f"{MAIN_HERE}."
    if prefix in info.type or prefix in info.traceback:
        info = ErrorInfo(
            type=info.type.replace(prefix, f"{MAIN}."),
            message=info.message,
            traceback=info.traceback.replace(prefix, f"{MAIN}."),
        )
    names = (class_name(kind).replace(prefix, f"{MAIN}.", 1) for kind in type(error).__mro__)
    return Threw(info, tuple(name.encode("utf-8", "replace").decode() for name in names))


def _memory() -> int:
    """Return how many bytes of memory this process takes (where that cannot be known, what it once took)."""
    try:
        return int(_STATM.read_bytes().split()[1]) * resource.getpagesize()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def guard(lifeline: int, bell: Bell) -> None:
    """End this process, with all that it has started, as soon as the scheduler's process is gone.

    Until then a byte in the lifeline means that the code was told to stop, and must hear it.
    """
    while os.read(lifeline, 1):
        bell.insist(lambda: select.select([lifeline], [], [], _AGAIN_S)[0])
    os.killpg(os.getpgid(0), signal.SIGKILL)


def main(
    *,
    files: tuple[int, int, int, int, int],
    token: str,
    argv: list[str],
    main_name: str | None,
    main_path: str | None,
    memory_limit: int | None,
) -> None:
    """Run as a child of a scheduler's process.

    Args:
        files: the descriptors of the requests, the tickets, the answers, the lifeline and the shared page.
        token: what begins the marks in its output.
        argv: the program's arguments, as its main process has them.
        main_name: the name of its main module, if it was started by name.
        main_path: the file of its main module, if it has one.
        memory_limit: the most bytes it may take after a job; None: any number.
    """
    for fd in files:
        os.set_inheritable(fd, False)  # noqa: FBT003 - the call takes it so
    requests, tickets, answers, lifeline, page_fd = files
    page = Page(page_fd)
    bell = Bell(page)
    threading.Thread(target=guard, args=(lifeline, bell), name="betimes-guard", daemon=True).start()
    sys.argv = argv
    faulthandler.enable(all_threads=False)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]
    Openness.is_elsewhere = True
    bell.install()
    Program(
        Requests(requests, tickets),
        Answers(answers),
        (Output(1, page, token), Output(2, page, token)),
        bell=bell,
        functions=Functions(main_name, main_path),
        memory_limit=memory_limit,
    ).serve()
