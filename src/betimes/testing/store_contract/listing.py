"""Finding, listing and counting jobs; and the hints that something has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from betimes.core.events import Errored, GivenBack, Succeeded
from betimes.core.job import JobStatus
from betimes.ports import Hint, JobFilter
from betimes.testing.store_contract.stage import BOOM, Stage, Taken, played

BLOCKED, DELAYED, READY, RUNNING = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY, JobStatus.RUNNING
COMPLETED, FAILED = JobStatus.COMPLETED, JobStatus.FAILED
PATIENCE_S = 30.0


class ListContract:
    """What can be asked of a store."""

    async def _numbers(self, stage: Stage, **which: Any) -> list[int]:
        return [job.seq for job in await stage.store.jobs(JobFilter(**which))]

    @played
    async def test_jobs_are_listed_newest_first_and_page_by_page(self, stage: Stage) -> None:
        seqs = [job.seq for job in await stage.submit(*(stage.job() for _ in range(7)))][::-1]
        assert await self._numbers(stage) == seqs
        pages: list[list[int]] = []
        before: int | None = None
        while page := await self._numbers(stage, limit=3, before=before):
            pages.append(page)
            before = page[-1]
        assert pages == [seqs[:3], seqs[3:6], seqs[6:]]

    @played
    async def test_ids_are_found_by_how_they_begin(self, stage: Stage) -> None:
        for job_id in ("ab-2", "ab-1", "b", "ab", "a%", "ä", "ab_1"):
            await stage.add(job_id=job_id)
        ended = await stage.start(job_id="ab-3")
        await stage.report(ended, Succeeded(stage.now, b"1"))
        assert await stage.store.ids("ab") == ["ab", "ab-1", "ab-2", "ab-3", "ab_1"]
        assert await stage.store.ids("ab-", limit=2) == ["ab-1", "ab-2"]
        assert await stage.store.ids("a%") == ["a%"]
        assert await stage.store.ids("ä") == ["ä"]
        assert await stage.store.ids("c") == []
        assert len(await stage.store.ids("")) == 8

    @played
    async def test_an_id_with_several_versions_is_found_once(self, stage: Stage) -> None:
        first = await stage.start(job_id="same")
        await stage.report(first, Succeeded(stage.now, b"1"))
        await stage.add(job_id="same")
        assert await stage.store.ids("sa") == ["same"]

    @played
    async def test_jobs_are_listed_by_what_they_are(self, stage: Stage) -> None:
        a = await stage.add(task="a", queue="q1", tags=("red", "blue"))
        b = await stage.add(task="b", queue="q2", tags=("red",))
        c = await stage.add(task="a", queue="q2", delay_s=5, tags=("reddish", "re", '"red"'))
        for which, expected in (
            ({"task": "a"}, [c, a]),
            ({"queue": "q2"}, [c, b]),
            ({"tag": "red"}, [b, a]),
            ({"tag": "r"}, []),
            ({"tag": '"red"'}, [c]),
            ({"status": READY}, [b, a]),
            ({"status": DELAYED, "task": "a"}, [c]),
            ({"task": "a", "queue": "q2", "tag": "red"}, []),
            ({"tag": "red", "before": b.seq}, [a]),
            ({"task": "a", "limit": 1}, [c]),
        ):
            assert await self._numbers(stage, **which) == [job.seq for job in expected], which

    @played
    async def test_jobs_of_every_status_are_listed(self, stage: Stage) -> None:
        done, failed, running = await stage.start(), await stage.start(), await stage.start()
        await stage.report(done, Succeeded(stage.now, b"1"))
        await stage.report(failed, Errored(stage.now, BOOM))
        blocked = await stage.add(depends_on=[running.job])
        cancelled = await stage.add()
        await stage.cancel(cancelled)
        for status, job in (
            (COMPLETED, done.job),
            (FAILED, failed.job),
            (RUNNING, running.job),
            (BLOCKED, blocked),
            (JobStatus.CANCELLED, cancelled),
        ):
            assert await self._numbers(stage, status=status) == [job.seq]

    @played
    async def test_p10_live_jobs_are_counted_by_queue_and_status(self, stage: Stage) -> None:
        running = await stage.start(queue="a")
        parked = await stage.start(queue="a")
        await stage.report(parked, GivenBack(stage.now, parked="p"))
        done = await stage.start(queue="c")
        await stage.report(done, Succeeded(stage.now, b"1"))
        await stage.submit(
            stage.job(queue="a"),
            stage.job(queue="a", lane="thread"),
            stage.job(queue="b", delay_s=5),
            stage.job(queue="b", depends_on=[running.job]),
        )
        expected = {("a", RUNNING): 1, ("a", READY): 3, ("b", DELAYED): 1, ("b", BLOCKED): 1}
        assert await stage.counts() == expected
        assert not any(status.is_terminal for row in (await stage.store.counts()).values() for status in row)

    @played
    async def test_an_id_that_is_not_there_is_not_found(self, stage: Stage) -> None:
        assert await stage.store.find("nobody") is None
        assert await stage.store.get(stage.job("nobody")) is None

    @played
    async def test_a_job_is_found_by_its_id_and_each_version_by_its_own_record(self, stage: Stage) -> None:
        versions = [await stage.add("x", replace_older=True, payload=b'[["%d"],{}]' % n) for n in range(3)]
        found = await stage.store.find("x")
        assert found is not None
        assert found.seq == versions[-1].seq
        assert [(await stage.state(job)).payload for job in versions] == [
            b'[["%d"],{}]' % n for n in range(3)
        ]

    @played
    async def test_of_many_versions_those_that_have_ended_are_told(self, stage: Stage) -> None:
        done, failed, running = await stage.start(), await stage.start(), await stage.start()
        waiting = await stage.add()
        jobs = [running.job, failed.job, waiting, done.job]
        assert await stage.store.ended(jobs) == []
        await stage.report(done, Succeeded(stage.now, b"7"))
        await stage.report(failed, Errored(stage.now, BOOM))
        answers = {job.seq: state for job, state in await stage.store.ended(jobs)}
        assert answers.keys() == {done.job.seq, failed.job.seq}
        good, bad = answers[done.job.seq], answers[failed.job.seq]
        assert good is not None
        assert (good.status, good.result) == (COMPLETED, b"7")
        assert bad is not None
        assert (bad.status, bad.error) == (FAILED, BOOM)
        assert await stage.store.ended([]) == []

    @played
    async def test_case_130_a_result_stays_the_same_however_often_it_is_read(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.report(taken, Succeeded(stage.now, b"[1, 2]"))
        for _ in range(3):
            stage.advance(60)
            assert (await stage.state(taken.job)).result == b"[1, 2]"


class Listener:
    """Hears a store's hints, and waits for one of a kind."""

    def __init__(self) -> None:
        """Start with nothing heard."""
        self.heard: set[Hint] = set()
        self._wanted: tuple[Hint, asyncio.Future[None]] | None = None

    def hear(self, hint: Hint) -> None:
        """Note a hint."""
        self.heard.add(hint)
        if self._wanted is not None and self._wanted[0] is hint and not self._wanted[1].done():
            self._wanted[1].set_result(None)

    async def expect(self, hint: Hint) -> None:
        """Return once the hint has been heard."""
        if hint not in self.heard:
            self._wanted = (hint, asyncio.get_running_loop().create_future())
            await asyncio.wait_for(self._wanted[1], PATIENCE_S)

    async def hears(self, hint: Hint, act: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Have the act done and wait for the hint that it must bring."""
        self.heard.discard(hint)
        await act()
        await self.expect(hint)


class HintContract:
    """Who subscribes hears of changes soon."""

    @played
    async def test_p24_whatever_makes_work_is_hinted_at(self, stage: Stage) -> None:
        ears = Listener()
        stop = stage.store.subscribe(ears.hear)
        await ears.hears(Hint.WORK, stage.add)
        await ears.hears(Hint.WORK, lambda: stage.add(delay_s=5))
        taken = await stage.start()
        await ears.hears(Hint.WORK, lambda: stage.report(taken, GivenBack(stage.now, parked="p")))
        await ears.hears(Hint.WORK, lambda: self._see(stage, stage.store.unpark("p")))
        await stage.store.pause_queue("default")
        await ears.hears(Hint.WORK, lambda: stage.store.resume_queue("default"))
        again = await self._finished(stage)
        await ears.hears(Hint.WORK, lambda: self._see(stage, stage.store.retry(again.job, by="ops")))
        parent = await stage.start()
        await stage.add(depends_on=[parent.job])
        await ears.hears(Hint.WORK, lambda: stage.report(parent, Succeeded(stage.now, b"1")))
        stop()

    @played
    async def test_whatever_ends_is_hinted_at(self, stage: Stage) -> None:
        ears = Listener()
        stop = stage.store.subscribe(ears.hear)
        await ears.hears(Hint.ENDED, lambda: self._finished(stage))
        job = await stage.add()
        await ears.hears(Hint.ENDED, lambda: stage.cancel(job))
        await stage.add(expires_s=5)
        stage.advance(5)
        await ears.hears(Hint.ENDED, stage.turn)
        stop()

    @played
    async def test_p13_a_cancel_of_a_running_job_is_hinted_at(self, stage: Stage) -> None:
        ears = Listener()
        stop = stage.store.subscribe(ears.hear)
        taken = await stage.start()
        await ears.hears(Hint.CANCEL, lambda: stage.cancel(taken.job))
        stop()

    @played
    async def test_who_has_stopped_listening_hears_nothing_more(self, stage: Stage) -> None:
        first, second = Listener(), Listener()
        stop_first, stop_second = stage.store.subscribe(first.hear), stage.store.subscribe(second.hear)
        stop_first()
        stop_first()
        await second.hears(Hint.WORK, stage.add)
        assert first.heard == set()
        stop_second()

    async def _finished(self, stage: Stage) -> Taken:
        taken = await stage.start()
        await stage.report(taken, Succeeded(stage.now, b"1"))
        return taken

    async def _see(self, stage: Stage, act: Coroutine[Any, Any, Any]) -> None:
        stage.see(await act)
