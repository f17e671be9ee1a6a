"""The schema on PostgreSQL: made, carried over when asked, refused when it is not ours to use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import psycopg
import pytest

from betimes import ConfigurationError, Scheduler, SchemaMismatch, StoreUnavailable
from betimes.clock import SystemClock
from betimes.core.vitals import Trouble, Vitals
from betimes.stores.postgres import PostgresStore, opening
from betimes.stores.postgres.target import target_of

Inject = Callable[..., None]

FIRST = opening.migrations()[0]
EXPANDING = "-- A column that nobody reads yet.\nALTER TABLE betimes_tenant ADD COLUMN note text;"
CONTRACTING = (
    "-- The column is needed now.\nALTER TABLE betimes_tenant ALTER COLUMN note SET DEFAULT '';\n"
    "UPDATE betimes_meta SET value = '2' WHERE name = 'serves';"
)


@pytest.fixture
def inject(monkeypatch: pytest.MonkeyPatch) -> Inject:
    """Have the code here be of a version with these steps behind the first one."""

    def do(*texts: str) -> None:
        steps = [FIRST, *((2 + place, text) for place, text in enumerate(texts))]
        monkeypatch.setattr(opening, "migrations", lambda: steps)

    return do


def store(url: str) -> PostgresStore:
    return PostgresStore(url, clock=SystemClock())


def vitals(url: str) -> Vitals:
    return asyncio.run(store(url).vitals())


def migrate(url: str) -> int:
    return asyncio.run(store(url).migrate())


def use(url: str) -> int:
    """Submit a job and run all there are; return how many have completed so far."""
    scheduler = Scheduler(url, watchdog=None)

    @scheduler.task(name="nothing")
    async def nothing() -> None: ...

    async def main() -> int:
        async with scheduler:
            await (await nothing.submit()).result(timeout=20)
            return len(await scheduler.jobs(status="completed"))

    return asyncio.run(main())


def run(url: str, text: str) -> list[tuple[object, ...]]:
    target = target_of(url)
    with psycopg.connect(**target.parameters, autocommit=True) as conn:  # type: ignore[arg-type]
        conn.execute(f"SET search_path TO {target.schema}")
        cursor = conn.execute(text.encode())
        return cursor.fetchall() if cursor.description else []


def test_an_empty_schema_is_made_by_the_first_who_opens_it(postgres_url: str, inject: Inject) -> None:
    inject(EXPANDING)
    assert vitals(postgres_url).trouble is Trouble.MISSING
    assert use(postgres_url) == 1
    found = vitals(postgres_url)
    assert (found.schema, found.newest_schema, found.can_be_looked_at) == (2, 2, True)
    assert run(postgres_url, "SELECT count(note) FROM betimes_tenant") == [(0,)]


def test_an_empty_schema_is_made_by_migrating_too_and_twice_is_fine(postgres_url: str) -> None:
    assert [migrate(postgres_url), migrate(postgres_url)] == [0, 1]
    assert use(postgres_url) == 1


def test_an_older_schema_is_refused_until_it_is_carried_over(postgres_url: str, inject: Inject) -> None:
    assert use(postgres_url) == 1
    inject(EXPANDING)
    with pytest.raises(SchemaMismatch, match="betimes db migrate") as caught:
        use(postgres_url)
    assert (caught.value.found, caught.value.expected) == (1, 2)
    found = vitals(postgres_url)
    assert (found.trouble, found.schema, found.can_be_looked_at) == (None, 1, False)
    assert migrate(postgres_url) == 1
    assert use(postgres_url) == 2


def test_p28_a_later_schema_serves_this_code_until_a_step_says_otherwise(
    postgres_url: str, inject: Inject
) -> None:
    inject(EXPANDING)
    migrate(postgres_url)
    inject()
    assert use(postgres_url) == 1
    found = vitals(postgres_url)
    assert (found.trouble, found.schema, found.newest_schema, found.can_be_looked_at) == (None, 2, 1, True)
    assert migrate(postgres_url) == 2, "who is of an earlier version has nothing to do"
    inject(EXPANDING, CONTRACTING)
    migrate(postgres_url)
    inject()
    before = run(postgres_url, "SELECT * FROM betimes_meta ORDER BY name")
    with pytest.raises(SchemaMismatch, match="knows up to 1"):
        use(postgres_url)
    with pytest.raises(SchemaMismatch, match="knows up to 1"):
        migrate(postgres_url)
    assert vitals(postgres_url).trouble is Trouble.NEWER
    assert run(postgres_url, "SELECT * FROM betimes_meta ORDER BY name") == before
    inject(EXPANDING)
    assert use(postgres_url) == 2


def test_all_steps_are_carried_out_or_none(postgres_url: str, inject: Inject) -> None:
    use(postgres_url)
    inject(EXPANDING, "-- It fails.\nSELECT 1 / (SELECT count(*) - count(*) FROM betimes_tenant);")
    with pytest.raises(ConfigurationError, match="division by zero"):
        migrate(postgres_url)
    inject()
    assert vitals(postgres_url).schema == 1
    with pytest.raises(psycopg.errors.UndefinedColumn):
        run(postgres_url, "SELECT note FROM betimes_tenant")
    assert use(postgres_url) == 2


def test_of_many_who_migrate_at_once_one_does(postgres_url: str, inject: Inject) -> None:
    use(postgres_url)
    inject(EXPANDING)

    async def main() -> list[int]:
        return await asyncio.gather(*(store(postgres_url).migrate() for _ in range(8)))

    assert sorted(asyncio.run(main())) == [1, *[2] * 7]


def test_a_table_in_use_makes_a_step_give_up_and_holds_nobody_up(
    postgres_url: str, inject: Inject, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(postgres_url)
    inject(EXPANDING)
    monkeypatch.setattr(opening, "LOCK_PATIENCE", "50ms")
    target = target_of(postgres_url)
    with psycopg.connect(**target.parameters) as other:  # type: ignore[arg-type]
        other.execute(f"SELECT count(*) FROM {target.schema}.betimes_tenant".encode())
        with pytest.raises(StoreUnavailable) as caught:
            migrate(postgres_url)
        assert caught.value.why == "locked"
        assert vitals(postgres_url).schema == 1, "and a look does not wait either"
    assert migrate(postgres_url) == 1


def test_workers_go_on_while_a_step_is_carried_out(postgres_url: str, inject: Inject) -> None:
    scheduler = Scheduler(postgres_url, watchdog=None)

    @scheduler.task(name="nothing")
    async def nothing() -> None: ...

    async def main() -> None:
        async with scheduler:
            await (await nothing.submit()).result(timeout=20)
            inject(EXPANDING)
            assert await asyncio.to_thread(migrate, postgres_url) == 1
            await (await nothing.submit()).result(timeout=20)

    asyncio.run(main())


@pytest.mark.parametrize(
    "text", ["CREATE TABLE betimes_job (a int)", "CREATE TABLE betimes_meta (name text, value text)"]
)
def test_tables_of_another_making_are_left_alone(postgres_url: str, text: str) -> None:
    schema = target_of(postgres_url).schema
    target = target_of(postgres_url)
    with psycopg.connect(**target.parameters, autocommit=True) as conn:  # type: ignore[arg-type]
        conn.execute(f"CREATE SCHEMA {schema}".encode())
    run(postgres_url, text)
    for attempt in (use, migrate):
        with pytest.raises(SchemaMismatch, match="another making"):
            attempt(postgres_url)
    assert vitals(postgres_url).trouble is Trouble.REFUSED
