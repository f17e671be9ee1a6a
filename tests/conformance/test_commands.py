"""The executor of commands: the one contract of all executors, and what real programs ask beside it."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.processes import processes

from betimes.core.command import CommandLine, CommandResult
from betimes.core.events import Succeeded
from betimes.core.outcome import Outcome, Raised
from betimes.errors import CommandFailed
from betimes.executors.command import CommandExecutor
from betimes.ports import Executor
from betimes.testing import InlineCommandExecutor
from betimes.testing.executor_contract import Bench, Code, ExecutorContract, Probe, Step, error_of, on_bench

GRACE_S = 20.0
MARKS: Iterator[int] = iter(range(1_000_000))


def line(*argv: str, **options: Any) -> CommandLine:
    return CommandLine(name="probe", argv=argv, **options)


def shell(text: str, *args: str, **options: Any) -> CommandLine:
    return line("/bin/sh", "-c", text, "probe", *args, **options)


def children() -> set[int]:
    """The children of this process, zombies included."""
    return {each.pid for each in processes() if each.parent == os.getpid()}


def running(mark: str) -> list[int]:
    """The processes whose command line has this mark."""
    return [each.pid for each in processes() if mark in each.command]


def gone(mark: str) -> None:
    """Wait until no process has this mark: what was killed may take a moment to be dead."""
    for _ in range(500):
        if not running(mark):
            return
        threading.Event().wait(0.02)
    raise AssertionError(f"these still run: {running(mark)}")


def open_files() -> list[int]:
    return sorted(int(each.name) for each in Path("/dev/fd").iterdir())


@contextmanager
def few_files(more: int) -> Iterator[None]:
    """Let this process open only so many files more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files()[-1] + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def printing(step: Step) -> Code:
    """Code whose command prints what the step returned."""

    def code() -> CommandLine:
        value = step()
        return line("/bin/echo", "-n", "" if value is None else str(value))

    return code


class CommandProbe(Probe):
    """A run whose result is what its command printed."""

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self.result: CommandResult | None = None
        self.error: CommandFailed | None = None

    def returned(self, value: object) -> Outcome:
        assert isinstance(value, CommandResult)
        self.result = value
        return super().returned(value.stdout)

    def raised(self, error: BaseException) -> Outcome:
        if isinstance(error, CommandFailed):
            self.error = error
        return super().raised(error)


class CommandBench(Bench):
    """A bench of commands."""

    probe = CommandProbe

    def start_line(self, command: CommandLine) -> CommandProbe:
        probe = self.start(lambda: command)
        assert isinstance(probe, CommandProbe)
        return probe

    async def run(self, command: CommandLine) -> CommandProbe:
        probe = self.start_line(command)
        await self.end_of(probe)
        return probe

    async def said(self, probe: Probe, text: str) -> None:
        """Wait until the program has said so."""
        async with asyncio.timeout(30):
            while not any(line == text for _, line in probe.log):
                await asyncio.get_running_loop().run_in_executor(None, threading.Event().wait, 0.01)


