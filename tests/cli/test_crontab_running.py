"""A crontab is run, followed as its files change, and told of in one log."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.stage import pass_time

from betimes import JobStatus, Scheduler
from betimes.cli.crontab_files import CrontabFiles
from betimes.cli.crontab_log import CrontabLog, ToldCommandExecutor
from betimes.cli.crontab_running import CrontabRunner
from betimes.cli.crontab_tasks import QUEUE
from betimes.clock import SystemClock
from betimes.errors import StoreUnavailable
from betimes.ports import Clock, Executor, Store
from betimes.stores.memory import MemoryStore
from betimes.testing import InlineCommandExecutor, VirtualClock, run_virtual

HOUR = 3600.0


class Place:
    """A crontab in a folder, a store, and what is written of it."""

    def __init__(self, folder: Path) -> None:
        self.table = folder / "table"
        self.mark = folder / "jobs.db.boot"
        self.said_file = folder / "said"
        self.lines: list[str] = []
        self.clock: Clock = SystemClock()
        self.store: Store | Path = folder / "jobs.db"
        self.boot_id = "boot 1"
        self.is_virtual = self.is_system = False

    def on_virtual_time(self, start: datetime) -> VirtualClock:
        clock = VirtualClock(start)
        self.clock, self.is_virtual = clock, True
        self.store = MemoryStore(clock=clock)
        return clock

    def write(self, text: str) -> None:
        """Write the crontab; $SAID is a file that its commands may write to."""
        self.table.write_text(f"SAID={self.said_file}\n{text}")

    def runner(self) -> tuple[CrontabRunner, Scheduler]:
        log = CrontabLog(self.clock.now, "UTC", self.lines.append)
        executor: Executor = (
            InlineCommandExecutor() if self.is_virtual else ToldCommandExecutor(10, grace_s=5, log=log)
        )
        scheduler = Scheduler(
            self.store,
            clock=self.clock,
            executors=[executor],
            queues=[QUEUE],
            watchdog=None,
            lease="30d" if self.is_virtual else "30s",
            poll="1h" if self.is_virtual else 0.1,
        )
        scheduler.listen(log.hear)
        files = CrontabFiles([self.table], system=self.is_system, tz="UTC")
        return CrontabRunner(scheduler, files, log, boot_mark=self.mark, boot_id=self.boot_id), scheduler

    async def run(self, scene: Callable[[CrontabRunner, Scheduler], Coroutine[Any, Any, None]]) -> None:
        """Run the crontab while the scene lasts."""
        runner, scheduler = self.runner()
        await runner.begin()
        async with scheduler:
            following = asyncio.ensure_future(runner.follow())
            try:
                await scene(runner, scheduler)
            finally:
                following.cancel()
                await asyncio.wait([following])
            if not following.cancelled():
                following.result()

    @property
    def said(self) -> list[str]:
        """What the commands have written to $SAID."""
        return self.said_file.read_text().splitlines() if self.said_file.exists() else []

    @property
    def log(self) -> str:
        """What was told, without the times."""
        return "\n".join(line[20:] for line in self.lines)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def until(holds: Callable[[], bool]) -> None:
    """Wait, on real time, until something holds."""
    async with asyncio.timeout(50):
        while not holds():
            await asyncio.get_running_loop().run_in_executor(None, threading.Event().wait, 0.02)


async def ids(scheduler: Scheduler) -> list[str]:
    return sorted(info.id for info in await scheduler.schedules())


# --- on virtual time


def test_each_line_runs_at_its_times(place: Place) -> None:
    clock = place.on_virtual_time(datetime(2030, 1, 1, tzinfo=UTC))
    place.write('*/20 * * * * echo often >> "$SAID"\nCRON_TZ=Asia/Tokyo\n30 10 * * * cat >> "$SAID"%rarely\n')

    async def scene(runner: CrontabRunner, scheduler: Scheduler) -> None:
        await pass_time(HOUR + 60)

    run_virtual(place.run(scene), clock=clock)
    # 10:30 in Tokyo is 01:30 UTC.
    assert place.said == ["often"] * 3

    async def later(runner: CrontabRunner, scheduler: Scheduler) -> None:
        await pass_time(HOUR)

    run_virtual(place.run(later), clock=clock)
    assert place.said == ["often"] * 3 + ["often", "rarely", "often", "often"]


def test_a_changed_file_is_followed_and_what_stays_is_not_touched(place: Place) -> None:
    clock = place.on_virtual_time(datetime(2030, 1, 1, tzinfo=UTC))
    place.write('0 * * * * echo a >> "$SAID"\n# betimes: name=b\n0 * * * * echo b >> "$SAID"\n')

    async def scene(runner: CrontabRunner, scheduler: Scheduler) -> None:
        await pass_time(HOUR + 60)
        assert sorted(place.said) == ["a", "b"]
        (a,) = [each for each in await ids(scheduler) if each != "b"]
        before = await scheduler.schedule(a)
        place.write(
            '# moved\n# betimes: name=b overlap=allow\n30 * * * * echo B >> "$SAID"\n'
            '0 * * * * echo a >> "$SAID"\n30 * * * * echo c >> "$SAID"\nnonsense\n'
        )
        await pass_time(5)
        assert await scheduler.schedule(a) == before
        assert (await scheduler.schedule("b")).fired == 1
        assert f"{a}:5 runs" not in place.log
        assert "b:4 changed: 30 * * * * (UTC)" in place.log
        assert "problem: " in place.log
        assert "3 entries run, 1 problem" in place.log
        await pass_time(HOUR)
        assert sorted(place.said[2:]) == ["B", "a", "c"]
        place.write("")
        await pass_time(HOUR)
        assert await ids(scheduler) == []
        assert len(place.said) == 5
        assert "b:4 removed" in place.log

    run_virtual(place.run(scene), clock=clock)


def test_a_file_that_is_gone_goes_on_as_it_was(place: Place) -> None:
    clock = place.on_virtual_time(datetime(2030, 1, 1, tzinfo=UTC))
    place.write('0 * * * * echo a >> "$SAID"\n')

    async def scene(runner: CrontabRunner, scheduler: Scheduler) -> None:
        place.table.unlink()
        await pass_time(HOUR + 60)
        assert "it goes on as it was read last" in place.log
        assert place.said == ["a"]

    run_virtual(place.run(scene), clock=clock)


def test_lines_that_went_while_nothing_ran_start_no_more(place: Place) -> None:
    clock = place.on_virtual_time(datetime(2030, 1, 1, tzinfo=UTC))
    place.write('0 * * * * echo a >> "$SAID"\n0 * * * * echo b >> "$SAID"\n@daily echo c >> "$SAID"\n')

    async def nothing(runner: CrontabRunner, scheduler: Scheduler) -> None:
        assert len(await ids(scheduler)) == 3

    run_virtual(place.run(nothing), clock=clock)
    clock.jump("5h")
    place.write('0 * * * * echo b >> "$SAID"\n@reboot echo c >> "$SAID"\n')

    async def scene(runner: CrontabRunner, scheduler: Scheduler) -> None:
        await pass_time(10)
        assert place.said == ["b"]  # the latest one that was missed
        assert len(await ids(scheduler)) == 1

    run_virtual(place.run(scene), clock=clock)


def test_reboot_runs_once_in_each_boot(place: Place) -> None:
    clock = place.on_virtual_time(datetime(2030, 1, 1, tzinfo=UTC))
    place.write('@reboot echo a >> "$SAID"\n')

    async def scene(runner: CrontabRunner, scheduler: Scheduler) -> None:
        await pass_time(10)

    def start() -> list[str]:
        run_virtual(place.run(scene), clock=clock)
        return place.said

    assert start() == ["a"]
    assert start() == ["a"]
    place.write('@reboot echo a >> "$SAID"\n@reboot echo new >> "$SAID"\n')
    assert start() == ["a"]
    place.boot_id = "boot 2"
    assert sorted(start()) == ["a", "a", "new"]
    place.mark.unlink()  # as if it had been killed before it could write it
    assert sorted(start()) == ["a", "a", "new"]


def test_a_boot_that_cannot_be_noted_ends_nothing_and_runs_nothing_twice(place: Place) -> None:
    clock = place.on_virtual_time(datetime(2030, 1, 1, tzinfo=UTC))
    place.write('@reboot echo a >> "$SAID"\n')
    place.mark.with_name(f"{place.mark.name}.new").mkdir()  # nothing can be written there

    async def scene(runner: CrontabRunner, scheduler: Scheduler) -> None:
        await pass_time(10)

    for _ in range(2):
        run_virtual(place.run(scene), clock=clock)
        assert place.said == ["a"]
    assert "it cannot be noted that this boot's @reboot entries have run" in place.log


@pytest.mark.parametrize("call", ["remove_schedule", "save_schedule"])
def test_a_store_that_cannot_be_reached_is_tried_again(place: Place, call: str) -> None:
    clock = place.on_virtual_time(datetime(2030, 1, 1, tzinfo=UTC))
    place.write('0 * * * * echo a >> "$SAID"\n')

    async def scene(runner: CrontabRunner, scheduler: Scheduler) -> None:
        place.write('0 * * * * echo b >> "$SAID"\n')
        asked = 0

        async def refuse(*args: Any, **kwargs: Any) -> Any:
            nonlocal asked
            asked += 1
            raise StoreUnavailable("it is away")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scheduler._store, call, refuse)
            await pass_time(10)
        assert asked > 2
        assert "the store cannot be reached, it is tried again: it is away" in place.log
        await pass_time(HOUR)
        assert place.said == ["b"]
        assert len(await ids(scheduler)) == 1

    run_virtual(place.run(scene), clock=clock)


# --- with real runs


def test_a_run_is_told_of_from_its_start_to_its_end(place: Place) -> None:
    place.write(
        "# betimes: name=good\n@yearly echo out; echo err >&2; pwd; echo $HOME $LOGNAME\n"
        "# betimes: name=bad retry=2 retry_delay=10ms\n@yearly exit 3\n"
        "# betimes: name=late timeout=100ms grace=0s\n@yearly exec sleep 600\n"
        "# betimes: name=fine ok_codes=3\n@yearly exit 3\n"
        "SHELL=/no/such/shell\n# betimes: name=none\n@yearly true\n"
    )

    async def scene(runner: CrontabRunner, scheduler: Scheduler) -> None:
        jobs = [await scheduler.trigger_now(name) for name in ("good", "bad", "late", "fine", "none")]
        for job in jobs:
            await job.wait(timeout=50)
        statuses = [await job.status() for job in jobs]
        assert [status.value for status in statuses] == [
            "completed",
            "failed",
            "timed_out",
            "completed",
            "failed",
        ]
        await until(lambda: "timed out" in place.log and "failed for good" in place.log)

    asyncio.run(place.run(scene))
    log = place.log
    for words in (
        "good:3 started: job ",
        "good:3 | out",
        "good:3 ! err",
        "good:3 ended: exited with code 0 after ",
        "bad:5 ended: exited with code 3 after ",
        "bad:5 attempt 1 failed; it is tried again",
        ", attempt 2",
        "bad:5 failed for good, after 2 attempts",
        "late:7 ended: was killed by SIG",
        "late:7 timed out: ",
        "fine:9 ended: exited with code 3 after ",
        "none:12 ended: none could not be started: there is no program '/no/such/shell'",
    ):
        assert words in log, f"{words} is not in\n{log}"


def test_commands_get_cron_s_environment_and_no_other(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_PARENT", "x")
    folder = place.table.parent
    place.write(f'A="b c"\nHOME={folder}\n# betimes: name=env\n@yearly /usr/bin/env; pwd\n')

    async def scene(runner: CrontabRunner, scheduler: Scheduler) -> None:
        job = await scheduler.trigger_now("env")
        lines = (await job.result(timeout=50)).stdout.splitlines()
        found = dict(line.split("=", 1) for line in lines if "=" in line)
        names = set(found) - {"PWD", "OLDPWD", "SHLVL", "_"}
        assert {name for name in names if not name.startswith("BETIMES_")} == {
            *("HOME", "LOGNAME", "USER", "SHELL", "PATH"),
            *("A", "SAID"),
        }
        assert (found["A"], found["SHELL"], found["PATH"]) == ("b c", "/bin/sh", "/usr/bin:/bin")
        assert lines[-1] == str(folder)

    asyncio.run(place.run(scene))


def test_a_line_that_goes_while_it_runs_ends_and_is_not_tried_again(place: Place) -> None:
    go = place.table.parent / "go"
    place.write(
        "# betimes: name=slow retry=5 retry_delay=10ms\n"
        f"@yearly echo up; until [ -e {go} ]; do sleep 0.02; done; exit 1\n"
    )

    async def scene(runner: CrontabRunner, scheduler: Scheduler) -> None:
        job = await scheduler.trigger_now("slow")
        await until(lambda: "| up" in place.log)
        place.write("")
        runner.ask()
        await until(lambda: "slow:3 removed" in place.log)
        go.touch()
        await until(lambda: "ended: exited with code 1" in place.log)
        await job.wait(timeout=50)
        assert await job.status() is JobStatus.CANCELLED
        assert place.log.count("started: job") == 1

    asyncio.run(place.run(scene))


def test_a_limit_that_becomes_another_holds(place: Place) -> None:
    text = "# betimes: name=a limit=disk:{n}\n@yearly true\n# betimes: name=b limit=disk:{n}\n@yearly true\n"
    place.write(text.format(n=2))

    async def scene(runner: CrontabRunner, scheduler: Scheduler) -> None:
        await (await scheduler.trigger_now("a")).result(timeout=50)
        place.write(text.format(n=3))
        runner.ask()
        await until(lambda: "a:3 changed" in place.log and "b:5 changed" in place.log)
        await (await scheduler.trigger_now("b")).result(timeout=50)
        assert (await scheduler.limit("disk")).max_running == 3

    asyncio.run(place.run(scene))


DEBIAN = """\
SHELL=/bin/sh
PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin
17 *\t* * *\tcd / && run-parts --report /etc/cron.hourly
25 6\t* * *\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }
47 6\t* * 7\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.weekly; }
52 6\t1 * *\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.monthly; }
0 */12 * * *\ttest -x /usr/bin/certbot -a \\! -d /run/systemd/system && perl -e 'sleep 1' && certbot -q renew
"""


def test_the_crontab_of_a_debian_machine_runs_with_harmless_commands(place: Place) -> None:
    """Its commands come from a folder of stand-ins, which only write what they were called with."""
    stand_ins = place.table.parent / "bin"
    stand_ins.mkdir()
    for name in ("run-parts", "certbot", "perl"):
        (stand_ins / name).write_text(f'#!/bin/sh\necho {name} "$@" >> "$SAID"\n')
        (stand_ins / name).chmod(0o755)
    text = DEBIAN.replace("PATH=", f"PATH={stand_ins}:")
    place.write(
        text.replace("/usr/sbin/anacron", "/no/anacron").replace(
            "/usr/bin/certbot", str(stand_ins / "certbot")
        )
    )

    async def scene(runner: CrontabRunner, scheduler: Scheduler) -> None:
        for each in await ids(scheduler):
            await (await scheduler.trigger_now(each)).wait(timeout=50)
        assert {line for line in place.said if line.startswith("run-parts")} == {
            f"run-parts --report /etc/cron.{each}" for each in ("hourly", "daily", "weekly", "monthly")
        }
        for info in await scheduler.jobs():
            assert info.queue == QUEUE

    asyncio.run(place.run(scene))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs commands as another user")
def test_root_runs_each_line_of_a_system_crontab_as_its_user(place: Place) -> None:
    place.table.write_text("HOME=/\n# betimes: name=who\n@yearly nobody id -un; echo $LOGNAME\n")
    place.table.chmod(0o644)

    async def scene(runner: CrontabRunner, scheduler: Scheduler) -> None:
        job = await scheduler.trigger_now("who")
        assert (await job.result(timeout=50)).stdout == "nobody\nnobody\n"

    place.is_system = True
    asyncio.run(place.run(scene))
