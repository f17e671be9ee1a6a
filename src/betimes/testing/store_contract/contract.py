"""The suite for any store: subclass it in your tests and say how your store is made."""

from __future__ import annotations

from betimes.errors import ConfigurationError
from betimes.testing.store_contract.breakers import BreakerContract
from betimes.testing.store_contract.claiming import ClaimContract
from betimes.testing.store_contract.dealing import DealContract
from betimes.testing.store_contract.dependencies import DependencyContract
from betimes.testing.store_contract.ending import CancelContract, PruneContract, RetryContract
from betimes.testing.store_contract.fire_history import FireHistoryContract
from betimes.testing.store_contract.firing import FireContract
from betimes.testing.store_contract.following import FollowContract
from betimes.testing.store_contract.gated_lives import GatedLifeContract
from betimes.testing.store_contract.gates import LimitChangeContract, LimitContract
from betimes.testing.store_contract.identity import IdContract, KeyContract
from betimes.testing.store_contract.leases import BeatContract, RescueContract
from betimes.testing.store_contract.lines import LineContract
from betimes.testing.store_contract.listing import HintContract, ListContract
from betimes.testing.store_contract.logs import LogContract
from betimes.testing.store_contract.overlapping import OverlapContract
from betimes.testing.store_contract.permits import LostPermitContract, PermitContract
from betimes.testing.store_contract.playing import STRATEGY, Played
from betimes.testing.store_contract.queues import QueueContract
from betimes.testing.store_contract.rates import RateChangeContract, RateContract
from betimes.testing.store_contract.rekeying import RekeyContract
from betimes.testing.store_contract.reporting import FenceContract, ReportContract
from betimes.testing.store_contract.schedules import ScheduleContract
from betimes.testing.store_contract.stage import Stage, played, refused
from betimes.testing.store_contract.submitting import SubmitContract
from betimes.testing.store_contract.tenants import TenantContract
from betimes.testing.store_contract.timing import TimeContract
from betimes.testing.store_contract.versions import VersionContract

__all__ = ["STRATEGY", "StoreContract"]


class StoreContract(
    Played,
    SubmitContract,
    IdContract,
    KeyContract,
    VersionContract,
    DependencyContract,
    ClaimContract,
    TimeContract,
    ReportContract,
    FenceContract,
    BeatContract,
    RescueContract,
    CancelContract,
    RetryContract,
    PruneContract,
    ListContract,
    QueueContract,
    HintContract,
    ScheduleContract,
    FireContract,
    FireHistoryContract,
    OverlapContract,
    FollowContract,
    LimitContract,
    LimitChangeContract,
    GatedLifeContract,
    LineContract,
    PermitContract,
    LostPermitContract,
    RateContract,
    RateChangeContract,
    BreakerContract,
    DealContract,
    TenantContract,
    RekeyContract,
    LogContract,
):
    """What every store must do, as tests that carry the numbers of the promises they hold it to.

    Each test is a plain method: it makes a clock that stands still and a store, opens it, plays its scene on
    a virtual loop, and in the end compares everything that the store has said with what it holds. There are
    no fixtures and no sleeps. For a durable store take `DurableStoreContract`, which has more tests.

    Example:
        >>> class TestMemoryStore(StoreContract):
        ...     def make_store(self, clock):
        ...         return MemoryStore(clock=clock)
    """

    @played
    async def test_closing_twice_is_fine(self, stage: Stage) -> None:
        await stage.store.close()
        await stage.store.close()
        await stage.store.open(strategy=STRATEGY)

    @played
    async def test_a_store_with_jobs_refuses_another_strategy(self, stage: Stage) -> None:
        job = await stage.add()
        await stage.store.close()
        with refused(ConfigurationError):
            await stage.store.open(strategy="another")
        stage.statuses.clear()
        await stage.store.open(strategy=STRATEGY)
        if await stage.store.find(job.id) is not None:
            stage.statuses[job.seq] = job.status

    @played
    async def test_the_stores_time_is_its_clocks(self, stage: Stage) -> None:
        before = stage.store.now()
        stage.advance(1.5)
        assert stage.store.now() == before + 1_500_000
