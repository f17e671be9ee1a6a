"""Claims: how many, which, in what order, for whom."""

from __future__ import annotations

from asyncio import gather

from betimes.core.events import Errored, GivenBack, Snoozed, Succeeded
from betimes.core.job import JobStatus
from betimes.testing.store_contract.stage import BOOM, Stage, Taken, played

RUNNING = JobStatus.RUNNING


def numbers(taken: list[Taken]) -> list[int]:
    """The versions that were claimed, in order."""
    return [one.job.seq for one in taken]


class ClaimContract:
    """What a claim promises."""

    @played
    async def test_p06_a_claim_puts_a_job_under_the_workers_lease(self, stage: Stage) -> None:
        job = await stage.add()
        await stage.worker()
        stage.advance(3)
        (taken,) = await stage.claim()
        state = await stage.state(job)
        assert (state.status, state.worker, state.fence, state.attempt) == (RUNNING, "w1", 1, 1)
        assert (state.started_at, state.finished_at, taken.fence) == (stage.now, None, 1)
        assert await stage.claim() == []

    @played
    async def test_p20_a_claim_takes_what_it_asked_for_and_no_more(self, stage: Stage) -> None:
        jobs = await stage.submit(*(stage.job() for _ in range(10)))
        await stage.worker()
        assert await stage.claim(0) == []
        assert numbers(await stage.claim(3)) == [job.seq for job in jobs[:3]]
        assert numbers(await stage.claim(100)) == [job.seq for job in jobs[3:]]

    @played
    async def test_p20_smaller_keys_go_first_and_equal_ones_by_submission(self, stage: Stage) -> None:
        keys = [5, -3, 5, 0, 2**63 - 1, -(2**63), 0]
        jobs = await stage.submit(*(stage.job(sort_key=key) for key in keys))
        await stage.worker()
        expected = sorted(jobs, key=lambda job: (job.sort_key, job.seq))
        assert numbers(await stage.claim()) == [job.seq for job in expected]

    @played
    async def test_p20_the_order_holds_over_queues_and_lanes(self, stage: Stage) -> None:
        places = [(queue, lane) for queue in "abc" for lane in ("loop", "thread")]
        jobs = await stage.submit(
            *(
                stage.job(queue=queue, lane=lane, sort_key=(7 * n) % 5)
                for n, (queue, lane) in enumerate(places * 5)
            )
        )
        await stage.worker()
        expected = [job.seq for job in sorted(jobs, key=lambda job: (job.sort_key, job.seq))]
        got = [seq for _ in range(6) for seq in numbers(await stage.claim(5))]
        assert got == expected

    @played
    async def test_p19_each_lane_gets_at_most_its_free_slots(self, stage: Stage) -> None:
        threads = await stage.submit(*(stage.job(lane="thread") for _ in range(5)))
        loops = await stage.submit(*(stage.job(lane="loop", sort_key=1) for _ in range(5)))
        await stage.worker()
        first = await stage.claim(10, lanes={"thread": 2, "loop": 1})
        assert numbers(first) == [job.seq for job in (*threads[:2], loops[0])]
        assert numbers(await stage.claim(10, lanes={"thread": 0, "loop": 2})) == [
            job.seq for job in loops[1:3]
        ]
        assert numbers(await stage.claim(3, lanes={"thread": 2, "loop": 9})) == [
            job.seq for job in (*threads[2:4], loops[3])
        ]

    @played
    async def test_p19_a_lane_that_is_not_named_is_not_served(self, stage: Stage) -> None:
        await stage.add(lane="process")
        other = await stage.add(lane="loop", sort_key=1)
        await stage.worker()
        assert numbers(await stage.claim(10, lanes={"loop": 5})) == [other.seq]
        assert await stage.claim(10, lanes={}) == []

    @played
    async def test_p20_only_the_queues_asked_for_are_served(self, stage: Stage) -> None:
        a, b, c = [await stage.add(queue=queue) for queue in "abc"]
        await stage.worker()
        assert await stage.claim(queues=()) == []
        assert await stage.claim(queues=("z",)) == []
        assert numbers(await stage.claim(queues=("c", "a"))) == [a.seq, c.seq]
        assert numbers(await stage.claim()) == [b.seq]

    @played
    async def test_p26_what_is_on_hold_is_passed_over_and_hides_nothing(self, stage: Stage) -> None:
        held, *others = await stage.submit(*(stage.job(sort_key=n) for n in range(4)))
        await stage.worker()
        assert numbers(await stage.claim(1, lanes={"loop": 1}, hold={held.id})) == [others[0].seq]
        assert numbers(await stage.claim(2, hold=[held.id, others[1].id])) == [others[2].seq]
        assert numbers(await stage.claim(10)) == [held.seq, others[1].seq], "it lost neither place nor chance"

    @played
    async def test_p26_an_id_on_hold_is_passed_over_in_every_version(self, stage: Stage) -> None:
        old = await stage.start("x")
        newer = await stage.add("x", replace_older=True)
        other = await stage.add(sort_key=1)
        await stage.report(old, Succeeded(stage.now, b"1"))
        assert await stage.status(newer) is JobStatus.READY
        assert numbers(await stage.claim(hold=["x"])) == [other.seq]
        assert numbers(await stage.claim()) == [newer.seq]

    @played
    async def test_p06_two_workers_never_get_the_same_job(self, stage: Stage) -> None:
        await stage.submit(*(stage.job() for _ in range(30)))
        for name in ("w1", "w2", "w3"):
            await stage.worker(name)
        shares = await gather(*(stage.claim(8, worker=name) for name in ("w1", "w2", "w3", "w1")))
        seqs = [seq for share in shares for seq in numbers(share)]
        assert len(seqs) == len(set(seqs)) == 30

    @played
    async def test_p06_only_a_worker_whose_lease_holds_gets_work(self, stage: Stage) -> None:
        job = await stage.add()
        await stage.worker("retired")
        await stage.store.retire("retired")
        await stage.worker("silent")
        stage.advance(31)
        for name in ("never registered", "retired", "silent"):
            assert await stage.claim(worker=name) == []
        await stage.worker("fresh")
        assert numbers(await stage.claim(worker="fresh")) == [job.seq]

    @played
    async def test_p14_case_090_nothing_is_claimed_before_its_time(self, stage: Stage) -> None:
        job = await stage.add(delay_s=300)
        for _ in range(10):
            stage.advance(29.9)
            await stage.worker()
            assert await stage.claim() == []
        stage.advance(0.999999)
        assert await stage.claim() == []
        stage.advance(0.000001)
        assert numbers(await stage.claim()) == [job.seq]

    @played
    async def test_p14_nothing_is_claimed_from_a_paused_queue(self, stage: Stage) -> None:
        paused, other = await stage.add(queue="a"), await stage.add(queue="b")
        later = await stage.add(queue="a", delay_s=5)
        await stage.worker()
        await stage.store.pause_queue("a")
        await stage.store.pause_queue("a")
        assert set(await stage.store.paused_queues()) == {"a"}
        assert numbers(await stage.claim()) == [other.seq]
        stage.advance(5)
        assert await stage.claim(queues=("a",)) == []
        await stage.store.resume_queue("a")
        await stage.store.resume_queue("never paused")
        assert await stage.store.paused_queues() == {}
        assert numbers(await stage.claim()) == [paused.seq, later.seq]

    @played
    async def test_case_137_a_jobs_place_does_not_depend_on_its_path(self, stage: Stage) -> None:
        parent = await stage.start()
        retried = await stage.start()
        snoozed = await stage.start()
        given_back = await stage.start()
        lost = await stage.start(worker="w2", task="other")
        ways = [
            await stage.add(sort_key=5),
            await stage.add(sort_key=-2, delay_s=31),
            await stage.add(sort_key=3, depends_on=[parent.job]),
        ]
        await stage.report(parent, Succeeded(stage.now, b"1"))
        await stage.report(retried, Errored(stage.now, BOOM, retry_in_us=1))
        await stage.report(snoozed, Snoozed(stage.now, 31_000_000))
        await stage.report(given_back, GivenBack(stage.now))
        stage.advance(31)
        await stage.worker()
        stage.see(await stage.store.rescue({"other"}))
        again = [one.job for one in (retried, snoozed, given_back, lost)]
        expected = [*sorted(again, key=lambda job: job.sort_key), *sorted(ways, key=lambda job: job.sort_key)]
        assert numbers(await stage.claim()) == [job.seq for job in expected]

    @played
    async def test_p20_what_takes_the_place_of_a_held_or_expired_job_stands_in_order(
        self, stage: Stage
    ) -> None:
        await stage.worker()
        for left_out in ("held", "expired"):
            await stage.add(left_out, sort_key=1, expires_s=1 if left_out == "expired" else None)
            behind = await stage.submit(
                stage.job(sort_key=2),
                stage.job(sort_key=3, lane="thread"),
                stage.job(sort_key=4, lane="thread"),
            )
            stage.advance(1)
            taken = await stage.claim(4, lanes={"loop": 1, "thread": 2}, hold={"held"})
            assert numbers(taken) == [job.seq for job in behind]

    @played
    async def test_a_jobs_rank_counts_what_could_go_before_it(self, stage: Stage) -> None:
        ahead = await stage.submit(*(stage.job(sort_key=n) for n in range(5)))
        parked = await stage.start()
        await stage.report(parked, GivenBack(stage.now, parked="p"))
        await stage.submit(
            stage.job(queue="other"),
            stage.job(lane="thread"),
            stage.job(delay_s=5),
            stage.job(depends_on=[ahead[0]]),
        )
        subject = await stage.add(sort_key=4)
        await stage.submit(stage.job(sort_key=4), stage.job(sort_key=9))
        assert await stage.store.ahead(subject) == 5
        assert await stage.store.ahead(subject, most=2) == 2
        assert await stage.store.ahead(ahead[0]) == 0
        await stage.claim(2, lanes={"loop": 2}, queues=("default",))
        assert await stage.store.ahead(subject) == 3
