"""Single connections of a store fail, in whatever way: they are made anew, and the work goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import psycopg
import pytest
from tests.postgres.server import Server, fresh_schema, start_server
from tests.system.tcp_proxy import Proxy

from betimes import Context, JobStatus, Scheduler, StoreUnavailable, every
from betimes.clock import SystemClock
from betimes.stores.postgres import bell, session, writer
from betimes.tasks import Task

PATIENCE_S = 40.0
HOUR_US = 3_600_000_000


@pytest.fixture
def proxy(postgres: Server) -> Iterator[Proxy]:
    with Proxy(postgres.port) as proxy:
        yield proxy


class Work:
    """A scheduler with one task, and when its runs began, by the job."""

    def __init__(self, url: str, **options: Any) -> None:
        self.runs: list[tuple[str, float]] = []
        given: dict[str, Any] = {"poll": "0.5s", "grace": "0.5s", "watchdog": None} | options
        self.scheduler = Scheduler(url, **given)
        self.task: Task[..., str] = self.scheduler.task(name="work")(self._work)

    async def _work(self, ctx: Context, pause_s: float = 0.0) -> str:
        self.runs.append((ctx.job_id, datetime.now(UTC).timestamp()))
        await asyncio.sleep(pause_s)
        return ctx.job_id


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what is looked at tells nobody that it changes
            await asyncio.sleep(0.01)


async def persistently(call: Callable[[], Awaitable[Any]]) -> Any:
    """Call until the store answers, as whoever wants an answer does."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await call()
            except StoreUnavailable:
                await asyncio.sleep(0.05)


def backends(server: Server, *, like: str = "%") -> list[int]:
    """The server's processes that serve our sessions, whose last statement was like this."""
    with psycopg.connect(server.url(), autocommit=True) as conn:
        found = conn.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'betimes' AND query LIKE %s",
            (like,),
        ).fetchall()
    return [pid for (pid,) in found]


def terminate(server: Server, *pids: int) -> None:
    with psycopg.connect(server.url(), autocommit=True) as conn:
        conn.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::integer[]) AS pid", (list(pids),))


def test_p23_each_backend_is_killed_in_turn_and_then_all(postgres: Server, postgres_url: str) -> None:
    async def main() -> None:
        work = Work(postgres_url, lease="6s")
        async with work.scheduler as scheduler:
            first = await work.task.submit()
            assert await first.result(timeout=PATIENCE_S) == first.id
            await until(lambda: len(backends(postgres)) >= 5)  # the heart, too
            for pid in backends(postgres):
                await asyncio.to_thread(terminate, postgres, pid)
                handle = await persistently(lambda pid=pid: work.task.using(key=f"after-{pid}").submit())  # type: ignore[misc]
                assert await persistently(handle.result) == handle.id
            handles = [await work.task.submit(0.5) for _ in range(5)]
            await until(lambda: {handle.id for handle in handles} <= {job for job, _ in work.runs})
            await asyncio.to_thread(terminate, postgres, *backends(postgres))
            assert [await persistently(handle.result) for handle in handles] == [
                handle.id for handle in handles
            ]
            metrics = await persistently(scheduler.metrics)
            assert (metrics.lost_leases, metrics.stale_reports) == (0, 0)
        assert len({job for job, _ in work.runs}) == len(work.runs), "each ran once"

    asyncio.run(main())


def test_p23_a_session_that_was_idle_when_its_backend_was_killed_serves_the_next_call(
    postgres: Server, postgres_url: str
) -> None:
    async def main() -> None:
        work = Work(postgres_url)
        async with work.scheduler.client() as client:
            await work.task.submit()
            await client.jobs()
            await asyncio.to_thread(terminate, postgres, *backends(postgres))
            await until(lambda: not backends(postgres, like="%INSERT%"))
            await work.task.submit()
            assert len(await client.jobs()) == 2

    asyncio.run(main())


def test_p23_the_connection_that_listens_is_killed_and_hears_again(
    postgres: Server, postgres_url: str
) -> None:
    async def main() -> None:
        work, other = Work(postgres_url, poll="60s", lease="600s"), Work(postgres_url)
        async with work.scheduler, other.scheduler.client():
            await until(lambda: len(backends(postgres, like="LISTEN%")) >= 2)
            before = backends(postgres, like="LISTEN%")
            await asyncio.to_thread(terminate, postgres, *before)
            await until(lambda: len(set(backends(postgres, like="LISTEN%")) - set(before)) >= 2)
            handle = await other.task.submit()
            await until(lambda: handle.id in {job for job, _ in work.runs})  # long before the next poll

    asyncio.run(main())


