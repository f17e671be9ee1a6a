"""Commands as tasks: registered, submitted, retried, timed out and cancelled like any other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.processes import is_running

from betimes import (
    CancelAnswer,
    CommandFailed,
    CommandResult,
    ConfigurationError,
    JobCancelled,
    JobFailed,
    JobStatus,
    JobTimedOut,
    PayloadError,
    RetryPolicy,
    Scheduler,
    cron,
)
from betimes.testing import Jobs, inline_mode

WAIT_S = 30


def run(scene: Callable[[Scheduler], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Run a scene with a scheduler in real time: its programs are real."""

    async def main() -> None:
        scheduler = Scheduler(watchdog=None, **{"grace": 20} | options)
        async with scheduler, asyncio.timeout(WAIT_S):
            await scene(scheduler)

    asyncio.run(main())


async def begun(job: Any) -> None:
    """Wait until the command has written its first line to the job's log."""
    while not await job.log():
        await asyncio.get_running_loop().run_in_executor(None, threading.Event().wait, 0.02)


def test_a_command_returns_what_its_program_wrote() -> None:
    async def scene(scheduler: Scheduler) -> None:
        sort = scheduler.command("sort", ["sort"])
        job = await sort.submit("-r", stdin="a\nb\n")
        assert await job.result() == CommandResult(exit_code=0, stdout="b\na\n")
        assert [(line.text, line.source) for line in await job.log()] == [("b", "stdout"), ("a", "stdout")]
        greet = scheduler.command("greet", 'echo "$1, $NAME"; pwd', env={"NAME": "you"}, cwd="/")
        job = await greet.submit("hello; exit 1", env={"NAME": "ada"})
        assert (await job.result()).stdout == "hello; exit 1, ada\n/\n"
        many = await scheduler.submit_many([greet.bind("a"), greet.using(priority=2).bind("b", cwd="/usr")])
        assert [(await job.result()).stdout for job in many] == ["a, you\n/\n", "b, you\n/usr\n"]

    run(scene)


def test_a_code_that_is_no_success_fails_the_job_and_says_why() -> None:
    async def scene(scheduler: Scheduler) -> None:
        dump = scheduler.command("dump", 'echo "no table $1" >&2; exit 3')
        job = await dump.submit("users")
        with pytest.raises(
            JobFailed, match="dump exited with code 3; its stderr ends: no table users"
        ) as error:
            await job.result()
        assert error.value.error_type == "betimes.errors.CommandFailed"
        assert [(line.text, line.source) for line in await job.log()] == [("no table users", "stderr")]
        assert "exited with code 3" in str(await job.explain())

    run(scene)


def test_a_failed_command_is_tried_again(tmp_path: Path) -> None:
    async def scene(scheduler: Scheduler) -> None:
        retry = RetryPolicy(5, base_delay=0)
        text = 'echo "try $BETIMES_ATTEMPT of $BETIMES_JOB_ID"; test "$BETIMES_ATTEMPT" -gt 2 || exit 75'
        flaky = scheduler.command("flaky", text, retry=retry, retry_codes=[75])
        job = await flaky.submit()
        assert (await job.result()).stdout == f"try 3 of {job.id}\n"
        assert [(line.attempt, line.text) for line in await job.log()] == [
            (number, f"try {number} of {job.id}") for number in (1, 2, 3)
        ]
        broken = scheduler.command("broken", "exit 2", retry=retry, retry_codes=75)
        job = await broken.submit()
        assert await job.wait() is JobStatus.FAILED
        assert (await job.info()).attempt == 1

    run(scene)


def test_a_program_that_is_not_there_fails_its_job_at_once() -> None:
    async def scene(scheduler: Scheduler) -> None:
        job = await scheduler.command("nothing", ["no-such-program"], retry=5).submit()
        with pytest.raises(JobFailed, match="nothing could not be started: there is no program"):
            await job.result()
        assert (await job.info()).attempt == 1

    run(scene)


