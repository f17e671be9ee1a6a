"""Re-keying: all live jobs of a store in another strategy's order, in one step, while nobody works."""

from __future__ import annotations

from collections.abc import Callable

from betimes.core.events import Succeeded
from betimes.core.job import Job, JobStatus, Tenant
from betimes.core.shares import COST, UNTAGGED
from betimes.errors import ConfigurationError
from betimes.testing.store_contract.gate_stage import GateStage, seqs
from betimes.testing.store_contract.stage import Stage, played, refused

REVERSED = "reversed"


def reverse(job: Job) -> None:
    """Give the job the key of an order that turns the other one round."""
    job.sort_key = -job.seq
    job.tenant = None


def share(job: Job) -> None:
    """Give the job a tenant by its tag, and no place yet."""
    job.sort_key, job.tenant = UNTAGGED, Tenant(job.spec.tags[0], COST)


async def rekeyed(stage: Stage, strategy: str, assign: Callable[[Job], None]) -> int:
    """Re-key the store as an operator would: opened without a strategy, and opened with the new one after."""
    store = stage.store
    await store.close()
    await store.open(strategy=None)
    try:
        return await store.rekey(strategy=strategy, assign=assign)
    finally:
        await store.close()
        await store.open(strategy=strategy)


class RekeyContract:
    """What re-keying promises."""

    @played
    async def test_p20_all_live_jobs_are_in_the_new_order(self, stage: Stage) -> None:
        ready = await stage.submit(*(stage.job(queue="ab"[n % 2]) for n in range(6)))
        delayed = await stage.add(delay_s=5)
        parent = await stage.start()
        blocked = await stage.add(depends_on=[parent.job])
        stage.see(await stage.store.retire("w1"))
        assert await rekeyed(stage, REVERSED, reverse) == 9
        for job in [*ready, delayed, parent.job, blocked]:
            assert (await stage.state(job)).sort_key == -job.seq
        await stage.worker("w2")
        stage.advance(5)
        taken = await stage.claim(worker="w2")
        assert seqs(taken) == sorted(seqs([*ready, delayed, parent.job]), reverse=True)
        await stage.report(next(one for one in taken if one.job.seq == parent.job.seq), Succeeded(0, b"1"))
        assert seqs(await stage.claim(worker="w2")) == [blocked.seq]

    @played
    async def test_p20_the_new_strategy_is_remembered_and_the_old_one_refused(self, stage: Stage) -> None:
        await stage.add()
        assert await rekeyed(stage, REVERSED, reverse) == 1
        await stage.store.close()
        with refused(ConfigurationError):
            await stage.store.open(strategy="priority")
        await stage.store.open(strategy=REVERSED)

    @played
    async def test_nothing_is_rekeyed_under_a_worker(self, stage: Stage) -> None:
        await stage.submit(*(stage.job() for _ in range(3)))
        await stage.worker()
        before = await stage.snapshot()
        with refused(ConfigurationError):
            await stage.store.rekey(strategy=REVERSED, assign=reverse)
        assert await stage.snapshot() == before
        await stage.store.close()
        with refused(ConfigurationError):
            await stage.store.open(strategy=REVERSED)
        await stage.store.open(strategy="priority")

    @played
    async def test_a_worker_whose_lease_is_over_does_not_keep_a_store_from_it(self, stage: Stage) -> None:
        taken = await stage.start()
        stage.advance(31)
        assert await rekeyed(stage, REVERSED, reverse) == 1
        stage.see(await stage.store.rescue({"t"}))
        state = await stage.state(taken.job)
        assert (state.status, state.sort_key) == (JobStatus.READY, -taken.job.seq)

    @played
    async def test_finished_jobs_stay_as_they_are(self, stage: Stage) -> None:
        done = await stage.start()
        await stage.report(done, Succeeded(stage.now, b"1"))
        key = (await stage.state(done.job)).sort_key
        await stage.store.retire("w1")
        assert await rekeyed(stage, REVERSED, reverse) == 0
        assert (await stage.state(done.job)).sort_key == key

    @played
    async def test_tenants_get_their_places_in_the_order_of_submission(self, stage: Stage) -> None:
        jobs = await stage.submit(*(stage.job(tags=(tag,), sort_key=-n) for n, tag in enumerate("aaaabbc")))
        assert await rekeyed(stage, "fair", share) == 7
        await stage.worker()
        expected = [jobs[n].seq for n in (0, 4, 6, 1, 5, 2, 3)]
        assert seqs(await stage.claim()) == expected

    @played
    async def test_tenants_begin_anew_with_a_second_rekeying(self, stage: Stage) -> None:
        await stage.submit(*(stage.job(tags=("a",)) for _ in range(5)))
        await rekeyed(stage, "fair", share)
        first = [job.sort_key for job in reversed(await stage.everything())]
        assert await rekeyed(stage, "fairer", share) == 5
        assert [job.sort_key for job in reversed(await stage.everything())] == first

    @played
    async def test_delayed_jobs_of_tenants_still_get_a_place(self, stage: Stage) -> None:
        await stage.submit(*(stage.job(tags=(tag,), delay_s=5.0) for tag in "aaab"))
        await rekeyed(stage, "fair", share)
        await stage.worker()
        stage.advance(5)
        taken = await stage.claim()
        assert "".join(one.job.spec.tags[0] for one in taken) in {"abaa", "baaa"}
        assert all(one.job.sort_key != UNTAGGED for one in taken)

    @played
    async def test_who_waits_at_a_gate_is_in_the_new_order_too(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        jobs = await gates.add(4, limit)
        await stage.worker()
        assert seqs(await stage.claim()) == [jobs[0].seq]
        stage.see(await stage.store.retire("w1"))
        assert await rekeyed(stage, REVERSED, reverse) == 4
        await stage.worker("w2")
        got = []
        while claimed := await stage.claim(worker="w2"):
            (taken,) = claimed
            got.append(taken.job.seq)
            await gates.tell(taken)
        assert got == seqs(jobs[::-1])