def test_p23_p24_half_open_connections_are_noticed_by_deadlines(
    postgres_url: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bell, "PING_EVERY_S", 0.5)
    monkeypatch.setattr(session, "DEADLINE_S", 1.0)
    monkeypatch.setattr(writer, "LEAST_S", 1.0)

    async def main() -> None:
        work, other = Work(proxy.url(postgres_url), lease="3s"), Work(postgres_url)
        async with work.scheduler as scheduler, other.scheduler.client():
            handle = await other.task.submit()
            assert await handle.result(timeout=PATIENCE_S) == handle.id
            links = proxy.links
            proxy.swallow("up", "down")
            proxy.swallow()  # what was open is dead, and does not know it; what is new passes
            handle = await other.task.submit()
            assert await handle.result(timeout=PATIENCE_S) == handle.id
            assert (await persistently(scheduler.metrics)).completed == 2
            await until(lambda: all(link.is_closed for link in links))

    asyncio.run(main())


def test_p23_connections_run_out_and_come_back() -> None:
    async def main(server: Server, url: str) -> None:
        work = Work(url)
        async with work.scheduler as scheduler:
            handles = [await work.task.submit(1.0) for _ in range(3)]
            await until(lambda: len(work.runs) == 3)
            with ExitStack() as stack, psycopg.connect(server.url(), autocommit=True) as admin:
                for _ in range(3):  # what our sessions give up is taken at once
                    admin.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE application_name = 'betimes'"
                    )
                    await asyncio.to_thread(take_all, server, stack)
                with pytest.raises(StoreUnavailable) as refused:
                    await work.task.submit()
                assert refused.value.why == "connections"
                await asyncio.sleep(2.0)  # the jobs end meanwhile, unheard
            assert [await persistently(handle.result) for handle in handles] == [
                handle.id for handle in handles
            ]
            metrics = await persistently(scheduler.metrics)
            assert (metrics.lost_leases, metrics.stale_reports, metrics.completed) == (0, 0, 3)
            assert metrics.store_errors > 0

    with start_server(settings={"max_connections": "20"}) as server, fresh_schema(server) as url:
        asyncio.run(main(server, url))


def take_all(server: Server, stack: ExitStack) -> None:
    """Take every connection that the server has left."""
    until_at = monotonic() + 1.0
    while monotonic() < until_at:
        try:
            stack.enter_context(psycopg.connect(server.url(application_name="taker")))
        except psycopg.OperationalError:
            return


def test_p23_a_slow_network_only_slows_down(postgres_url: str, proxy: Proxy) -> None:
    proxy.latency_s, proxy.rate = 0.01, 200_000.0

    async def main() -> None:
        work = Work(proxy.url(postgres_url))
        async with work.scheduler as scheduler:
            handles = await scheduler.submit_many([work.task.bind() for _ in range(20)])
            assert [await handle.result(timeout=PATIENCE_S) for handle in handles] == [
                handle.id for handle in handles
            ]
            assert (await scheduler.metrics()).store_errors == 0
        assert len(work.runs) == 20

    asyncio.run(main())


def test_p23_calls_fail_at_once_while_the_server_is_down_and_a_close_ends() -> None:
    async def main(server: Server, url: str) -> None:
        work = Work(url, lease="6s")
        async with work.scheduler:
            running = await work.task.submit(60.0)
            await until(lambda: len(work.runs) == 1)
            server.shut_down("immediate")
            for _ in range(20):
                began = monotonic()
                with pytest.raises(StoreUnavailable):
                    await work.task.submit()
                assert monotonic() - began < 5
            began = monotonic()
            await work.scheduler.stop(timeout=0.5)
            assert monotonic() - began < 20
        server.start()
        second = Work(url)
        async with second.scheduler:
            await until(lambda: running.id in {job for job, _ in second.runs})
            await second.scheduler.cancel(running.id)

    with start_server(settings={}) as server, fresh_schema(server) as url:
        asyncio.run(main(server, url))


def test_p23_a_close_ends_while_nothing_comes_back(postgres_url: str, proxy: Proxy) -> None:
    async def main() -> None:
        work = Work(proxy.url(postgres_url))
        async with work.scheduler:
            handle = await work.task.submit(60.0)
            await until(lambda: handle.id in {job for job, _ in work.runs})
            proxy.swallow("up", "down")
            calls = [asyncio.create_task(work.task.submit()) for _ in range(3)]
            await asyncio.sleep(0.1)
            began = monotonic()
            await work.scheduler.stop(timeout=0.5)
            assert monotonic() - began < 25
            answers = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(answer) for answer in answers} == {StoreUnavailable}, "nobody waits for ever"

    asyncio.run(main())


