"""Ids, tokens and keys: what makes two submissions one."""

from __future__ import annotations

from asyncio import TaskGroup

from betimes.core.events import Succeeded
from betimes.core.job import Job, JobStatus, Terms
from betimes.errors import ConfigurationError, DuplicateJob
from betimes.testing.store_contract.stage import DAY, SECOND, Stage, again, played, refused

READY, RUNNING = JobStatus.READY, JobStatus.RUNNING
HOUR_S = 3_600.0


def keyed(stage: Stage, key: str = "k", *, digest: bytes = b"1", for_s: float = HOUR_S) -> Job:
    """A job under an idempotency key."""
    until = stage.now + round(for_s * SECOND)
    return stage.job(terms=Terms(key=key, key_until=until, key_digest=digest))


async def finish(stage: Stage, job: Job) -> None:
    """Run a READY job to its end."""
    await stage.worker()
    (taken,) = [one for one in await stage.claim() if one.job.seq == job.seq]
    await stage.report(taken, Succeeded(stage.now, b"1"))


class IdContract:
    """Who may have an id, and what a repeated submission finds."""

    @played
    async def test_p02_a_generated_id_submitted_again_finds_the_first(self, stage: Stage) -> None:
        job = stage.job()
        twin, later = again([job])[0], again([job])[0]
        (kept,) = await stage.submit(job)
        assert [(await stage.submit(one))[0].seq for one in (job, twin)] == [kept.seq] * 2
        await finish(stage, kept)
        (found,) = await stage.submit(later)
        assert (found.seq, found.status) == (kept.seq, JobStatus.COMPLETED)

    @played
    async def test_p02_a_name_under_the_same_token_finds_the_first_in_whatever_state(
        self, stage: Stage
    ) -> None:
        job = stage.job("x", terms=Terms(named=True, token="t1"))
        twins = [again([job])[0] for _ in range(3)]
        (kept,) = await stage.submit(job)
        assert (await stage.submit(twins[0]))[0].seq == kept.seq
        await stage.worker()
        (taken,) = await stage.claim()
        assert (await stage.submit(twins[1]))[0].seq == kept.seq
        await stage.report(taken, Succeeded(stage.now, b"1"))
        assert (await stage.submit(twins[2]))[0].seq == kept.seq

    @played
    async def test_p02_a_repeated_submission_finds_its_own_version_though_a_newer_one_has_come(
        self, stage: Stage
    ) -> None:
        job = stage.job("x", terms=Terms(named=True, token="t1", replace=True))
        twin = again([job])[0]
        (kept,) = await stage.submit(job)
        newer = await stage.add("x", replace_older=True, terms=Terms(token="t2"))
        before = await stage.snapshot()
        for repeated in (job, twin):
            (found,) = await stage.submit(repeated)
            assert found.seq == kept.seq != newer.seq
            assert await stage.snapshot() == before

    @played
    async def test_a_live_job_keeps_its_id_to_itself(self, stage: Stage) -> None:
        first = await stage.add("x", terms=Terms(token="t1"))
        await stage.worker()
        for state in (READY, RUNNING):
            assert await stage.status(first) is state
            before = await stage.snapshot()
            for job in (stage.job("x"), stage.job("x", terms=Terms(token="t2"))):
                with refused(DuplicateJob) as caught:
                    await stage.store.submit([job])
                assert isinstance(caught.error, DuplicateJob)
                assert caught.error.job_id == "x"
            assert await stage.snapshot() == before
            await stage.claim()

    @played
    async def test_case_104_an_id_used_again_is_a_fresh_record(self, stage: Stage) -> None:
        first = await stage.add("x", expires_s=60)
        await finish(stage, first)
        old = await stage.state(first)
        stage.advance(5)
        second = await stage.add("x")
        fresh = await stage.state(second)
        assert second.seq > first.seq
        assert (fresh.status, fresh.attempt, fresh.fence, fresh.crashes) == (READY, 0, 0, 0)
        assert (fresh.started_at, fresh.finished_at, fresh.expires_at, fresh.result) == (
            None,
            None,
            None,
            None,
        )
        assert (fresh.submitted_at, fresh.attempts) == (stage.now, ())
        found = await stage.store.find("x")
        assert found is not None
        assert found.seq == second.seq
        assert ((await stage.state(first)).result, old.status) == (b"1", JobStatus.COMPLETED)


