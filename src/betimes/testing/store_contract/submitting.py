"""Placing, batches, and what comes back of what was given."""

from __future__ import annotations

from collections.abc import Mapping

from betimes.core.events import Succeeded
from betimes.core.job import Job, JobStatus, Terms
from betimes.errors import BetimesError, ConfigurationError, DuplicateJob, UnknownJob
from betimes.testing.store_contract.stage import SECOND, Stage, again, played, refused

BLOCKED, DELAYED, READY = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY
PAYLOAD = '[["naïve \U0001f600 \\u0000", 1e3, 1.0,  -0.0,{"b":1,"a":[null]}],{}]'.encode()
RETRY: Mapping[str, object] = {"max_attempts": 5, "base_delay": 0.5, "max_delay": 60.0, "jitter": True}
BIG = 10_000_000


class SubmitContract:
    """What `submit` promises of each job and of a batch."""

    @played
    async def test_p14_a_job_waits_where_its_time_and_its_dependencies_put_it(self, stage: Stage) -> None:
        parent = await stage.add()
        jobs = await stage.submit(
            stage.job(),
            stage.job(delay_s=5),
            stage.job(depends_on=[parent]),
            stage.job(depends_on=[parent], delay_s=5),
        )
        assert await stage.statuses_of(*jobs) == [READY, DELAYED, BLOCKED, BLOCKED]

    @played
    async def test_p14_one_microsecond_ahead_is_ahead(self, stage: Stage) -> None:
        ahead, due, past = await stage.submit(
            stage.job(delay_s=0.000001), stage.job(), stage.job(delay_s=-3600)
        )
        assert await stage.statuses_of(ahead, due, past) == [DELAYED, READY, READY]

    @played
    async def test_p05_what_was_submitted_comes_back_byte_for_byte(self, stage: Stage) -> None:
        asked = stage.job(
            "Ünïcode \U0001f600 'quoted' \"id\"",
            payload=PAYLOAD,
            delay_s=1,
            sort_key=-(2**63),
            expires_s=86_400.5,
            task="módulo.tarea",
            queue="späte Post",
            lane="thread",
            priority=-1000,
            timeout_s=0.1,
            keep_s=1e-6,
            retry=RETRY,
            tags=("a", "ü,b"),
        )
        given = asked.copy()
        stage.advance(1)
        (kept,) = await stage.submit(asked)
        for seen in (await stage.state(kept), await stage.store.find(asked.id)):
            assert seen is not None
            assert (seen.id, seen.payload, seen.spec) == (given.id, given.payload, given.spec)
            assert (seen.run_at, seen.sort_key, seen.expires_at) == (given.run_at, -(2**63), given.expires_at)
            assert seen.submitted_at == given.submitted_at
        await stage.worker()
        (taken,) = await stage.claim()
        assert (taken.job.payload, taken.job.spec) == (given.payload, given.spec)

    @played
    async def test_p05_an_option_that_was_not_given_stays_not_given(self, stage: Stage) -> None:
        asked = stage.job()
        spec = asked.spec
        seen = await stage.state(await stage.add())
        assert (seen.spec, seen.expires_at, seen.key, seen.depends_on) == (spec, None, None, ())
        zero = await stage.state(await stage.add(timeout_s=0.0, keep_s=0.0, sort_key=2**63 - 1))
        assert (zero.spec.timeout_s, zero.spec.keep_s, zero.sort_key) == (0.0, 0.0, 2**63 - 1)

    @played
    async def test_p05_a_result_comes_back_byte_for_byte(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.report(taken, Succeeded(stage.now, PAYLOAD))
        assert (await stage.state(taken.job)).result == PAYLOAD

    @played
    async def test_case_128_ten_megabytes_come_back_whole(self, stage: Stage) -> None:
        payload = b'[["' + b"x" * BIG + b'"],{}]'
        taken = await stage.start(payload=payload)
        assert taken.job.payload == payload
        await stage.report(taken, Succeeded(stage.now, payload))
        assert (await stage.state(taken.job)).result == payload

    @played
    async def test_case_122_stored_arguments_do_not_change(self, stage: Stage) -> None:
        first = await stage.add("x", payload=PAYLOAD)
        for _ in range(3):
            await stage.add("x", payload=PAYLOAD, delay_s=60, replace_older=True)
        newest = await stage.store.find("x")
        assert newest is not None
        assert (newest.payload, (await stage.state(first)).payload) == (PAYLOAD, PAYLOAD)

    @played
    async def test_p20_a_batch_is_numbered_in_the_order_given(self, stage: Stage) -> None:
        before = await stage.add()
        batch = await stage.submit(*(stage.job(delay_s=delay) for delay in (3, 0, 2, 0)))
        numbers = [job.seq for job in (before, *batch)]
        assert numbers == sorted(set(numbers))
        assert numbers[0] > 0

    @played
    async def test_every_submit_is_announced_with_its_time_and_place(self, stage: Stage) -> None:
        stage.advance(7)
        _, changes = await stage.store.submit([stage.job(queue="q"), stage.job(task="u", delay_s=1)])
        stage.see(changes)
        seen = [(event.before, event.after, event.task, event.queue, event.attempt) for event in changes]
        assert seen == [(None, READY, "t", "q", 0), (None, DELAYED, "u", "default", 0)]
        assert {event.at_us for event in changes} == {stage.now}

    @played
    async def test_an_empty_batch_is_fine(self, stage: Stage) -> None:
        assert [list(part) for part in await stage.store.submit([])] == [[], []]

    @played
    async def test_a_large_batch_is_kept_whole(self, stage: Stage) -> None:
        jobs = await stage.submit(*(stage.job(sort_key=-n) for n in range(2_000)))
        await stage.worker()
        taken = await stage.claim(1_000)
        assert [one.job.seq for one in taken] == [job.seq for job in reversed(jobs[1_000:])]

    async def _refuses_all(self, stage: Stage, bad: Job, error: type[BetimesError]) -> None:
        """A batch with one bad job changes nothing, and can be submitted again without it."""
        good = [stage.job("good"), stage.job(delay_s=5)]
        before = await stage.snapshot()
        for batch in ([*good, bad], [bad, *good], [good[0], bad, good[1]]):
            with refused(error):
                await stage.store.submit(batch)
            assert await stage.snapshot() == before
        kept = await stage.submit(*good)
        assert await stage.statuses_of(*kept) == [READY, DELAYED]

    @played
    async def test_a_batch_with_a_duplicate_is_refused_whole(self, stage: Stage) -> None:
        await stage.add("taken")
        await self._refuses_all(stage, stage.job("taken"), DuplicateJob)

    @played
    async def test_a_batch_with_an_unknown_dependency_is_refused_whole(self, stage: Stage) -> None:
        await self._refuses_all(stage, stage.job(depends_on=["nobody"]), UnknownJob)

    @played
    async def test_case_126_a_batch_with_a_misused_key_is_refused_whole(self, stage: Stage) -> None:
        until = stage.now + 60 * SECOND
        await stage.add(terms=Terms(key="k", key_until=until, key_digest=b"1"))
        bad = stage.job(terms=Terms(key="k", key_until=until, key_digest=b"2"))
        await self._refuses_all(stage, bad, ConfigurationError)

    @played
    async def test_two_of_a_batch_cannot_share_an_id(self, stage: Stage) -> None:
        with refused(DuplicateJob) as caught:
            await stage.store.submit([stage.job("x"), stage.job("x")])
        assert isinstance(caught.error, DuplicateJob)
        assert caught.error.job_id == "x"
        assert await stage.store.find("x") is None

    @played
    async def test_p02_a_batch_whose_reply_was_lost_is_kept_once(self, stage: Stage) -> None:
        first = stage.job("named", terms=Terms(named=True, token="t1"))
        keyed = stage.job(terms=Terms(key="k", key_until=stage.now + 60 * SECOND))
        batch = [first, keyed, stage.job(depends_on=[first, keyed])]
        same = again(batch)
        kept = await stage.submit(*batch)
        before = await stage.snapshot()
        for repeated in (same, batch):
            found = await stage.submit(*repeated)
            assert [job.seq for job in found] == [job.seq for job in kept]
            assert await stage.snapshot() == before