@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_p10_p23_transactions_that_have_to_give_way_are_carried_out_again(
    postgres: Server, postgres_url: str, code: str
) -> None:
    schema = postgres_url.partition("schema=")[2]

    async def main() -> None:
        work = Work(postgres_url)
        async with work.scheduler as scheduler:
            await asyncio.to_thread(give_way, postgres, schema, code)
            handles = await asyncio.gather(*(work.task.submit() for _ in range(40)))
            assert [await handle.result(timeout=PATIENCE_S) for handle in handles] == [
                handle.id for handle in handles
            ]
            metrics = await scheduler.metrics()
        assert metrics.store_errors == 0, "nobody heard of it"
        assert sorted(job for job, _ in work.runs) == sorted(handle.id for handle in handles)

    asyncio.run(main())
    with psycopg.connect(postgres.url()) as conn:
        row = conn.execute(f"SELECT last_value FROM {schema}.given_way".encode()).fetchone()
    assert row is not None
    assert row[0] > 9, "some had to"


def give_way(server: Server, schema: str, code: str) -> None:
    """Have every third statement on the jobs fail, so that its transaction has to be begun anew."""
    with psycopg.connect(server.url(), autocommit=True) as conn:
        conn.execute(
            f"""
            CREATE SEQUENCE {schema}.given_way;
            CREATE FUNCTION {schema}.give_way() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF nextval('{schema}.given_way') % 3 = 0 THEN
                    RAISE EXCEPTION 'give way' USING ERRCODE = '{code}';
                END IF;
                RETURN NULL;
            END $$;
            CREATE TRIGGER give_way AFTER INSERT OR UPDATE OR DELETE ON {schema}.betimes_job
            FOR EACH STATEMENT EXECUTE FUNCTION {schema}.give_way();
            """.encode()
        )


class OffClock(SystemClock):
    """A machine's clock that is set wrong."""

    def __init__(self, off_us: int) -> None:
        super().__init__()
        self._off_us = off_us

    def now(self) -> int:
        return super().now() + self._off_us


def test_p06_p14_p16_p29_workers_whose_clocks_are_an_hour_off_keep_to_the_servers(postgres_url: str) -> None:
    async def main() -> None:
        ahead = Work(postgres_url, clock=OffClock(HOUR_US), lease="3s")
        behind = Work(postgres_url, clock=OffClock(-HOUR_US), lease="3s")
        client = Work(postgres_url)
        async with ahead.scheduler, behind.scheduler, client.scheduler.client():
            due = datetime.now(UTC) + timedelta(seconds=2)
            late = [await client.task.using(run_at=due).submit(4.0) for _ in range(4)]
            begins = datetime.now(UTC) + timedelta(seconds=1)
            await client.scheduler.add_schedule(
                "grid", client.task.bind(), every(0.5), start=begins, end=begins + timedelta(seconds=4)
            )
            for handle in late:
                assert await handle.result(timeout=PATIENCE_S) == handle.id
            await client.scheduler.drain()
            infos = await client.scheduler.jobs(limit=1000)
            metrics = [await each.scheduler.metrics() for each in (ahead, behind)]
        began = dict(ahead.runs + behind.runs)
        assert len(began) == len(ahead.runs) + len(behind.runs) == len(infos), "each ran once"
        for handle in late:
            assert due.timestamp() <= began[handle.id] < due.timestamp() + 20
        fired = [info for info in infos if info.schedule == "grid"]
        assert len({info.scheduled_for for info in fired}) == len(fired) == 9
        for info in fired:
            assert info.scheduled_for is not None
            assert info.scheduled_for.timestamp() <= began[info.id]
        assert [(each.lost_leases, each.rescued) for each in metrics] == [(0, 0), (0, 0)]
        assert all(info.status is JobStatus.COMPLETED for info in infos)

    asyncio.run(main())


def test_p23_a_transaction_elsewhere_that_keeps_all_dead_rows_costs_speed_only(
    postgres: Server, postgres_url: str
) -> None:
    async def main() -> None:
        work = Work(postgres_url)
        async with work.scheduler as scheduler:
            await (await work.task.submit()).result(timeout=PATIENCE_S)
            with psycopg.connect(postgres.url()) as elsewhere:
                elsewhere.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                elsewhere.execute("SELECT count(*) FROM pg_class")
                for _ in range(5):
                    handles = await scheduler.submit_many([work.task.bind() for _ in range(500)])
                    await scheduler.drain(timeout=PATIENCE_S)
                    assert await handles[-1].status() is JobStatus.COMPLETED
            assert (await scheduler.metrics()).store_errors == 0
        assert len(work.runs) == 2501

    asyncio.run(main())
