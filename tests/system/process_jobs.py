"""What the tests of process jobs have run: functions that a child process finds by name."""

from __future__ import annotations

import base64
import contextvars
import ctypes
import importlib
import marshal
import os
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

from betimes import Context, NonRetryableError, Scheduler, Snooze, current_job

label: contextvars.ContextVar[str] = contextvars.ContextVar("label", default="none")
scheduler = Scheduler()
kept: list[bytes] = []


class OwnError(Exception):
    pass


class Unshowable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def run_step(module: str, code: str) -> object:
    """Run a function of a test, which has no name that could be imported."""
    step = types.FunctionType(marshal.loads(base64.b64decode(code)), vars(importlib.import_module(module)))
    return step()


def write(path: str, text: str) -> None:
    """Write a file that is there whole, or not at all."""
    Path(f"{path}.new").write_text(text)
    Path(f"{path}.new").rename(path)


def block_sigterm() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def enormous_progress(ctx: Context) -> None:
    ctx.progress(10**30, 10**31)


def pid() -> int:
    return os.getpid()


def pid_of(number: int) -> list[int]:
    return [number, os.getpid()]


def nap(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def begin(flag: str, seconds: float = 600) -> int:
    """Say that it has begun, and stay."""
    write(flag, str(os.getpid()))
    time.sleep(seconds)
    return os.getpid()


def append(path: str, text: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{text}\n")


def kill_self(number: int = 9) -> None:
    os.kill(os.getpid(), number)
    time.sleep(600)


def leave(code: int) -> None:
    os._exit(code)


def crash() -> None:
    ctypes.string_at(0)


def run_out_of_files() -> None:
    os.closerange(3, 4096)


def close_and_reopen(path: str) -> None:
    """Close all files, and open others under the same numbers."""
    os.closerange(0, 4096)
    for _ in range(30):
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def close_stdout(path: str) -> str:
    os.close(1)
    os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    return "done"


def write_into_every_pipe() -> None:
    for fd in range(3, 64):
        try:
            os.write(fd, b"\xff" * 64)
        except OSError:
            continue


def go_out(code: int) -> None:
    sys.exit(code)


def interrupt() -> None:
    raise KeyboardInterrupt


def fail(text: str) -> None:
    raise OwnError(text)


def fail_for_good() -> None:
    raise NonRetryableError("no")


def fail_without_words() -> None:
    raise Unshowable


def snooze() -> None:
    raise Snooze(3600)


def unstorable() -> Any:
    return object()


def huge(size: int) -> str:
    return "x" * size


def flood(size: int) -> str:
    """Print so much, by lines of 100 bytes, to both streams."""
    piece = (b"y" * 99 + b"\n") * 1000
    for _ in range(size // len(piece) + 1):
        os.write(1, piece)
        os.write(2, piece)
    print("the end")
    return "done"


def say(number: int) -> int:
    print(f"out {number}")
    print(f"err {number}", file=sys.stderr)
    os.write(1, f"half {number}".encode())
    return number


def progress_and_log(ctx: Context) -> dict[str, Any]:
    for done in range(100):
        ctx.progress(done, 100)
    ctx.progress(100, 100)
    ctx.log.info("from the child")
    here = current_job()
    return {
        "job_id": here.job_id,
        "task": ctx.task,
        "attempt": ctx.attempt,
        "fence": ctx.fence,
        "has_deadline": ctx.deadline is not None,
        "scheduled_for": ctx.scheduled_for is not None,
        "cancelled": ctx.cancelled,
    }


def look(flag: str, ctx: Context) -> str:
    """Go on until it is told, and swallow that; says in a file what it has seen."""
    try:
        write(flag, "begun")
        while True:
            time.sleep(0.01)
    except BaseException as error:  # noqa: BLE001 - that is the point
        write(flag, f"{type(error).__name__} {ctx.cancelled}")
        return "swallowed"


def tidy(flag: str, done: str) -> None:
    try:
        write(flag, "begun")
        time.sleep(600)
    finally:
        Path(done).write_text("tidied")


class Dawdler:
    """Takes its time to go, in a place from which no exception gets out."""

    def __init__(self, flag: str) -> None:
        self.flag = flag

    def __del__(self) -> None:
        write(self.flag, "begun")
        time.sleep(600)


def tidy_after_a_dawdler(flag: str, done: str) -> None:
    try:
        dawdler = Dawdler(flag)
        del dawdler
        time.sleep(600)
    finally:
        Path(done).write_text("tidied")


def tidy_at_the_second_signal(flag: str, done: str, go: str) -> None:
    """Not see any signal until there is a file `go`: as if the first one had come at a bad moment."""
    signal_in_c = ctypes.CDLL(None).signal
    signal_in_c.restype, signal_in_c.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_void_p)
    ignored = ctypes.c_void_p(1)

    def hear_again() -> None:
        while not Path(go).exists():
            time.sleep(0.01)
        signal_in_c(signal.SIGTERM, usual)

    usual = signal_in_c(signal.SIGTERM, ignored)
    threading.Thread(target=hear_again, daemon=True).start()
    tidy(flag, done)


def stubborn(flag: str) -> None:
    write(flag, str(os.getpid()))
    while True:
        try:
            time.sleep(600)
        except BaseException:  # noqa: BLE001 - that is the point
            continue


def grandchildren(flag: str, seconds: float) -> list[int]:
    pids = [subprocess.Popen(["sleep", "600"]).pid for _ in range(2)]
    write(flag, " ".join(map(str, pids)))
    time.sleep(seconds)
    return pids


def files() -> list[str]:
    """What the open files of this process are."""
    names = []
    for each in Path("/proc/self/fd").iterdir():
        try:
            names.append(str(each.readlink()))
        except OSError:
            continue
    return names


def set_label() -> str:
    before = label.get()
    label.set("dirty")
    return before


def fork() -> int:
    """Fork, and return in both."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return os.getpid()


def keep(size: int) -> int:
    kept.append(b"x" * size)
    return os.getpid()


def surroundings() -> dict[str, Any]:
    return {
        "cwd": str(Path.cwd()),
        "flag": os.environ.get("BETIMES_TEST_FLAG"),
        "thread": threading.current_thread() is threading.main_thread(),
        "stdin": sys.stdin.read(),
    }


def open_scheduler() -> None:
    with scheduler.blocking():
        pass


def submit_blocking() -> None:
    task = scheduler.task(name="other")(pid)
    task.submit_blocking()


def own_handler() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def background_noise() -> None:
    def print_on() -> None:
        for _ in range(50):
            time.sleep(0.002)
            print("noise")

    threading.Thread(target=print_on, daemon=True).start()


def cut_then_crash() -> None:
    for fd in range(3, 64):
        try:
            os.ftruncate(fd, 0)
        except OSError:
            continue
    crash()
