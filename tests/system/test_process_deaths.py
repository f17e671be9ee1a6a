"""A process that dies costs the job that was in it, and nothing else, however it dies."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.system import process_jobs as jobs
from tests.system.process_stage import Stage, kill, play, until

from betimes import JobStatus
from betimes.executors.process import launching
from betimes.executors.spawned import Program


@pytest.mark.parametrize(
    ("fn", "args", "words"),
    [
        (jobs.kill_self, (int(signal.SIGKILL),), "killed by SIGKILL"),
        (jobs.kill_self, (int(signal.SIGSEGV),), "killed by SIGSEGV"),
        (jobs.crash, (), "killed by SIGSEGV"),
        (jobs.leave, (0,), "exit code 0"),
        (jobs.leave, (7,), "exit code 7"),
        (jobs.run_out_of_files, (), "closed the pipe"),
        (jobs.write_into_every_pipe, (), "has written into its pipe"),
        (jobs.cut_then_crash, (), "killed by SIGSEGV"),
    ],
)
def test_p22_a_dying_process_costs_only_the_job_that_was_in_it(
    fn: Callable[..., Any], args: tuple[Any, ...], words: str
) -> None:
    async def scene(stage: Stage) -> None:
        before = [await stage.submit(jobs.say, number) for number in range(20)]
        killer = await stage.submit(fn, *args)
        after = [await stage.submit(jobs.say, number) for number in range(20)]
        for number, job in enumerate(before):
            assert await job.result(timeout=40) == number
        for number, job in enumerate(after):
            assert await job.result(timeout=40) == number
            assert (await job.info()).attempt == 1
        assert await stage.end_of(killer) is JobStatus.FAILED
        error = str((await killer.info()).error)
        assert "ProcessDied" in error
        assert words in error

    play(scene)


def test_case_064_a_dead_worker_process_does_not_break_the_pool(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        flags = [tmp_path / str(number) for number in range(3)]
        innocent = [await stage.submit(jobs.begin, str(flag), 1.0) for flag in flags]
        await until(lambda: all(flag.exists() for flag in flags), "three run")
        killer = await stage.submit(jobs.kill_self)
        assert await stage.end_of(killer) is JobStatus.FAILED
        assert "SIGKILL" in str((await killer.info()).error)
        later = [await stage.submit(jobs.pid) for _ in range(10)]
        pids = {await job.result(timeout=40) for job in later}
        for flag, job in zip(flags, innocent, strict=True):
            assert await job.result(timeout=40) == int(flag.read_text())
            assert (await job.info()).attempt == 1
        assert pids.isdisjoint({os.getpid()})
        metrics = await stage.scheduler.metrics()
        assert (metrics.completed, metrics.failed, metrics.attempts) == (13, 1, 14)

    play(scene, processes=4)


def test_a_process_that_is_killed_from_outside_while_it_rests_costs_nobody_anything() -> None:
    async def scene(stage: Stage) -> None:
        for _ in range(3):
            pid = await stage.run(jobs.pid)
            kill(pid)
            assert await stage.run(jobs.pid) != pid

    play(scene, processes=1)


def test_retries_of_a_job_that_kills_its_process_follow_its_policy() -> None:
    async def scene(stage: Stage) -> None:
        job = await stage.submit(jobs.kill_self, retry=3)
        # The back-off is at most 1 s and 2 s.
        assert await stage.end_of(job) is JobStatus.FAILED
        assert (await job.info()).attempt == 3

    play(scene)


def test_a_job_that_may_start_only_once_never_waits_in_a_process_and_is_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "runs"

    async def scene(stage: Stage) -> None:
        for _ in range(60):
            await stage.submit(jobs.pid)
        once = [
            await stage.submit(jobs.append, str(path), str(n), delivery="at_most_once") for n in range(20)
        ]
        killer = await stage.submit(jobs.kill_self, delivery="at_most_once", retry=5)
        for job in once:
            await job.result(timeout=40)
        assert await stage.end_of(killer) is JobStatus.FAILED
        assert sorted(map(int, path.read_text().split())) == list(range(20))

    play(scene)


def test_a_job_that_closes_all_files_and_opens_others_finds_nothing_of_ours_in_them(tmp_path: Path) -> None:
    path = tmp_path / "theirs"

    async def scene(stage: Stage) -> None:
        assert "closed the pipe" in await stage.error_of(jobs.close_and_reopen, str(path))
        assert await stage.run(jobs.say, 1) == 1
        assert path.read_bytes() == b""

    play(scene, processes=1)


def test_a_job_that_replaces_its_stdout_keeps_its_result_and_its_process_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "theirs"

    async def scene(stage: Stage) -> None:
        first = await stage.run(jobs.pid)
        assert await stage.run(jobs.close_stdout, str(path)) == "done"
        assert await stage.run(jobs.pid) != first
        assert path.read_bytes() == b""

    play(scene, processes=1)


def test_a_job_that_forks_is_answered_once() -> None:
    async def scene(stage: Stage) -> None:
        pid = await stage.run(jobs.pid)
        assert await stage.run(jobs.fork) == pid
        assert await stage.run(jobs.pid) == pid

    play(scene, processes=1)


def test_what_a_job_raises_or_returns_is_its_own_matter_and_the_process_goes_on() -> None:
    async def scene(stage: Stage) -> None:
        pid = await stage.run(jobs.pid)
        assert await stage.error_of(jobs.fail, "boom") == "tests.system.process_jobs.OwnError: boom"
        assert "cannot be shown" in await stage.error_of(jobs.fail_without_words)
        assert "PayloadError" in await stage.error_of(jobs.unstorable)
        assert "SystemExit" in await stage.error_of(jobs.go_out, 3)
        assert "KeyboardInterrupt" in await stage.error_of(jobs.interrupt)
        assert "bytes of JSON" in await stage.error_of(jobs.huge, 100_000_000)
        assert len(await stage.run(jobs.huge, 10_000_000)) == 10_000_000
        assert await stage.run(jobs.pid) == pid

    play(scene, processes=1)


def test_the_retry_policy_knows_the_errors_of_another_process() -> None:
    async def scene(stage: Stage) -> None:
        for fn, policy, attempts in (
            (jobs.fail_without_words, 2, 2),
            (jobs.fail_for_good, 5, 1),
            (jobs.unstorable, 5, 1),
        ):
            job = await stage.submit(fn, retry=policy)
            assert await stage.end_of(job) is JobStatus.FAILED
            assert (await job.info()).attempt == attempts
        snoozed = await stage.submit(jobs.snooze)
        async with asyncio.timeout(40):
            while await snoozed.status() is not JobStatus.DELAYED:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)

    play(scene)


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_start_that_fails_by_chance_is_charged_to_nobody(
    monkeypatch: pytest.MonkeyPatch, deaths: int
) -> None:
    programs = ["/bin/false", "/no/such/python"][:deaths]
    real = launching.program_of

    def program_of(*args: Any) -> Program:
        return replace(real(*args), argv=[programs.pop()]) if programs else real(*args)

    async def scene(stage: Stage) -> None:
        assert await stage.run(jobs.pid)
        assert not programs

    monkeypatch.setattr("betimes.executors.process.child.program_of", program_of)
    play(scene, processes=1)


def test_a_process_for_which_there_are_no_files_leaves_none_open(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = [OSError(24, "Too many open files"), FileNotFoundError(2, "the directory is gone")]
    real = launching.program_of

    def program_of(*args: Any) -> Program:
        if errors:
            raise errors.pop()
        return real(*args)

    async def scene(stage: Stage) -> None:
        assert await stage.run(jobs.pid)

    monkeypatch.setattr("betimes.executors.process.child.program_of", program_of)
    play(scene, processes=1)


def test_a_process_that_cannot_start_ends_the_run_that_needs_it_with_what_it_wrote(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene(stage: Stage) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("sys.path", ["/nowhere"])
            error = await stage.error_of(jobs.pid)
            assert "did not start" in error
            assert "No module named" in error
        with monkeypatch.context() as patch:
            patch.setattr("sys.executable", "/no/such/python")
            error = await stage.error_of(jobs.pid)
            assert "could not be started" in error
        assert await stage.run(jobs.pid)

    play(scene)