class CommandContract(ExecutorContract):
    """What holds of commands, however they are run."""

    code = staticmethod(printing)

    bench = CommandBench

    def play(self, scene: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
        before = open_files()
        super().play(scene)
        assert open_files() == before
        assert children() == set()
        for thread in threading.enumerate():
            if thread.name == "betimes-child":
                thread.join(30)
                assert not thread.is_alive()

    @on_bench
    async def test_what_the_program_writes_is_its_result_and_its_log(self, bench: Any) -> None:
        probe = await bench.run(shell("echo one; echo two >&2; printf three"))
        assert probe.result == CommandResult(exit_code=0, stdout="one\nthree", stderr="two\n")
        assert sorted(probe.log) == [("stderr", "two"), ("stdout", "one"), ("stdout", "three")]

    @on_bench
    async def test_a_code_that_is_no_success_fails_the_run(self, bench: Any) -> None:
        probe = await bench.run(shell("echo out; echo no such table >&2; exit 3"))
        failed = probe.error
        assert isinstance(failed, CommandFailed)
        assert (failed.exit_code, failed.stdout, failed.stderr) == (3, "out\n", "no such table\n")
        (outcome,) = probe.outcomes
        assert isinstance(outcome, Raised)
        assert outcome.may_retry
        assert outcome.error.type == "betimes.errors.CommandFailed"
        assert outcome.error.message == "probe exited with code 3; its stderr ends: no such table"
        probe = await bench.run(shell("exit 3", ok_codes=frozenset({0, 3})))
        assert probe.result == CommandResult(exit_code=3)

    @on_bench
    async def test_codes_that_are_not_to_be_retried_end_the_job(self, bench: Any) -> None:
        for code, may_retry in ((75, True), (1, False)):
            probe = await bench.run(shell('exit "$1"', str(code), retry_codes=frozenset({75})))
            assert isinstance(probe.outcomes[0], Raised)
            assert probe.outcomes[0].may_retry is may_retry

    @on_bench
    async def test_a_signal_is_said_by_its_name(self, bench: Any) -> None:
        probe = await bench.run(shell("kill -SEGV $$"))
        assert isinstance(probe.error, CommandFailed)
        assert probe.error.exit_code == -signal.SIGSEGV
        assert "probe was killed by SIGSEGV" in str(probe.error)

    @pytest.mark.parametrize(
        ("command", "text"),
        [
            (line("no-such-program"), "there is no program 'no-such-program': install it"),
            (line("/etc/passwd"), "'/etc/passwd' may not be executed: see to its permissions"),
            (
                line("true", cwd="/no/such"),
                "its working directory '/no/such' cannot be entered (No such file",
            ),
            (
                line("true", cwd="/etc/passwd"),
                "its working directory '/etc/passwd' cannot be entered (Not a d",
            ),
            (line("true", env={"PATH": "/nowhere"}), "there is no program 'true'"),
            (line("true", "x" * 3_000_000), "Argument list too long"),
        ],
    )
    def test_what_cannot_be_started_says_why_and_is_not_retried(
        self, command: CommandLine, text: str
    ) -> None:
        async def scene(bench: Any) -> None:
            probe = await bench.run(command)
            (outcome,) = probe.outcomes
            assert isinstance(outcome, Raised)
            assert outcome.error.message.startswith("probe could not be started: ")
            assert text in outcome.error.message
            assert not outcome.may_retry
            assert await bench.end_of(bench.start(printing(lambda: 1))) == [Succeeded(0, b"1")]

        self.play(scene)

    @pytest.mark.parametrize(
        ("script", "text"),
        [
            (
                "#!/no/such/interpreter\n",
                "'./script' is there, and the interpreter that its first line",
            ),
            ("echo it runs\n", "'./script' is no program of this system: a script begins with a line such"),
        ],
    )
    def test_a_script_that_does_not_say_what_runs_it_is_told_so(
        self, tmp_path: Path, script: str, text: str
    ) -> None:
        (tmp_path / "script").write_text(script)
        (tmp_path / "script").chmod(0o755)

        async def scene(bench: Any) -> None:
            (outcome,) = (await bench.run(line("./script", cwd=str(tmp_path)))).outcomes
            assert isinstance(outcome, Raised)
            assert text in outcome.error.message
            assert not outcome.may_retry

        self.play(scene)

    @on_bench
    async def test_the_environment_is_this_process_own_with_changes(self, bench: Any) -> None:
        os.environ["BETIMES_TEST_A"] = os.environ["BETIMES_TEST_B"] = "inherited"
        try:
            env = {"BETIMES_TEST_A": "changed", "BETIMES_TEST_B": None, "odd.name": "x y"}
            probe = await bench.run(line("env", env=env))
        finally:
            del os.environ["BETIMES_TEST_A"], os.environ["BETIMES_TEST_B"]
        assert probe.result is not None
        seen = dict(each.split("=", 1) for each in probe.result.stdout.splitlines() if "=" in each)
        assert (seen["BETIMES_TEST_A"], seen["odd.name"]) == ("changed", "x y")
        assert "BETIMES_TEST_B" not in seen
        assert [seen[f"BETIMES_{name}"] for name in ("JOB_ID", "ATTEMPT", "FENCE")] == ["probe", "1", "1"]

    def test_it_runs_in_its_own_directory(self, tmp_path: Path) -> None:
        folder = tmp_path / "with spaces"
        folder.mkdir()

        async def scene(bench: Any) -> None:
            probe = await bench.run(line("/bin/pwd", "-P", cwd=str(folder)))
            assert probe.result == CommandResult(exit_code=0, stdout=f"{folder.resolve()}\n")

        self.play(scene)

    @on_bench
    async def test_input_is_fed_as_fast_as_it_is_read_while_output_comes(self, bench: Any) -> None:
        text = "0123456789abcde\n" * 60_000
        probe = await bench.run(line("cat", stdin=text))
        assert probe.result == CommandResult(exit_code=0, stdout=text)

    @on_bench
    async def test_a_program_may_leave_its_input_unread(self, bench: Any) -> None:
        probe = await bench.run(line("head", "-c3", stdin="x" * 2_000_000))
        assert probe.result == CommandResult(exit_code=0, stdout="xxx")
        probe = await bench.run(shell("exec <&-; echo closed", stdin="x" * 2_000_000))
        assert probe.result == CommandResult(exit_code=0, stdout="closed\n")

    @on_bench
    async def test_without_input_there_is_nothing_to_read(self, bench: Any) -> None:
        probe = await bench.run(line("cat"))
        assert probe.result == CommandResult(exit_code=0)

    @on_bench
    async def test_output_without_end_is_kept_at_its_end(self, bench: Any) -> None:
        probe = await bench.run(
            shell("yes | head -c 20000000; echo end; yes >&2 & sleep 0.1", max_output=1000)
        )
        assert probe.result is not None
        assert probe.result.stdout_truncated
        assert probe.result.stderr_truncated
        assert probe.result.stdout == "y\n" * 498 + "end\n"

    @on_bench
    async def test_a_child_that_holds_the_output_open_does_not_hold_up_the_end_and_dies(
        self, bench: Any
    ) -> None:
        mark = str(7_000_000 + next(MARKS))
        probe = await bench.run(shell(f"sleep {mark} & echo done"))
        assert probe.result == CommandResult(exit_code=0, stdout="done\n")
        gone(mark)

    @on_bench
    async def test_a_child_in_a_session_of_its_own_is_left_alone_and_not_waited_for(self, bench: Any) -> None:
        mark = str(7_000_000 + next(MARKS))
        probe = await bench.run(shell(f"setsid sleep {mark} & sleep 0.2; echo done"))
        assert probe.result == CommandResult(exit_code=0, stdout="done\n")
        (pid,) = running(mark)
        os.kill(pid, signal.SIGKILL)


class TestCommandExecutor(CommandContract):
    def make_executor(self, slots: int) -> Executor:
        return CommandExecutor(slots, grace_s=GRACE_S)

    def run(self, main: Coroutine[Any, Any, None]) -> None:
        asyncio.run(main)

    @on_bench
    async def test_runs_go_on_beside_each_other(self, bench: Any) -> None:
        slow = [bench.start_line(shell("echo begun; exec sleep 600")) for _ in range(3)]
        for probe in slow:
            await bench.said(probe, "begun")
        await bench.run(line("true"))
        for probe in slow:
            bench.executor.cancel(probe)
        await bench.end_of(*slow)
        for probe in slow:
            error = r"probe was killed by SIGTERM \(pid \d+\); it wrote nothing to stderr"
            assert re.fullmatch(error, str(probe.error))

    @on_bench
    async def test_lines_come_while_the_program_runs(self, bench: Any) -> None:
        probe = bench.start_line(shell("echo out; echo err >&2; exec sleep 600"))
        await bench.said(probe, "out")
        await bench.said(probe, "err")
        bench.executor.cancel(probe)
        await bench.end_of(probe)

    @on_bench
    async def test_a_run_that_is_cancelled_before_it_begins_never_does(self, bench: Any) -> None:
        asked: list[int] = []
        probe = bench.start(printing(lambda: asked.append(1)))
        bench.executor.cancel(probe)
        assert error_of((await bench.end_of(probe))[0]).endswith("CancelledError")
        assert asked == []

    def test_a_program_that_is_cancelled_while_it_starts_does_nothing(self, tmp_path: Path) -> None:
        async def scene(bench: Any) -> None:
            for number in range(30):
                probe = bench.start_line(shell(f"sleep 0.2; : > {tmp_path}/{number}"))
                for _ in range(number % 3 + 1):
                    await asyncio.sleep(0)  # noqa: TID251 - turns of the loop, and no time
                bench.executor.cancel(probe)
                await bench.end_of(probe)

        self.play(scene)
        assert list(tmp_path.iterdir()) == []

    @on_bench
    async def test_a_cancel_reaches_the_whole_group_which_may_clean_up(self, bench: Any) -> None:
        mark = str(7_000_000 + next(MARKS))
        probe = bench.start_line(
            shell(f"trap 'echo cleaned; exit 0' TERM; sleep {mark} & echo begun; wait; wait")
        )
        await bench.said(probe, "begun")
        bench.executor.cancel(probe)
        bench.executor.cancel(probe)
        await bench.end_of(probe)
        assert probe.result == CommandResult(exit_code=0, stdout="begun\ncleaned\n")
        gone(mark)

    def test_what_does_not_stop_is_killed_after_the_grace_with_its_children(self) -> None:
        mark = str(7_000_000 + next(MARKS))

        async def main() -> None:
            bench = CommandBench(CommandExecutor(1, grace_s=0.1))
            probe = bench.start_line(
                shell(f"trap '' TERM; sh -c 'sleep {mark}' & echo begun; while :; do sleep {mark}; done")
            )
            await bench.said(probe, "begun")
            bench.executor.cancel(probe)
            await bench.end_of(probe)
            assert "probe was killed by SIGKILL" in str(probe.error)
            gone(mark)
            await bench.executor.close()

        asyncio.run(main())

    @on_bench
    async def test_close_leaves_nothing_running(self, bench: Any) -> None:
        mark = str(7_000_000 + next(MARKS))
        probes = [bench.start_line(shell(f"trap '' TERM; echo begun; sleep {mark}; :")) for _ in range(3)]
        for probe in probes:
            await bench.said(probe, "begun")
        probes.append(bench.start_line(line("sleep", mark)))
        await bench.executor.close()
        assert [len(probe.outcomes) for probe in probes] == [1] * 4
        gone(mark)

    @on_bench
    async def test_a_guard_that_was_killed_is_replaced(self, bench: Any) -> None:
        await bench.run(line("true"))
        (guard,) = children()
        slow = bench.start_line(shell("echo begun; exec sleep 600"))
        await bench.said(slow, "begun")
        os.kill(guard, signal.SIGKILL)
        async with asyncio.timeout(30):
            while children() & {guard}:
                await bench.run(line("true"))
        await bench.run(line("true"))
        assert len(children()) == 2  # the new one, and the command
        bench.executor.cancel(slow)
        await bench.end_of(slow)

    def test_too_many_open_files_fail_a_run_which_may_be_retried(self) -> None:
        async def scene(bench: Any) -> None:
            taken: list[int] = []
            with suppress(OSError):
                while True:
                    taken.append(os.open("/dev/null", os.O_RDONLY))
            for left in (0, 1, 3, 5, 7):
                for _ in range(left):
                    os.close(taken.pop())
                probe = bench.start_line(line("cat", stdin="in"))
                await bench.end_of(probe)
                if probe.result is not None:
                    continue
                (outcome,) = probe.outcomes
                assert isinstance(outcome, Raised)
                assert outcome.may_retry, outcome.error
                assert "Too many open files" in outcome.error.message
            for fd in taken:
                os.close(fd)
            assert (await bench.run(line("true"))).result is not None

        with few_files(120):
            self.play(scene)


class TestInlineCommandExecutor(CommandContract):
    def make_executor(self, slots: int) -> Executor:
        return InlineCommandExecutor(slots=slots)
