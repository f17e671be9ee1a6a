"""What the SQLite store keeps for those who ask why work waits: older files, and what goes with a worker."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.runtime.sqlite_scene import finish_all, look, opened

from betimes.core.queue_view import Pause
from betimes.ports import WorkerInfo
from betimes.stores.sqlite.opening import SCHEMA_VERSION, _commands
from betimes.stores.sqlite.statements import migrations

SECOND = 1_000_000


def third_schema(path: Path) -> None:
    """A file as the third version made it: a job that waits, a worker that died, and a paused queue."""
    columns = "'work', 'default', 'loop', 1, NULL, '{}', 5, 5, 0, 'ready', 0, 0, NULL, NULL, NULL, NULL, 0"
    rows = [
        "INSERT INTO betimes_meta VALUES ('strategy', 'priority')",
        "UPDATE betimes_meta SET value = 1 WHERE name = 'last_seq'",
        f"INSERT INTO betimes_job VALUES (1, 'waits', {columns}, NULL, NULL, 0, NULL, NULL)",
        "INSERT INTO betimes_tally VALUES ('default', 'ready', 1)",
        "INSERT INTO betimes_paused_queue VALUES ('mail')",
        "INSERT INTO betimes_worker VALUES ('old', 'h', 7, '', 0, '', '[\"a\"]', 3, 1000, 1, 'boot', 0)",
    ]
    commands = [command for number, text in migrations() if number <= 3 for command in _commands(text)]
    with closing(sqlite3.connect(path)) as sql:
        for command in (*commands, *rows):
            sql.execute(command)
        sql.commit()


def test_p28_a_file_of_the_third_schema_is_carried_over_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    third_schema(path)

    async def main() -> None:
        async with opened(path) as store:
            assert await store.paused_queues() == {"mail": Pause()}
            ((old, left_us),) = await store.workers()
            assert (old.id, old.queues, old.lanes, old.tasks, left_us) == ("old", ("a",), None, None, 0)
            await store.make_known("old", ("work",))
            await store.pause_queue("mail", by="nobody: it is paused already")
            await store.pause_queue("other", by="ops")
            paused = await store.paused_queues()
            assert (paused["mail"], paused["other"].by) == (Pause(), "ops")
            assert await finish_all(store) == 1

    asyncio.run(main())
    assert look(path, "SELECT value FROM betimes_meta WHERE name = 'schema_version'") == [(SCHEMA_VERSION,)]
    assert look(path, "PRAGMA integrity_check") == [("ok",)]


def test_what_a_worker_knew_goes_with_it(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    query = "SELECT worker, tasks FROM betimes_worker_known ORDER BY worker"

    async def main() -> None:
        async with opened(path) as store:
            await store.register(WorkerInfo(id="a", lease_us=SECOND, tasks=("t",)))
            await store.register(WorkerInfo(id="b", lease_us=0, tasks=("t",)))
            assert look(path, query) == [("a", '["t"]'), ("b", '["t"]')]
            await store.rescue(())
            assert look(path, query) == [("a", '["t"]')]
            await store.retire("a")
            assert look(path, query) == []

    asyncio.run(main())
