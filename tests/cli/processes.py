"""Commands as real processes: what they say is read while they run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from betimes.clock import monotonic_s

SOURCE = Path(__file__).parents[2] / "src"
WAIT_S = 40


class Program:
    """A command that runs. Its two outputs are read by threads, so that it never has to wait for us."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._out: list[str] = []
        self._err: list[str] = []
        self._changed = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read, args=(stream, lines), daemon=True)
            for stream, lines in ((process.stdout, self._out), (process.stderr, self._err))
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: object, lines: list[str]) -> None:
        for line in stream:  # type: ignore[attr-defined]
            with self._changed:
                lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    @property
    def stdout(self) -> str:
        return "".join(self._out)

    @property
    def stderr(self) -> str:
        return "".join(self._err)

    def wait_for(self, text: str, times: int = 1) -> None:
        """Wait until it has said this on stderr (so many times)."""
        self.wait_until(lambda: self.stderr.count(text) >= times, f"{text!r} on stderr")

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds, while it runs."""
        until = monotonic_s() + WAIT_S
        with self._changed:
            while not holds():
                is_over = self.process.poll() is not None and not any(
                    each.is_alive() for each in self._readers
                )
                assert not is_over, f"it ended before {what}: {self.process.returncode}\n{self.stderr}"
                assert monotonic_s() < until, f"waited in vain for {what}\n{self.stderr}"
                self._changed.wait(0.05)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """Wait for its end; return its exit code."""
        code = self.process.wait(WAIT_S)
        for reader in self._readers:
            reader.join(WAIT_S)
        return code

    def kill(self) -> None:
        """End it, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT_S)
        for reader, stream in zip(self._readers, (self.process.stdout, self.process.stderr), strict=True):
            reader.join(WAIT_S)
            assert stream is not None
            stream.close()


def start(folder: Path, arguments: Sequence[str], *, stdin: str | None = None) -> Program:
    """Start `python -m betimes …` in this folder."""
    process = subprocess.Popen(
        [sys.executable, "-X", "dev", "-m", "betimes", *arguments],
        cwd=folder,
        env=os.environ
        | {
            "PYTHONPATH": str(SOURCE),
            "PYTHONWARNINGS": "error",
            "PYTHONDONTWRITEBYTECODE": "1",  # two texts of one length within a second
            "PYTHONUNBUFFERED": "1",
        },
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if stdin is not None:
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
    return Program(process)
