"""Fair share: the store gives out the places, in start-time fair queueing, when jobs become ready."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.core.events import Errored, GivenBack, Snoozed, Succeeded
from betimes.core.job import Job, Tenant
from betimes.core.shares import COST, UNTAGGED
from betimes.errors import DuplicateJob
from betimes.testing.store_contract.gate_stage import GateStage, seqs
from betimes.testing.store_contract.stage import BOOM, Stage, played, refused

A, B, C = (Tenant(name, COST) for name in ("a", "b", "c"))


def weighing(name: str, weight: int) -> Tenant:
    """A tenant of this weight."""
    return Tenant(name, COST // weight)


async def filled(stage: Stage, *batches: tuple[Tenant, int], **options: Any) -> list[Job]:
    """Submit so many jobs of each tenant, one tenant after the other."""
    jobs = [
        stage.job(tenant=tenant, sort_key=UNTAGGED, **options)
        for tenant, number in batches
        for _ in range(number)
    ]
    return await stage.submit(*jobs)


async def order(stage: Stage, number: int = 1000, *, at_once: int = 1, ends: bool = True) -> str:
    """The tenants of the next so many jobs that are claimed; each is finished before the next claim."""
    names = ""
    while len(names) < number:
        taken = await stage.claim(min(at_once, number - len(names)))
        if not taken:
            break
        for one in taken:
            assert one.job.tenant is not None
            names += one.job.tenant.name
            if ends:
                await stage.report(one, Succeeded(stage.now, b"1"))
    return names


class Reference:
    """Start-time fair queueing as the paper has it, for jobs that all arrive before the first is claimed."""

    def __init__(self, tenants: Sequence[Tenant]) -> None:
        """Queue one job of each, in this order."""
        finish: dict[str, int] = {}
        self.tags: list[tuple[int, int, str]] = []
        for place, tenant in enumerate(tenants):
            start = finish.get(tenant.name, 0)
            finish[tenant.name] = start + tenant.cost
            self.tags.append((start, place, tenant.name))

    def order(self) -> str:
        """Who goes when."""
        return "".join(name for _, _, name in sorted(self.tags))


class TenantContract:
    """What fair share promises."""

    @played
    async def test_equal_tenants_take_turns_whatever_each_has_submitted(self, stage: Stage) -> None:
        await stage.worker()
        await filled(stage, (A, 6), (B, 3), (C, 1))
        assert await order(stage) == "abcababaaa"

    @played
    async def test_a_claim_of_many_takes_them_in_the_same_order(self, stage: Stage) -> None:
        await stage.worker()
        await filled(stage, (A, 6), (B, 3), (C, 1))
        assert await order(stage, at_once=7, ends=False) == "abcababaaa"

    @played
    async def test_tenants_get_starts_in_proportion_to_their_weights(self, stage: Stage) -> None:
        await stage.worker()
        a, b, c = weighing("a", 4), weighing("b", 2), weighing("c", 1)
        await filled(stage, (c, 40), (b, 40), (a, 40))
        got = await order(stage, 70)
        assert got == Reference([c] * 40 + [b] * 40 + [a] * 40).order()[:70]
        for begin in range(60):
            window = got[begin : begin + 7]
            assert abs(window.count("a") - 4) <= 1
            assert abs(window.count("b") - 2) <= 1
            assert abs(window.count("c") - 1) <= 1

    @played
    async def test_who_was_idle_gets_no_credit(self, stage: Stage) -> None:
        await stage.worker()
        await filled(stage, (A, 20))
        assert await order(stage, 10) == "a" * 10
        await filled(stage, (B, 5))
        assert await order(stage, 8) == "babababa"
        await order(stage)
        await filled(stage, (B, 2), (A, 2), (C, 2))
        assert await order(stage, 4) == "bcba", "one round, and all have had their turn"

    @played
    async def test_a_flood_delays_nobody_elses_first_job_by_more_than_a_round(self, stage: Stage) -> None:
        await stage.worker()
        await filled(stage, (B, 10), (C, 10))
        assert await order(stage, 6) == "bcbcbc"
        await filled(stage, (A, 500))
        await order(stage, 4)
        late = Tenant("d", COST)
        await filled(stage, (late, 2))
        assert "d" in await order(stage, 4)

    @played
    async def test_priority_decides_between_those_whose_turn_it_is(self, stage: Stage) -> None:
        await stage.worker()
        for tenant, priority in ((A, 0), (B, 3), (C, 2)):
            await filled(stage, (tenant, 2), priority=priority)
        assert await order(stage) == "bcabca"

    @played
    async def test_a_delayed_job_gets_its_place_when_it_is_due(self, stage: Stage) -> None:
        await stage.worker(lease_s=1000.0)
        delayed = await filled(stage, (A, 4), delay_s=60.0)
        assert [job.sort_key for job in [await stage.state(job) for job in delayed]] == [UNTAGGED] * 4
        await filled(stage, (B, 30))
        assert await order(stage, 20) == "b" * 20
        stage.advance(60)
        await stage.turn()
        got = await order(stage, 8)
        assert (got.count("a"), "aaa" in got) == (4, False), "its place is that of a tenant that comes now"

    @played
    async def test_a_blocked_job_gets_its_place_when_it_is_released(self, stage: Stage) -> None:
        parent = await stage.start()
        blocked = await filled(stage, (A, 2), depends_on=[parent.job])
        await filled(stage, (B, 9))
        assert await order(stage, 5) == "bbbbb"
        assert (await stage.state(blocked[0])).sort_key == UNTAGGED
        await stage.report(parent, Succeeded(stage.now, b"1"))
        assert (await order(stage, 4)).count("a") == 2
        assert (await stage.state(blocked[0])).sort_key != UNTAGGED

    @played
    async def test_p20_a_place_is_kept_through_retries_snoozes_and_rescue(self, stage: Stage) -> None:
        await stage.worker()
        jobs = await filled(stage, (A, 4), (B, 1))
        taken = await stage.claim(4)
        keys = [one.job.sort_key for one in taken]
        assert keys == sorted(keys)
        await stage.report(taken[0], Errored(stage.now, BOOM, 1))
        await stage.report(taken[1], Snoozed(stage.now, 1))
        await stage.report(taken[2], GivenBack(stage.now))
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        await stage.worker("w2")
        again = await stage.claim(worker="w2")
        assert seqs(again[:4]) == seqs(taken)
        assert [one.job.sort_key for one in again[:4]] == keys
        assert again[4].job.seq == jobs[3].seq

    @played
    async def test_what_comes_again_costs_its_tenant_nothing_more(self, stage: Stage) -> None:
        await stage.worker()
        await filled(stage, (A, 1))
        for _ in range(5):
            (taken,) = await stage.claim()
            await stage.report(taken, Errored(stage.now, BOOM, 0))
        await filled(stage, (B, 3), (A, 3))
        assert await order(stage) == "abbabaa"

    @played
    async def test_a_refused_batch_costs_its_tenant_nothing(self, stage: Stage) -> None:
        await stage.worker()
        await stage.add("x", delay_s=999.0)
        batch = [stage.job(tenant=A, sort_key=UNTAGGED) for _ in range(9)]
        with refused(DuplicateJob):
            await stage.store.submit([*batch, stage.job("x")])
        await filled(stage, (B, 2), (A, 2))
        assert await order(stage) == "baba"

    @played
    async def test_who_waits_at_a_gate_keeps_its_place(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        holder = await gates.start(limit)
        waiting = await filled(stage, (A, 2), gates=[limit])
        await filled(stage, (B, 6))
        assert await order(stage, 4) == "bbbb"
        assert await gates.waiting(limit) == seqs(waiting)
        await gates.tell(holder)
        assert await order(stage, 4) == "aabb"

    @played
    async def test_jobs_without_a_tenant_go_by_their_own_key(self, stage: Stage) -> None:
        await stage.worker()
        await filled(stage, (A, 1))
        last, first = await stage.add(sort_key=2**62), await stage.add(sort_key=-(2**63))
        assert seqs(await stage.claim())[0::2] == [first.seq, last.seq]

    @played
    async def test_a_new_weight_holds_for_those_who_become_ready_from_then_on(self, stage: Stage) -> None:
        await stage.worker()
        await filled(stage, (A, 4), (B, 40))
        assert await order(stage, 8) == "abababab"
        await filled(stage, (weighing("a", 3), 12))
        got = await order(stage, 13)
        assert abs(got.count("a") - 9) <= 1
