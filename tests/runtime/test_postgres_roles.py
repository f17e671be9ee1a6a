"""The roles on PostgreSQL: each has all that it needs, and nothing else."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import psycopg
import pytest
from tests.postgres.server import Server

from betimes import (
    ConfigurationError,
    FairShareStrategy,
    JobStatus,
    Limit,
    Rate,
    Scheduler,
    StoreUnavailable,
    Task,
    every,
)
from betimes.clock import SystemClock
from betimes.core.finding import FindingCode, Severity
from betimes.operating import scheduler_of
from betimes.stores.postgres import PostgresStore, opening
from betimes.stores.postgres.roles import RIGHTS, Role, grants, role_name
from betimes.stores.postgres.target import target_of
from betimes.stores.relational.statements import folder_of


@dataclass(frozen=True)
class Roles:
    """A schema with its four roles, and a login role for each."""

    url: str
    conn: psycopg.Connection
    schema: str

    def as_(self, role: Role) -> str:
        """The URL as this role has it."""
        return self.url.replace("postgres@", f"{self.login(role)}@")

    def login(self, role: Role) -> str:
        return f"{role_name(self.schema, role)}_login"

    def run(self, text: str) -> None:
        self.conn.execute(text.encode())


@pytest.fixture
def roles(postgres: Server, postgres_url: str) -> Iterator[Roles]:
    schema = target_of(postgres_url).schema
    with psycopg.connect(postgres.url(), autocommit=True) as conn:
        found = Roles(postgres_url, conn, schema)
        asyncio.run(PostgresStore(postgres_url, clock=SystemClock()).migrate())
        found.run(grants(schema))
        found.run(grants(schema))  # any number of times
        for role in Role:
            found.run(f"CREATE ROLE {found.login(role)} LOGIN IN ROLE {role_name(schema, role)}")
        yield found
        found.run(f"DROP SCHEMA {schema} CASCADE")
        for role in Role:
            found.run(f"DROP OWNED BY {role_name(schema, role)}")
            found.run(f"DROP ROLE {found.login(role)}, {role_name(schema, role)}")


def program(url: str) -> Scheduler:
    """A scheduler whose jobs use all there is."""
    scheduler = Scheduler(url, strategy=FairShareStrategy(by="tenant"), watchdog=None, poll=0.1)

    @scheduler.task(name="plain")
    async def plain(tenant: str = "a") -> str:
        return tenant

    @scheduler.task(name="gated", limit=Limit("few", 1), rate=Rate("1000/s", burst=10))
    async def gated(tenant: str = "a") -> str:
        return tenant

    @scheduler.task(name="tick", schedule=every("50ms"))
    async def tick(tenant: str = "a") -> None: ...

    return scheduler


def task_of(scheduler: Scheduler, name: str) -> Task[..., str]:
    return Task(scheduler, scheduler._definitions[name])


async def settle(url: str) -> None:
    """Have a worker open the store once, as the first of all does."""
    async with program(url):
        pass


def test_a_worker_lacks_nothing(roles: Roles) -> None:
    scheduler = program(roles.as_(Role.WORKER))
    first, second = (task_of(scheduler, name) for name in ("plain", "gated"))

    async def main() -> None:
        async with scheduler:
            jobs = [await each.using(key=f"{n}").submit("b") for n, each in enumerate([first, second] * 3)]
            after = await first.using(depends_on=jobs, job_id="after").submit()
            assert await after.result(timeout=20) == "a"
            late = await first.using(delay=timedelta(hours=1), job_id="late").submit()
            await first.using(job_id="late", replace=True, delay=timedelta(hours=1)).submit()
            await scheduler.cancel((await scheduler.job("late")).id)
            assert (await late.status()) is JobStatus.CANCELLED
            await scheduler.pause_queue("other")
            await scheduler.resume_queue("other")
            await scheduler.set_limit("few", 2)
            await scheduler.retry("after")
            await (await scheduler.job("after")).wait(timeout=20)
            assert (await scheduler.schedule("tick")).fired
            await scheduler.remove_schedule("tick")
            await scheduler._store.prune(keep_us=0)
            checkup = await scheduler.doctor()
        assert not {FindingCode.RIGHTS, FindingCode.STORE_ERRORS} & checkup.codes
        async with scheduler_of(roles.as_(Role.WORKER)).client() as operator:
            assert await operator.jobs() is not None

    asyncio.run(main())


def locked(text: str) -> set[str]:
    """The tables whose rows a statement locks: those of the same SELECT as the words for it."""
    found = set()
    for words in re.finditer(r"FOR (?:UPDATE|NO KEY UPDATE|SHARE|KEY SHARE)(?: OF (\w+))?", text):
        depth, clause = 0, ""
        for sign in reversed(text[: words.start()]):
            depth += {")": 1, "(": -1}.get(sign, 0)
            if depth < 0:
                break
            clause = f"{sign if depth == 0 else ' '}{clause}"
        alias = rf" AS {words[1]}\b" if words[1] else ""
        found |= set(re.findall(rf"(?:FROM|JOIN)\s+(betimes_\w+){alias}", clause.rpartition("SELECT")[2]))
    return found


def test_a_worker_has_no_right_that_no_statement_needs() -> None:
    """What the files with the statements name is what a worker is given."""
    used: dict[str, set[str]] = {}
    for entry in folder_of("postgres").iterdir():
        if entry.name.endswith(".sql") and not entry.name.startswith("server_"):
            text = re.sub(r"--.*", "", entry.read_text("utf-8"))
            for kind, name in re.findall(r"(DELETE FROM|FROM|JOIN|INTO|UPDATE)\s+(betimes_\w+)", text):
                right = {"INTO": "INSERT", "UPDATE": "UPDATE", "DELETE FROM": "DELETE"}.get(kind, "SELECT")
                used.setdefault(name, set()).add(right)
            if "DO UPDATE" in text:
                used[re.findall(r"INTO\s+(betimes_\w+)", text)[0]].add("UPDATE")
            for name in locked(text):
                used[name].add("UPDATE")
    for name, rights in RIGHTS[Role.WORKER].items():
        if name not in ("betimes_live", "betimes_ended", "betimes_plan", "betimes_number"):
            assert {each.partition(" (")[0] for each in rights} == used[name], name


def test_a_submitter_brings_jobs_and_reads_what_became_of_them(roles: Roles) -> None:
    asyncio.run(settle(roles.as_(Role.WORKER)))
    scheduler, worker = program(roles.as_(Role.SUBMITTER)), program(roles.as_(Role.WORKER))

    async def main() -> None:
        plain, gated = (task_of(scheduler, name) for name in ("plain", "gated"))
        async with scheduler.client():
            parent = await plain.using(key="once", job_id="parent").submit("b")
            assert (await plain.using(key="once").submit("b")).id == parent.id
            child = await gated.using(depends_on=[parent]).submit()
            many = await scheduler.submit_many([plain.bind(), gated.bind()] * 3)
            async with worker:
                for each in (child, *many):
                    assert await each.result(timeout=20) == "a"
            assert (await plain.using(key="once").submit("b")).id == parent.id
            after = await plain.using(depends_on=[parent, child]).submit()
            assert await after.status() is JobStatus.READY

    asyncio.run(main())


def test_a_submitter_has_no_right_that_it_can_do_without(roles: Roles) -> None:
    """Each is taken away for once, and something that submitters do is refused."""
    worker = program(roles.as_(Role.WORKER))

    async def prepare() -> None:
        async with worker:
            done = await task_of(worker, "plain").using(key="done", job_id="done").submit()
            await done.result(timeout=20)

    async def work() -> None:
        scheduler = program(roles.as_(Role.SUBMITTER))
        plain, gated = (task_of(scheduler, name) for name in ("plain", "gated"))
        async with scheduler.client():
            await plain.using(key="done").submit()
            first = await plain.using(delay=timedelta(hours=1)).submit()
            await gated.using(depends_on=[first, await scheduler.job("done")]).submit()
            await gated.submit()
            await plain.using(key=first.id).submit()
            with psycopg.connect(roles.as_(Role.SUBMITTER).partition("?")[0]) as conn:
                mine = await gated.using(conn=conn, key=f"{first.id} too", depends_on=[first]).submit()
            assert await first.status() is JobStatus.DELAYED
            assert await mine.status() is JobStatus.BLOCKED

    asyncio.run(prepare())
    asyncio.run(work())
    name = role_name(roles.schema, Role.SUBMITTER)
    needless = []
    for thing, rights in RIGHTS[Role.SUBMITTER].items():
        for right in rights:
            what = f"{right} ON {'SEQUENCE' if right == 'USAGE' else 'TABLE'} {roles.schema}.{thing}"
            roles.run(f"REVOKE {what} FROM {name}")
            with suppress(StoreUnavailable):
                asyncio.run(work())
                needless.append(what)
            roles.run(f"GRANT {what} TO {name}")
    assert needless == []
    asyncio.run(work())


def test_a_submitter_can_do_nothing_else(roles: Roles) -> None:
    asyncio.run(settle(roles.as_(Role.WORKER)))
    scheduler = program(roles.as_(Role.SUBMITTER))

    async def main() -> None:
        plain = task_of(scheduler, "plain")
        async with scheduler.client():
            job = await plain.using(job_id="mine").submit()
            for attempt in (
                job.cancel(),
                plain.using(job_id="mine", replace=True).submit(),
                scheduler.pause_queue("default"),
                scheduler.set_limit("few", 100),
                job.log(),
                scheduler.schedules(),
                scheduler._store.prune(keep_us=0),
                scheduler._store.rescue(()),
            ):
                with pytest.raises(StoreUnavailable, match="does not let this role do that") as caught:
                    await attempt
                assert caught.value.why == "privilege"
            assert await job.status() is JobStatus.READY
        with pytest.raises(StoreUnavailable, match="does not let this role do that"):
            async with program(roles.as_(Role.SUBMITTER)):
                pass  # as a worker

    asyncio.run(main())


def test_a_submitter_cannot_check_the_store_up_and_learns_what_it_is(roles: Roles) -> None:
    asyncio.run(settle(roles.as_(Role.WORKER)))
    checkup = asyncio.run(scheduler_of(roles.as_(Role.SUBMITTER)).doctor())
    store, rights = (
        next(each for each in checkup.findings if each.code is code)
        for code in (FindingCode.STORE, FindingCode.RIGHTS)
    )
    assert (store.severity, "does not let this role do that" in store.text) == (Severity.ERROR, True)
    assert "rights of a submitter" in rights.text


def test_who_submits_first_cannot_settle_the_order_and_is_told_what_to_do(roles: Roles) -> None:
    async def main() -> None:
        with pytest.raises(ConfigurationError, match="start a worker first, or run `betimes db migrate APP`"):
            async with program(roles.as_(Role.SUBMITTER)).client():
                pass

    asyncio.run(main())


def test_a_viewer_looks_at_everything_and_changes_nothing(roles: Roles) -> None:
    asyncio.run(settle(roles.as_(Role.WORKER)))
    owner = program(roles.url)

    async def main() -> None:
        async with owner.client():
            job = await task_of(owner, "gated").submit()
        store = PostgresStore(roles.as_(Role.VIEWER), clock=SystemClock())
        await store.look()
        found = await store.find(job.id)
        assert found is not None
        assert await store.ahead(found) == 0
        assert (await store.queue("default")).gates == ()
        assert await store.oldest_due() == {}
        assert [view.key for view in await store.gates_under(None)] == ["limit:few", "rate:gated"]
        await store.close()
        async with scheduler_of(roles.as_(Role.VIEWER)).client() as viewer:
            assert [each.id for each in await viewer.jobs()] == [job.id]
            assert (await viewer.explain(job.id)).reasons
            with pytest.raises(StoreUnavailable, match="does not let this role do that"):
                await viewer.cancel(job.id)
        checkup = await scheduler_of(roles.as_(Role.VIEWER)).doctor()
        (rights,) = [each for each in checkup.findings if each.code is FindingCode.RIGHTS]
        assert (rights.severity, "rights of a viewer" in rights.text) == (Severity.OK, True)
        assert FindingCode.STORE not in checkup.codes

    asyncio.run(main())


def test_the_owner_carries_the_schema_over_and_nobody_else(
    roles: Roles, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [*opening.migrations(), (2, "ALTER TABLE betimes_tenant ADD COLUMN note text;")]
    monkeypatch.setattr(opening, "migrations", lambda: steps)

    async def main() -> None:
        for role in (Role.WORKER, Role.SUBMITTER, Role.VIEWER):
            with pytest.raises(StoreUnavailable, match="does not let this role do that"):
                await PostgresStore(roles.as_(role), clock=SystemClock()).migrate()
        assert await PostgresStore(roles.as_(Role.OWNER), clock=SystemClock()).migrate() == 1

    asyncio.run(main())
