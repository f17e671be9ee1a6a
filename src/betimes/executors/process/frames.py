"""What the scheduler's process and a child say to each other, as bytes.

A frame is four bytes of length and a msgpack array. Requests go down one pipe, frames of the child come up
another. A request alone does not run: beside it goes a *ticket*, eight bytes with its number, down a pipe of
which the parent keeps the reading end, too. Whoever reads a ticket has it, and the kernel gives it to one of
the two: so what the child has not begun the parent can take back, at any moment and even from a dead child,
and both always agree on what was begun.

Shared with the child is one page of memory, too: what the parent writes there, the child can look at in the
midst of a job, without a thread and without a system call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from betimes.core.log import INFO
from betimes.core.remote import Answer, Call

PAGE_BYTES = 4096
DOOMED = 0
"""The word (64 bits) of the shared page that holds the number of the request that is to stop."""

LOOKS, TAKEN = (1, 3), (2, 4)
"""For stdout and stderr, the words of the page in which the parent keeps how often it has begun and ended a
look into that pipe (odd: it is looking), and how many bytes it has taken out of it in all."""

TICKET_BYTES = 8
LENGTH_BYTES = 4

MOST_BYTES = 64 * 1024 * 1024
"""The longest frame: arguments and results are bounded, and so are log lines."""

MOST_LOGGED = 1024 * 1024
"""Characters of one text for a job's log that cross; the end of a longer one is left out."""
STREAMS = ("stdout", "stderr")

LOST_PIPE = 113
"""The exit code of a child whose job has closed the pipe through which it answers."""


class Request(msgspec.Struct, frozen=True, array_like=True):
    """A call to run, and its number, which grows from request to request of one child."""

    number: int
    call: Call


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The child is up, and waits for tickets."""


class Answered(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A request's code has ended.

    Attributes:
        number: which request's.
        answer: how.
        marked: by a bit each, the streams in which a mark says where the output of this request ends; the
            others have had none since the last mark.
        is_last: the child ends after it.
    """

    number: int
    answer: Answer
    marked: int = 0
    is_last: bool = False


class Logged(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The code of a request wrote into its job's log."""

    number: int
    text: str
    source: str = "log"
    level: int = INFO


class Progressed(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The code of a request said how far it is."""

    number: int
    done: int | float
    total: int | float | None = None


FromChild: TypeAlias = Ready | Answered | Logged | Progressed

_encode = msgspec.msgpack.Encoder().encode
decode_request: Callable[[Any], Request] = msgspec.msgpack.Decoder(Request).decode
decode_from_child: Callable[[Any], FromChild] = msgspec.msgpack.Decoder(FromChild).decode


def frame_of(message: Request | FromChild) -> bytes:
    """Return a message as a frame.

    Raises:
        UnicodeEncodeError: a text in it cannot be carried (lone surrogates).
    """
    body = _encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


def tickets_of(numbers: Iterable[int]) -> bytes:
    """Return the tickets of these requests."""
    return b"".join(number.to_bytes(TICKET_BYTES, "little") for number in numbers)


def numbers_of(tickets: bytes) -> list[int]:
    """Return the numbers of the requests whose tickets these are."""
    return [
        int.from_bytes(tickets[at : at + TICKET_BYTES], "little")
        for at in range(0, len(tickets), TICKET_BYTES)
    ]


def mark_of(token: str) -> bytes:
    """Return what begins a mark in a child's output; the request's number and a line end follow.

    Args:
        token: what nobody prints by accident.
    """
    return f"\0betimes:{token}:".encode()


class FrameReader:
    """Puts the pieces that come out of a pipe together to frames.

    Attributes:
        is_broken: what follows the last frame is none: somebody else has written into the pipe.
    """

    __slots__ = ("_rest", "is_broken")

    def __init__(self) -> None:
        self._rest = bytearray()
        self.is_broken = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next piece, and return the bodies of the frames that are complete."""
        rest = self._rest
        rest += data
        end, at, bodies = len(rest), 0, []
        while end - at >= LENGTH_BYTES:
            begin = at + LENGTH_BYTES
            stop = begin + int.from_bytes(rest[at:begin], "little")
            if stop - begin > MOST_BYTES:
                self.is_broken = True
                break
            if stop > end:
                break
            bodies.append(bytes(rest[begin:stop]))
            at = stop
        if at:
            del rest[:at]
        return bodies
