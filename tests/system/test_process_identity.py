"""A process is told apart from every other one, and makes ids that no other one makes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from betimes.clock import SystemClock, is_gone, process_identity, process_started
from betimes.ports import WorkerInfo

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

TELL_STARTS = """
import os
from dataclasses import replace
from pathlib import Path
from betimes.clock import process_started

Path("/proc/self/comm").write_text("a) (b 1 2")
print(process_started(os.getpid()), process_started(os.getppid()))
"""

TELL_BOOT = """
from betimes.clock import SystemClock

print(SystemClock().boot_id(), SystemClock().boottime())
"""

MAKE_IDS_ON_BOTH_SIDES_OF_A_FORK = """
import os
from betimes.clock import IdMaker, new_rng
from betimes.testing import VirtualClock

clock = VirtualClock()
make = IdMaker(clock, new_rng(1))
make()
child = os.fork()
who = "child" if child == 0 else "parent"
for _ in range(3):
    os.write(1, " ".join([who, *make.many(3)]).encode() + b"\\n")  # one call, so that lines stay whole
    clock.advance(1)
if child:
    os.waitpid(child, 0)
"""


def printed_by(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def test_the_identity_names_host_process_and_boot_and_stays() -> None:
    me = process_identity()
    assert (me.host, me.pid) == (socket.gethostname(), os.getpid())
    assert me.boot_id == SystemClock().boot_id()
    assert process_identity() == me


@needs_proc
def test_the_start_of_a_process_is_read_by_its_pid() -> None:
    me = process_identity()
    assert me.started is not None
    assert me.started > 0
    assert process_started(os.getpid()) == me.started
    assert me.pid_namespace.startswith("pid:")


@needs_proc
def test_a_name_with_blanks_and_brackets_does_not_hide_the_start() -> None:
    child, parent = printed_by(TELL_STARTS).split()
    assert int(parent) == process_started(os.getpid())
    assert int(child) >= int(parent)


@needs_proc
def test_a_process_that_is_gone_has_no_start() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert process_started(child.pid) is not None
    finally:
        child.communicate(b"\n", timeout=60)
    assert process_started(child.pid) is None


@needs_proc
def test_two_processes_of_one_boot_agree_on_the_boot_and_its_clock() -> None:
    clock = SystemClock()
    before = clock.boottime()
    boot_id, boottime = printed_by(TELL_BOOT).split()
    assert boot_id == clock.boot_id()
    assert before <= int(boottime) <= clock.boottime()


@needs_fork
def test_a_forked_child_never_repeats_its_parents_ids() -> None:
    lines = [line.split() for line in printed_by(MAKE_IDS_ON_BOTH_SIDES_OF_A_FORK).splitlines()]
    assert sorted(who for who, *_ in lines) == ["child"] * 3 + ["parent"] * 3
    ids = [one for _, *made in lines for one in made]
    assert len(set(ids)) == len(ids) == 18


def worker_here(**changes: object) -> WorkerInfo:
    """A worker of this very process."""
    me = process_identity()
    here = WorkerInfo(
        id="w",
        lease_us=1,
        host=me.host,
        pid=me.pid,
        pid_namespace=me.pid_namespace,
        process_started=me.started or 0,
        boot_id=me.boot_id,
    )
    return replace(here, **changes)  # type: ignore[arg-type]


@needs_proc
def test_p24_a_worker_whose_process_has_ended_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        worker = worker_here(pid=process.pid, process_started=process_started(process.pid))
        assert not is_gone(worker)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(worker), "it has ended, and nobody has waited for it"
        process.wait()
        assert is_gone(worker)


@needs_proc
def test_p24_a_worker_whose_pid_another_process_has_is_gone() -> None:
    assert not is_gone(worker_here())
    assert is_gone(worker_here(process_started=1))


@needs_proc
@pytest.mark.parametrize(
    "elsewhere",
    [{"host": "another"}, {"boot_id": "another"}, {"pid_namespace": "another"}, {"pid_namespace": ""}],
)
def test_of_a_worker_elsewhere_nothing_is_said(elsewhere: dict[str, str]) -> None:
    assert not is_gone(worker_here(process_started=1, **elsewhere))


@pytest.mark.parametrize("unknown", [{"pid": 0}, {"process_started": 0}])
def test_of_a_worker_that_tells_no_process_nothing_is_said(unknown: dict[str, int]) -> None:
    assert not is_gone(worker_here(**unknown))