class KeyContract:
    """Idempotency keys belong to the job, not to the attempt."""

    @played
    async def test_p03_a_key_finds_the_first_job_in_every_state(self, stage: Stage) -> None:
        (first,) = await stage.submit(keyed(stage))
        assert (await stage.state(first)).key == "k"
        assert (await stage.submit(keyed(stage)))[0].seq == first.seq, "READY"
        await stage.worker()
        (taken,) = await stage.claim()
        assert (await stage.submit(keyed(stage)))[0].seq == first.seq, "RUNNING"
        await stage.report(taken, Succeeded(stage.now, b"1"))
        (found,) = await stage.submit(keyed(stage))
        assert (found.seq, found.status, found.result) == (first.seq, JobStatus.COMPLETED, b"1")

    @played
    async def test_p03_a_cancelled_jobs_key_still_stands_for_it(self, stage: Stage) -> None:
        (first,) = await stage.submit(keyed(stage))
        await stage.cancel(first)
        (found,) = await stage.submit(keyed(stage))
        assert (found.seq, found.status) == (first.seq, JobStatus.CANCELLED)

    @played
    async def test_p03_other_arguments_under_a_key_are_an_error(self, stage: Stage) -> None:
        await stage.submit(keyed(stage))
        before = await stage.snapshot()
        with refused(ConfigurationError) as caught:
            await stage.store.submit([keyed(stage, digest=b"2")])
        assert "'k'" in str(caught.error)
        assert await stage.snapshot() == before

    @played
    async def test_p03_a_key_is_forgotten_when_its_time_is_over(self, stage: Stage) -> None:
        (first,) = await stage.submit(keyed(stage))
        stage.advance(HOUR_S - 1)
        assert (await stage.submit(keyed(stage)))[0].seq == first.seq, "asking again does not prolong it"
        stage.advance(2)
        (second,) = await stage.submit(keyed(stage, digest=b"2"))
        assert second.seq > first.seq
        assert (await stage.submit(keyed(stage, digest=b"2")))[0].seq == second.seq

    @played
    async def test_p03_an_old_holder_that_goes_does_not_take_the_new_holders_key_along(
        self, stage: Stage
    ) -> None:
        (first,) = await stage.submit(keyed(stage, for_s=1))
        await finish(stage, first)
        stage.advance(2)
        (second,) = await stage.submit(keyed(stage, for_s=10 * HOUR_S))
        stage.advance(HOUR_S)
        assert await stage.store.prune(keep_us=60 * SECOND) == 1
        assert (await stage.submit(keyed(stage)))[0].seq == second.seq

    @played
    async def test_p03_a_key_goes_with_its_job(self, stage: Stage) -> None:
        (first,) = await stage.submit(keyed(stage, for_s=10 * HOUR_S))
        await finish(stage, first)
        stage.advance(HOUR_S)
        assert await stage.store.prune(keep_us=60 * SECOND) == 1
        (second,) = await stage.submit(keyed(stage, digest=b"2"))
        assert second.seq > first.seq
        assert await stage.status(second) is READY

    @played
    async def test_p03_a_key_is_kept_while_its_job_lives_and_its_time_lasts(self, stage: Stage) -> None:
        (first,) = await stage.submit(keyed(stage, for_s=10 * HOUR_S))
        stage.advance(HOUR_S)
        assert await stage.store.prune(keep_us=0) == 0
        assert (await stage.submit(keyed(stage)))[0].seq == first.seq

    @played
    async def test_p03_two_of_a_batch_under_one_key_are_one(self, stage: Stage) -> None:
        kept = await stage.submit(keyed(stage), keyed(stage), keyed(stage, "other"))
        assert kept[0].seq == kept[1].seq != kept[2].seq
        with refused(ConfigurationError):
            await stage.store.submit([keyed(stage, "new"), keyed(stage, "new", digest=b"2")])
        assert len(await stage.everything()) == 2

    @played
    async def test_case_126_a_known_key_does_not_hold_up_its_batch(self, stage: Stage) -> None:
        (known,) = await stage.submit(keyed(stage))
        kept, changes = await stage.store.submit([stage.job(), keyed(stage), stage.job()])
        stage.see(changes)
        assert kept[1].seq == known.seq
        assert [event.seq for event in changes] == [kept[0].seq, kept[2].seq]

    @played
    async def test_case_124_all_racers_under_one_key_get_the_same_job(self, stage: Stage) -> None:
        async with TaskGroup() as racers:
            runs = [racers.create_task(stage.submit(keyed(stage))) for _ in range(50)]
        assert len({run.result()[0].seq for run in runs}) == 1
        assert len(await stage.everything()) == 1

    @played
    async def test_a_key_can_be_waited_for(self, stage: Stage) -> None:
        (first,) = await stage.submit(keyed(stage, for_s=DAY / SECOND))
        (found,) = await stage.submit(keyed(stage))
        child = await stage.add(depends_on=[found])
        assert (await stage.state(child)).depends_on == (first.id,)
