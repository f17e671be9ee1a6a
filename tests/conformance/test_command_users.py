"""Commands that run as another user, in an environment of their own, and with a grace of their own."""

from __future__ import annotations

import asyncio
import os
import pwd
import threading
from typing import Any

import pytest

from betimes import Scheduler
from betimes.core.command import CommandLine, CommandResult
from betimes.errors import CommandFailed, JobFailed
from betimes.executors.accounts import find_account, own_account
from betimes.executors.command import run_to_end

IS_ROOT = os.geteuid() == 0
OWN = pwd.getpwuid(os.geteuid()).pw_name
SAY_WHO = 'id -un; id -u; id -G; echo "$HOME $LOGNAME $USER"'


def run(text: str, **options: Any) -> CommandResult:
    line = CommandLine(name="probe", argv=("/bin/sh", "-c", text), **options)
    end = run_to_end(line, {"BETIMES_JOB_ID": "j"}, lambda text, *, source: None)
    if isinstance(end, CommandFailed):
        raise end
    return end


def test_a_command_of_the_own_user_needs_no_rights() -> None:
    own = own_account()
    assert own == find_account(OWN)
    said = run(SAY_WHO, user=OWN).stdout.splitlines()
    assert said[:2] == [OWN, str(os.geteuid())]
    assert said[3] == f"{own.home} {OWN} {OWN}"


def test_root_runs_a_command_as_any_user_and_nobody_else_does() -> None:
    nobody = find_account("nobody")
    assert nobody is not None
    if IS_ROOT:
        name, uid, groups, who = run(SAY_WHO, user="nobody").stdout.splitlines()
        assert (name, uid) == ("nobody", str(nobody.uid))
        assert {int(group) for group in groups.split()} == set(nobody.groups)
        assert who == f"{nobody.home} nobody nobody"
    else:
        with pytest.raises(CommandFailed, match="only a worker that runs as root can run it as 'nobody'"):
            run("true", user="nobody")


def test_only_root_may_take_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    other = "nobody" if OWN != "nobody" else "root"
    monkeypatch.setattr("os.geteuid", lambda: 54321)
    with pytest.raises(
        CommandFailed, match=f"only a worker that runs as root can run it as '{other}'"
    ) as error:
        run("true", user=other)
    assert not error.value.may_retry


def test_a_process_of_a_user_without_a_name_has_an_account_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 54321)
    monkeypatch.setenv("HOME", "/somewhere")
    own = own_account()
    assert (own.name, own.uid, own.home, own.shell) == ("54321", 54321, "/somewhere", "/bin/sh")
    assert own.may_be_taken


def test_a_user_that_is_not_there_fails_the_job_for_good() -> None:
    with pytest.raises(CommandFailed, match="there is no user 'no such user' on this machine") as error:
        run("true", user="no such user")
    assert not error.value.may_retry


def test_what_the_command_sets_counts_more_than_what_its_user_has() -> None:
    assert run('echo "$HOME"', user=OWN, env={"HOME": "/x"}).stdout == "/x\n"


def test_without_the_worker_s_environment_it_has_its_own_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BETIMES_TEST_A", "inherited")
    assert "BETIMES_TEST_A=inherited" in run("/usr/bin/env").stdout
    said = run("/usr/bin/env", inherits=False, env={"B": "2"}, user=OWN).stdout.splitlines()
    names = {line.partition("=")[0] for line in said} - {"PWD", "SHLVL", "_", "BETIMES_RUN"}
    assert names == {"B", "HOME", "LOGNAME", "USER", "SHELL", "BETIMES_JOB_ID"}


def test_a_job_of_a_command_has_a_user_an_environment_and_a_grace_of_its_own() -> None:
    async def main() -> None:
        scheduler = Scheduler(grace="1h", watchdog=None)
        text = "trap '' TERM; echo $LOGNAME; sleep 600 & wait; sleep 600 & wait"
        stubborn = scheduler.command(
            "stubborn", text, user=OWN, inherit_env=False, grace=0.05, env={"PATH": "/usr/bin:/bin"}
        )
        strange = scheduler.command("strange", ["true"], user="no such user", retry=3)
        async with scheduler, asyncio.timeout(50):
            failed = await strange.submit()
            with pytest.raises(JobFailed, match="there is no user 'no such user'"):
                await failed.result()
            assert len((await failed.info()).attempts) == 1
            job = await stubborn.submit()
            while not await job.log():
                await asyncio.get_running_loop().run_in_executor(None, threading.Event().wait, 0.02)
            await job.cancel()
            await job.wait()  # SIGTERM means nothing to it: the scheduler's grace would be an hour
            assert (await job.log())[0].text == OWN

    asyncio.run(main())
