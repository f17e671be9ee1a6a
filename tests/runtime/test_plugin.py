"""The pytest plugin as its users see it: what it finds, what it says, and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]

APP = """
from betimes import Scheduler

scheduler = Scheduler("/nowhere/at/all/jobs.db")
sent = []

@scheduler.task(name="send")
def send(user: str) -> str:
    sent.append(user)
    if user == "eve":
        raise ConnectionError("no server for eve")
    return f"to {user}"
"""

CONFTEST = """
import pytest

@pytest.fixture
def betimes_scheduler():
    from app import scheduler
    return scheduler
"""


class Plugin:
    """Has the runs of these tests find the plugin, whether Betimes is installed or not."""

    @staticmethod
    def pytest_configure(config: pytest.Config) -> None:
        if not config.pluginmanager.has_plugin("betimes"):
            config.pluginmanager.register(import_module("_betimes_pytest"), "betimes")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A program and its conftest.py."""
    pytester.makepyfile(app=APP)
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\nfilterwarnings = error\naddopts = --strict-markers -p no:randomly")
    pytester.syspathinsert()
    return pytester


def run(project: pytest.Pytester, *args: str) -> pytest.RunResult:
    return project.runpytest_inprocess(*args, plugins=[Plugin()])


def test_the_program_under_test_is_the_one_that_conftest_names(project: pytest.Pytester) -> None:
    project.makepyfile("""
        from app import scheduler, send, sent

        def test_one(jobs):
            job = jobs.submit(send.using(delay="1h"), "ada")
            assert sent == []
            jobs.advance("1h")
            assert (sent, job.result()) == (["ada"], "to ada")
            jobs.assert_submitted(send, "ada")

        def test_two_begins_anew(jobs):
            jobs.assert_not_submitted(send)

        def test_three_finds_the_scheduler_as_it_was():
            assert repr(scheduler).startswith("<Scheduler SqliteStore not open")
    """)
    run(project).assert_outcomes(passed=3)


def test_a_test_that_does_not_say_which_scheduler_is_told_how_to(project: pytest.Pytester) -> None:
    project.makeconftest("")
    project.makepyfile("""
        def test_it(jobs):
            jobs.drain()

        def test_used(jobs):
            from app import scheduler, send
            jobs.use(scheduler)
            assert jobs.submit(send, "ada").result() == "to ada"
    """)
    result = run(project)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*ConfigurationError: the fixture 'jobs' does not know your scheduler. Say so in conftest.py:",
            "*def betimes_scheduler():",
            "*or in the test, before anything else: jobs.use(scheduler)",
        ]
    )


def test_a_failed_assertion_shows_what_was_submitted_and_not_how_that_was_found(
    project: pytest.Pytester,
) -> None:
    project.makepyfile("""
        from app import send

        def test_it(jobs):
            jobs.submit(send, "ada")
            jobs.assert_submitted(send, "bob")
    """)
    result = run(project)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: send(user='bob') was not submitted",
            "E*jobs of send:",
            "E*send(user='ada')  at 2030-01-01 00:00:00+00:00",
        ]
    )
    result.stdout.no_fnmatch_line("*submissions.py*")


def test_the_report_of_a_failed_test_has_what_its_jobs_raised(project: pytest.Pytester) -> None:
    project.makepyfile("""
        from app import send, sent

        def test_fails(jobs):
            jobs.submit(send, "eve")
            assert sent == ["somebody else"]

        def test_passes(jobs):
            jobs.submit(send, "eve")
    """)
    result = run(project)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "*Betimes: attempts that failed*",
            "send, job *, attempt 1: FAILED: ConnectionError: no server for eve",
            "Traceback (most recent call last):",
            '*raise ConnectionError("no server for eve")',
        ]
    )
    assert str(result.stdout).count("Betimes: attempts that failed") == 1


def test_a_test_whose_jobs_all_went_well_has_no_such_section(project: pytest.Pytester) -> None:
    project.makepyfile("""
        from app import send

        def test_it(jobs):
            assert jobs.submit(send, "ada").result() == "to eve"
    """)
    result = run(project)
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*Betimes: attempts*")


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        (
            "strat=1",
            "*TypeError: @pytest.mark.betimes() got an unknown option 'strat'; did you mean 'start'?",
        ),
        ("1", "*TypeError: @pytest.mark.betimes() takes its options by name*"),
        ("start=datetime(2031, 1, 1)", "*ConfigurationError: start *aware*"),
    ],
)
def test_a_marker_that_is_wrong_is_refused(project: pytest.Pytester, marker: str, words: str) -> None:
    project.makepyfile(f"""
        from datetime import datetime
        import pytest

        @pytest.mark.betimes({marker})
        def test_it(jobs): ...
    """)
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([words])


def test_an_override_that_is_no_scheduler_is_refused(project: pytest.Pytester) -> None:
    project.makeconftest(CONFTEST.replace("return scheduler", "return 'jobs.db'"))
    project.makepyfile("def test_it(jobs): ...")
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ConfigurationError: jobs tests a Scheduler, not 'jobs.db'"])


def test_a_job_left_running_or_a_loop_task_left_behind_leaks_nothing(project: pytest.Pytester) -> None:
    project.makepyfile("""
        import asyncio, gc
        from app import scheduler

        @scheduler.task
        async def hang():
            await asyncio.Event().wait()

        @scheduler.task
        async def swallow():
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    await asyncio.Event().wait()

        async def begin():
            global kept
            kept = asyncio.create_task(asyncio.Event().wait())

        def test_left(jobs):
            for task in (hang, swallow):
                jobs.submit(task)
            jobs.run(begin())
            jobs.advance("1m")

        def test_nothing_is_left():
            assert kept.cancelled()
            assert not scheduler._engine.is_open
            gc.collect()
    """)
    run(project).assert_outcomes(passed=2)


def test_the_markers_and_fixtures_are_explained(project: pytest.Pytester) -> None:
    run(project, "--markers").stdout.fnmatch_lines(["@pytest.mark.betimes(start=*seed=0): *"])
    shown = run(project, "--fixtures", "-q").stdout
    shown.fnmatch_lines(["jobs -- *", "*Your program's scheduler under test*"])


def test_loading_the_plugin_does_not_load_the_package() -> None:
    script = (
        "import sys, _betimes_pytest; print([name for name in sys.modules if name.startswith('betimes')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        check=True,
        text=True,
        timeout=50,
    )
    assert done.stdout.strip() == "[]"


def test_the_entry_point_names_the_plugin() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert settings["project"]["entry-points"]["pytest11"] == {"betimes": "_betimes_pytest"}
    assert "src/_betimes_pytest.py" in settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert callable(import_module("_betimes_pytest").jobs.__wrapped__)