def test_p26_a_command_that_is_late_is_killed_and_its_outcome_is_a_timeout() -> None:
    async def scene(scheduler: Scheduler) -> None:
        stubborn = scheduler.command(
            "stubborn", "trap '' TERM; echo begun; while :; do sleep 1; done", timeout=0.3, retry=2
        )
        job = await stubborn.submit()
        with pytest.raises(JobTimedOut):
            await job.result()
        info = await job.info()
        assert [attempt.outcome for attempt in info.attempts] == ["timed_out", "timed_out"]

    run(scene, grace=0.1)


def test_p13_a_cancel_of_a_command_is_over_when_its_process_is_dead(tmp_path: Path) -> None:
    async def scene(scheduler: Scheduler) -> None:
        dead = tmp_path / "dead"
        text = f"trap 'sleep 0.2; : > {dead}; exit 1' TERM; echo begun; while :; do sleep 0.05; done"
        job = await scheduler.command("slow", text).submit()
        await begun(job)
        assert await job.cancel() is CancelAnswer.REQUESTED
        with pytest.raises(JobCancelled):
            await job.result()
        assert dead.exists()

    run(scene)


def test_p13_a_command_that_was_cancelled_before_it_started_never_starts(tmp_path: Path) -> None:
    async def scene(scheduler: Scheduler) -> None:
        touch = scheduler.command("touch", ["touch"])
        jobs = [await touch.using(delay="1h").submit(f"{tmp_path}/a")]
        assert await jobs[0].cancel() is CancelAnswer.CANCELLED
        blocker = await scheduler.command("blocker", "echo begun; exec sleep 600").submit()
        await begun(blocker)
        jobs += [await touch.submit(f"{tmp_path}/{number}") for number in range(5)]
        for job in jobs[1:]:
            assert await job.cancel() is CancelAnswer.CANCELLED
        await blocker.cancel()
        await blocker.wait()

    run(scene, concurrency=1)
    assert list(tmp_path.iterdir()) == []


def test_stop_gives_back_what_does_not_end_in_time_and_leaves_nothing_running(tmp_path: Path) -> None:
    async def main() -> None:
        scheduler = Scheduler(watchdog=None, grace=0.1, concurrency=4)
        stubborn = scheduler.command("stubborn", "trap '' TERM; echo $$; while :; do sleep 1; done")
        async with scheduler:
            jobs = [await stubborn.submit() for _ in range(3)]
            for job in jobs:
                await begun(job)
            pids = [(await job.log())[0].text for job in jobs]
            await scheduler.stop(timeout=0)
        async with scheduler.client():
            assert {await job.status() for job in jobs} == {JobStatus.READY}
        for pid in pids:
            assert not is_running(int(pid)), f"{pid} still runs"

    asyncio.run(main())


def test_commands_are_part_of_graphs(tmp_path: Path) -> None:
    async def scene(scheduler: Scheduler) -> None:
        step = scheduler.command("step", f'echo "$1" >> {tmp_path}/steps')
        handles = await scheduler.submit_graph(
            {"last": (step.bind("last"), ["first"]), "first": step.bind("first")}
        )
        await handles["last"].result()
        assert (tmp_path / "steps").read_text() == "first\nlast\n"

    run(scene)


def test_a_command_can_have_a_schedule_of_its_own(tmp_path: Path) -> None:
    scheduler = Scheduler()
    nightly = scheduler.command("nightly", f"echo ran >> {tmp_path}/runs", schedule=cron("0 3 * * *"))
    with Jobs(scheduler) as jobs:
        jobs.advance("3d")
        jobs.assert_submitted(nightly)
    assert (tmp_path / "runs").read_text() == "ran\n" * 3


