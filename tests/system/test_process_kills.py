"""Process jobs are told to stop, and killed when they do not: they, and no other, with all they started."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import monotonic

from tests.system import process_jobs as jobs
from tests.system.process_stage import Stage, is_gone, play, until, wait_until

from betimes import CancelAnswer, JobStatus


def test_a_job_that_is_told_to_stop_carries_out_its_finally(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        job = await stage.submit(jobs.tidy, str(tmp_path / "flag"), str(tmp_path / "done"))
        await until((tmp_path / "flag").exists, "it has begun")
        assert await job.cancel() is CancelAnswer.REQUESTED
        assert await stage.end_of(job) is JobStatus.CANCELLED
        assert (tmp_path / "done").read_text() == "tidied"
        assert await job.cancel() is CancelAnswer.FINISHED

    play(scene)


def test_a_job_is_told_again_when_the_first_signal_is_lost(tmp_path: Path) -> None:
    flag, done, go = (tmp_path / name for name in ("flag", "done", "go"))

    async def scene(stage: Stage) -> None:
        job = await stage.submit(jobs.tidy_at_the_second_signal, str(flag), str(done), str(go))
        await until(flag.exists, "it has begun")
        assert await job.cancel() is CancelAnswer.REQUESTED
        go.touch()
        assert await stage.end_of(job) is JobStatus.CANCELLED
        assert done.read_text() == "tidied"

    play(scene)


def test_a_job_is_told_again_when_python_has_dropped_what_was_raised(tmp_path: Path) -> None:
    flag, done = tmp_path / "flag", tmp_path / "done"

    async def scene(stage: Stage) -> None:
        job = await stage.submit(jobs.tidy_after_a_dawdler, str(flag), str(done))
        await until(flag.exists, "it has begun")
        assert await job.cancel() is CancelAnswer.REQUESTED
        assert await stage.end_of(job) is JobStatus.CANCELLED
        assert done.read_text() == "tidied"

    play(scene)


def test_a_job_sees_in_its_context_that_it_was_told(tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    async def scene(stage: Stage) -> None:
        job = await stage.submit(jobs.look, str(flag))
        await until(flag.exists, "it has begun")
        await job.cancel()
        await stage.end_of(job)
        await until(lambda: flag.read_text() != "begun", "it has noticed")

    play(scene)
    assert flag.read_text() == "ToldToStop True"


def test_p26_a_process_job_is_dead_at_its_timeout_and_grace(tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    async def scene(stage: Stage) -> None:
        await stage.run(jobs.pid)  # on a busy machine a child may take longer to start than the timeout
        job = await stage.submit(jobs.stubborn, str(flag), timeout=2)
        assert await stage.end_of(job) is JobStatus.TIMED_OUT
        await until(flag.exists, "it has begun")
        pid = int(flag.read_text())
        await until(lambda: is_gone(pid), "it is dead")
        assert await stage.run(jobs.pid) != pid

    play(scene, grace=0.2, processes=1)


def test_what_a_job_has_started_dies_with_it(tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    async def scene(stage: Stage) -> None:
        job = await stage.submit(jobs.grandchildren, str(flag), 600)
        await until(lambda: flag.exists() and len(flag.read_text().split()) == 2, "it has begun")
        await job.cancel()
        assert await stage.end_of(job) is JobStatus.CANCELLED
        # SIGKILL has been sent by then; that the system has buried them may take a moment more.
        await until(lambda: all(is_gone(int(pid)) for pid in flag.read_text().split()), "they are dead")

    play(scene)


def test_what_a_job_has_left_running_dies_with_its_process(tmp_path: Path) -> None:
    pids: list[int] = []

    async def scene(stage: Stage) -> None:
        pids.extend(await stage.run(jobs.grandchildren, str(tmp_path / "flag"), 0))

    play(scene)
    for pid in pids:
        wait_until(lambda pid=pid: is_gone(pid), "it is dead")  # type: ignore[misc]


def test_the_next_job_in_the_same_process_is_not_hit() -> None:
    async def scene(stage: Stage) -> None:
        for _ in range(30):
            running = [await stage.submit(jobs.nap, 0.002) for _ in range(6)]
            await running[0].wait(timeout=40)
            answers = [await job.cancel() for job in running[1:3]]
            ends = [await stage.end_of(job) for job in running]
            for answer, end in zip(answers, ends[1:3], strict=True):
                expected = (
                    {JobStatus.COMPLETED}
                    if answer is CancelAnswer.FINISHED
                    else {
                        JobStatus.CANCELLED,
                        JobStatus.COMPLETED,
                    }
                )
                assert end in expected
            assert ends[3:] == [JobStatus.COMPLETED] * 3
            assert ends[0] is JobStatus.COMPLETED

    play(scene, processes=1)


def test_a_job_that_ignores_sigterm_does_not_spoil_the_process_for_the_next(tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    async def scene(stage: Stage) -> None:
        await stage.run(jobs.own_handler)
        job = await stage.submit(jobs.begin, str(flag))
        await until(flag.exists, "it has begun")
        await job.cancel()
        assert await stage.end_of(job) is JobStatus.CANCELLED

    play(scene, processes=1)


def test_a_job_that_blocks_sigterm_does_not_spoil_the_process_for_the_next(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        await stage.run(jobs.block_sigterm)
        job = await stage.submit(jobs.tidy, str(tmp_path / "flag"), str(tmp_path / "done"))
        await until((tmp_path / "flag").exists, "it has begun")
        await job.cancel()
        assert await stage.end_of(job) is JobStatus.CANCELLED
        assert (tmp_path / "done").read_text() == "tidied"

    play(scene, processes=1)


def test_case_048_cancelling_many_running_jobs_takes_nothing_down(tmp_path: Path) -> None:
    flags = [tmp_path / str(number) for number in range(12)]

    async def scene(stage: Stage) -> None:
        running = [await stage.submit(jobs.begin, str(flag)) for flag in flags]
        await until(lambda: all(flag.exists() for flag in flags), "all run")
        answers = [await job.cancel() for job in running]
        assert answers == [CancelAnswer.REQUESTED] * len(flags)
        assert [await stage.end_of(job) for job in running] == [JobStatus.CANCELLED] * len(flags)
        assert await stage.run(jobs.pid)
        assert [await job.cancel() for job in running] == [CancelAnswer.FINISHED] * len(flags)
        assert await stage.run(jobs.pid)

    play(scene, processes=12)


def test_case_066_a_job_killed_at_any_moment_leaves_the_pool_working() -> None:
    async def scene(stage: Stage) -> None:
        for number in range(20):
            late = await stage.submit(jobs.nap, 600.0, timeout=0.001 * (1 + number % 7))
            assert await stage.end_of(late) is JobStatus.TIMED_OUT
            assert await stage.run(jobs.nap, 0.0)

    play(scene, grace=0.05)


def test_case_076_async_and_process_jobs_alternate_without_a_freeze() -> None:
    async def scene(stage: Stage) -> None:
        async def look() -> int:
            return 1

        on_loop = stage.scheduler.task(look)
        for _ in range(20):
            assert await (await on_loop.submit()).result(timeout=40) == 1
            assert await stage.run(jobs.pid)
        assert (await stage.scheduler.metrics()).completed == 40

    play(scene)


def test_stopping_tells_what_runs_and_leaves_no_process(tmp_path: Path) -> None:
    flags = [tmp_path / "0", tmp_path / "1"]

    async def scene(stage: Stage) -> None:
        await stage.submit(jobs.begin, str(flags[0]))
        await stage.submit(jobs.stubborn, str(flags[1]))
        await until(lambda: all(flag.exists() for flag in flags), "both run")
        began = monotonic()
        await stage.scheduler.stop(cancel_running=True)
        assert monotonic() - began < 20
        assert all(is_gone(int(flag.read_text())) for flag in flags)

    play(scene, grace=0.3)


def test_a_scheduler_can_be_stopped_while_its_processes_start_and_started_again() -> None:
    async def scene(stage: Stage) -> None:
        for _ in range(3):
            job = await stage.submit(jobs.pid)
            await asyncio.sleep(0)
            await stage.scheduler.stop(cancel_running=True, timeout=0)
            await stage.scheduler.start()
            del job
        assert await stage.run(jobs.pid)

    play(scene)
