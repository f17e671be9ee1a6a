"""A bare child: reads frames from its input, calls one function for each, and writes a frame for each end.

Started as `python -m bench.limits.pipe_child WHAT`, with the name of a function in `bench.process_work`. A
frame is the length of what follows, in four bytes, and that. Each end is told at once, by a write of its own,
for whoever waits for a job must not have to wait for the next.
"""

from __future__ import annotations

import os
import sys

from bench.process_work import WORK

HEAD = 4
READ = 65_536


def frame(content: bytes) -> bytes:
    """Return a frame with this content."""
    return len(content).to_bytes(HEAD, "little") + content


def contents(read: bytes) -> tuple[list[bytes], bytes]:
    """Return the contents of all whole frames, and what is left over."""
    found = []
    start = 0
    while start + HEAD <= len(read):
        end = start + HEAD + int.from_bytes(read[start : start + HEAD], "little")
        if end > len(read):
            break
        found.append(read[start + HEAD : end])
        start = end
    return found, read[start:]


def main(what: str) -> None:
    """Serve until the input ends."""
    function = WORK[what]
    rest = b""
    while chunk := os.read(0, READ):
        calls, rest = contents(rest + chunk)
        for _ in calls:
            os.write(1, frame(str(function()).encode()))


if __name__ == "__main__":
    main(sys.argv[1])
