"""The checkup as users ask for it: of an open scheduler, of a file, and of what cannot be opened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest
from tests.runtime.stage import STORES, Scene, make_scheduler, pass_time, play, store_maker

from betimes import Checkup, CircuitBreaker, Finding, FindingCode, Scheduler, Severity, every
from betimes.clock import process_identity
from betimes.core.lifecycle import CRASH_BUDGET
from betimes.operating import scheduler_of
from betimes.ports import ClaimRequest, WorkerInfo
from betimes.runtime import checking
from betimes.stores.memory import MemoryStore
from betimes.testing import VirtualClock, run_virtual

Code = FindingCode
LANES = {"loop": 9}
SECOND = 1_000_000


def bad(checkup: Checkup) -> dict[Code, Finding]:
    """The findings of which somebody may want to know."""
    return {each.code: each for each in checkup.findings if each.severity is not Severity.OK}


@pytest.mark.parametrize("kind", STORES)
def test_a_scheduler_that_works_is_well(kind: str, tmp_path: Path) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> None:
            await pass_time(60)

        await stage.scheduler.add_schedule("s", work.bind(), every("1h"))
        await work.submit()
        await stage.settle()
        checkup = await stage.scheduler.doctor(full=True)
        assert checkup.worst in (Severity.OK, Severity.NOTE)
        assert checkup.exit_code == 0
        assert set(bad(checkup)) == ({Code.STORE} if kind == "memory" else set())
        texts = " ".join(finding.text for finding in checkup.findings)
        assert "1 worker(s) run" in texts
        assert "with 1 job(s)" in texts
        assert "There are 1 schedule(s)." in texts
        assert ("The whole file is sound." in texts) is (kind == "sqlite")

    play(scene, store=store_maker(kind, tmp_path))


@pytest.mark.parametrize("kind", STORES)
def test_what_is_wrong_with_the_work_is_found(kind: str, tmp_path: Path) -> None:
    async def scene(stage: Scene) -> None:
        scheduler = stage.scheduler

        @scheduler.task
        async def work() -> None: ...

        @scheduler.task(name="gone", queue="gone")
        async def gone() -> None: ...

        await scheduler.pause_queue("default", by="ops")
        await scheduler.add_schedule("s", work.bind(), every("1h"))
        await scheduler.pause_schedule("s")
        await work.submit()
        await work.using(queue="elsewhere").submit()
        await gone.submit()
        del scheduler._definitions["gone"]
        await stage.settle()
        await pass_time(120)
        found = bad(await scheduler.doctor())
        assert found[Code.QUEUE_PAUSED].about == "default"
        assert ", by ops; 1 job(s) wait in it." in found[Code.QUEUE_PAUSED].text
        assert found[Code.SCHEDULE_PAUSED].severity is Severity.NOTE
        assert found[Code.QUEUE_NOT_SERVED].about == "elsewhere"
        assert found[Code.QUEUE_LATE].about == "elsewhere"
        assert found[Code.TASK_UNKNOWN].about == "gone"
        await scheduler.resume_queue("default")

    play(scene, store=store_maker(kind, tmp_path), queues=("default", "gone"), checked=False)


def test_case_147_dead_workers_and_poison_pills_are_found() -> None:
    clock = VirtualClock()

    async def main() -> None:
        store = MemoryStore(clock=clock)
        scheduler = make_scheduler(clock, store)

        @scheduler.task(name="t")
        async def work() -> None: ...

        async with scheduler.client():
            job = await work.submit()
            for number in range(CRASH_BUDGET):
                await store.register(WorkerInfo(id=f"w{number}", lease_us=SECOND))
                (taken,) = (await store.exchange([], ClaimRequest(f"w{number}", 1, LANES))).claimed
                assert taken.id == job.id
                clock.advance(2)
                await store.rescue({"t"})
            await work.submit()
            await store.register(WorkerInfo(id="dead", lease_us=SECOND, host="h", pid=7))
            await store.exchange([], ClaimRequest("dead", 1, LANES))
            clock.advance(2)
            found = bad(await scheduler.doctor())
            assert job.id in found[Code.POISON_PILL].text
            assert found[Code.DEAD_WORKER].about == "dead"
            assert "it holds 1 job(s)" in found[Code.DEAD_WORKER].text
            assert found[Code.WORKERS].severity is Severity.ERROR

    run_virtual(main(), clock=clock)


def test_a_worker_of_this_machine_whose_process_has_ended_is_found_before_its_lease_is_over() -> None:
    clock, me = VirtualClock(), process_identity()

    async def main() -> None:
        store = MemoryStore(clock=clock)
        scheduler = make_scheduler(clock, store)
        info = WorkerInfo(
            id="w",
            lease_us=30 * SECOND,
            host=me.host,
            pid=me.pid,
            pid_namespace=me.pid_namespace,
            process_started=1,  # this pid was another process's then
            boot_id=me.boot_id,
        )
        async with scheduler.client():
            await store.register(info)
            finding = bad(await scheduler.doctor())[Code.DEAD_WORKER]
            assert "its process has ended" in finding.text

    run_virtual(main(), clock=clock)


def test_a_thread_that_never_returns_is_found() -> None:
    is_over = Event()

    async def main() -> None:
        scheduler = Scheduler(concurrency=1, watchdog=None)

        @scheduler.task(timeout=0.05)
        def work() -> None:
            is_over.wait(30)

        async with scheduler:
            job = await work.submit()
            await job.wait(timeout=30)
            found = bad(await scheduler.doctor())
            is_over.set()
            assert found[Code.SLOTS_STUCK].severity is Severity.ERROR
            assert job.id in found[Code.SLOTS_STUCK].text

    asyncio.run(main())


def test_an_open_circuit_is_found() -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(breaker=CircuitBreaker(failures=5))
        async def work() -> None: ...

        await work.submit()
        await stage.settle()
        await stage.scheduler.open_circuit(work.name)
        assert Code.CIRCUIT_OPEN in bad(await stage.scheduler.doctor())

    play(scene)


# not open


def test_case_118_a_file_is_checked_up_without_a_program_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    def files() -> dict[str, bytes]:
        return {each.name: each.read_bytes() for each in tmp_path.iterdir()}

    async def main() -> None:
        missing = await scheduler_of(path).doctor()
        assert missing.worst is Severity.WARNING
        assert files() == {}
        scheduler = Scheduler(path)

        @scheduler.task
        async def work() -> None: ...

        async with scheduler.client():
            await work.submit()
        before = files()
        for onlooker in (scheduler_of(path), scheduler, scheduler_of(f"sqlite:///{path}")):
            found = bad(await onlooker.doctor())
            assert set(found) == {Code.WORKERS}
            assert found[Code.WORKERS].severity is Severity.ERROR
        assert files() == before

    asyncio.run(main())


def test_a_file_beside_a_worker_is_checked_up_from_outside(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        scheduler = Scheduler(path, watchdog=None)
        is_running, is_over = asyncio.Event(), asyncio.Event()

        @scheduler.task
        async def work() -> None:
            is_running.set()
            await is_over.wait()

        async with scheduler:
            job = await work.submit()
            await is_running.wait()
            checkup = await scheduler_of(path).doctor()
            assert checkup.exit_code == 0
            assert "1 worker(s) run" in str(checkup)
            is_over.set()
            await job.result(timeout=30)

    asyncio.run(main())


def spoil(path: Path) -> None:
    path.write_bytes(b"no database " * 100)


def block(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("break_it", [spoil, block])
def test_case_118_what_cannot_be_opened_is_a_finding(
    break_it: Callable[[Path], None], tmp_path: Path
) -> None:
    break_it(tmp_path / "jobs.db")
    checkup = asyncio.run(Scheduler(tmp_path / "jobs.db").doctor())
    assert checkup.exit_code == 2
    assert bad(checkup)[Code.STORE].severity is Severity.ERROR


def test_what_goes_wrong_during_the_look_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with Scheduler(path).client():
            pass
        scheduler = Scheduler(path)
        await scheduler._store.look()
        checkup = await scheduler.doctor()  # its store is open already, past the scheduler
        await scheduler._store.close()
        assert "open already" in bad(checkup)[Code.STORE].text

    asyncio.run(main())


def test_another_strategy_is_a_finding(tmp_path: Path) -> None:
    from betimes import AgingPriorityStrategy  # noqa: PLC0415

    async def main() -> None:
        async with Scheduler(tmp_path / "jobs.db").client():
            pass
        other = Scheduler(tmp_path / "jobs.db", strategy=AgingPriorityStrategy())
        assert Code.STRATEGY in bad(await other.doctor())
        assert Code.STRATEGY not in bad(await scheduler_of(tmp_path / "jobs.db").doctor())

    asyncio.run(main())


def test_code_without_a_loop_is_checked_up_too() -> None:
    with Scheduler(watchdog=None).blocking() as s:
        assert s.doctor().exit_code == 0
        assert s.explain_queue("default").queue == "default"


# the machine


def test_the_machine_says_where_its_zones_come_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "zoneinfo" / "Asia").mkdir(parents=True)
    zone = tmp_path / "zoneinfo" / "Asia" / "Tokyo"
    zone.touch()
    local = tmp_path / "localtime"
    local.symlink_to(zone)
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setattr(checking, "LOCAL_ZONE", local)
    assert checking.machine().local_zone == "Asia/Tokyo"
    monkeypatch.setattr(checking, "LOCAL_ZONE", tmp_path / "none")
    assert checking.machine().local_zone == ""
    monkeypatch.setattr(checking, "LOCAL_ZONE", tmp_path)
    assert checking.machine().local_zone == ""
    monkeypatch.setenv("TZ", "Europe/Rome")
    assert checking.machine().local_zone == "Europe/Rome"


def test_the_machine_says_that_it_has_no_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "A_ZONE", "Nowhere/Atlantis")
    machine = checking.machine()
    assert "Nowhere/Atlantis cannot be read" in machine.zone_problem