def test_wrong_registrations_are_refused() -> None:
    scheduler = Scheduler()
    scheduler.command("taken", ["true"])
    with pytest.raises(ConfigurationError, match="'taken' is registered already"):
        scheduler.command("taken", ["false"])
    with pytest.raises(ConfigurationError, match="name must be text"):
        scheduler.command("", ["true"])
    for text in ({"stdin": "\ud800"}, {"env": {"A": "\ud800"}}, {"cwd": "\ud800"}):
        with pytest.raises(ConfigurationError, match=next(iter(text))):
            scheduler.command("odd", ["true"], **text)
    with pytest.raises(ConfigurationError, match="place 1 holds a lone surrogate"):
        scheduler.command("odd", ["true", "\ud800"])
    with pytest.raises(ConfigurationError, match="the command of empty is empty"):
        scheduler.command("empty", [])
    with pytest.raises(TypeError, match=r"timeuot.*timeout"):
        scheduler.command("wrong", ["true"], timeuot=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="executor"):
        scheduler.command("wrong", ["true"], executor="thread")  # type: ignore[call-arg]
    with pytest.raises(ConfigurationError, match="overlap says how a schedule runs"):
        scheduler.command("wrong", ["true"], overlap="skip")
    with pytest.raises(ConfigurationError, match=r"registered with scheduler\.command"):
        scheduler.task(name="wrong", executor="command")(lambda: None)


def test_wrong_arguments_are_refused_at_the_submit() -> None:
    async def scene(scheduler: Scheduler) -> None:
        true = scheduler.command("true", ["true"])
        with pytest.raises(PayloadError, match=r"true\(\) argument `args\[0\]`"):
            true.bind(1)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="unexpected keyword argument 'input'"):
            true.bind(input="a")  # type: ignore[call-arg]
        job = await true.using(retry=3).submit("a\0b")
        with pytest.raises(JobFailed, match=r"args\[0\] holds a NUL"):
            await job.result()
        assert (await job.info()).attempt == 1

    run(scene)


def test_a_command_can_still_be_called() -> None:
    scheduler = Scheduler()
    cat = scheduler.command("cat", ["cat"], env={"A": "1"})
    assert cat(stdin="in") == CommandResult(exit_code=0, stdout="in")
    with pytest.raises(CommandFailed, match="cat exited with code 1") as error:
        cat("/no/such/file")
    assert error.value.exit_code == 1

    async def main() -> None:
        cat()

    with pytest.raises(ConfigurationError, match="cat would block the event loop"):
        asyncio.run(main())


def test_tests_run_commands_while_virtual_time_stands_still() -> None:
    scheduler = Scheduler()
    echo = scheduler.command("echo", ["echo"], timeout=1)
    flaky = scheduler.command("flaky", 'test "$BETIMES_ATTEMPT" = 3', retry=3)
    with Jobs(scheduler) as jobs:
        job = jobs.submit(echo, "a")
        assert job.result() == CommandResult(exit_code=0, stdout="a\n")
        assert [line.text for line in job.log()] == ["a"]
        late = jobs.submit(echo.using(delay="30d"), "b")
        assert late.status() is JobStatus.DELAYED
        retried = jobs.submit(flaky)
        jobs.drain()
        assert late.result().stdout == "b\n"
        assert retried.info().attempt == 3

    async def main() -> None:
        async with inline_mode(scheduler):
            job = await echo.submit("now")
            assert await job.status() is JobStatus.COMPLETED
            assert (await job.result()).stdout == "now\n"

    asyncio.run(main())


def test_many_commands_run_beside_each_other() -> None:
    async def scene(scheduler: Scheduler) -> None:
        echo = scheduler.command("echo", 'echo "$1"; echo "$1" >&2')
        handles = await scheduler.submit_many([echo.bind(str(number)) for number in range(100)])
        for number, handle in enumerate(handles):
            text = f"{number}\n"
            assert await handle.result() == CommandResult(exit_code=0, stdout=text, stderr=text)

    run(scene, concurrency=20)
