"""Bare psycopg statements on the very tables that Betimes uses, on a server that syncs each commit.

The tables are those of a store that Betimes made, with one of its rows as the pattern for new ones, so that
rows and indexes are the same. Nothing is decided and nothing checked.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any

import psycopg

from bench.clockwork import DURABLE_IDLE_S, Latencies, Stopwatch
from bench.ours.postgres import AT_ONCE, fill
from bench.server import fresh_schema, multiply, pinned_horizon

CHANNEL = "bench"
PATIENCE_S = 5.0


class RawTables:
    """A connection with the statements of a whole life: insert, claim, finish.

    Args:
        url: of a schema with at least one job of Betimes's making, the pattern.
    """

    def __init__(self, url: str) -> None:
        server, _, schema = url.partition("?schema=")
        self.sql = psycopg.connect(
            server, autocommit=True, prepare_threshold=1, cursor_factory=psycopg.RawCursor
        )
        self.sql.execute(f"SET search_path TO {schema}")
        self.sql.execute("SET enable_seqscan TO off; SET enable_bitmapscan TO off")
        pattern = self._pattern()
        self._place = (pattern["queue"], pattern["lane"])
        self._ids = itertools.count()
        changed = {"seq": "nextval('betimes_number')", "id": "id"}
        values = ", ".join(changed.get(name, self._literal(value)) for name, value in pattern.items())
        into = f"INSERT INTO betimes_job ({', '.join(pattern)})"
        self._insert = f"{into} SELECT {values} FROM unnest($1::text[]) AS new (id)"
        ended = {name: name for name in self._columns("betimes_finished")}
        ended |= {
            "status": "'completed'",
            "finished_at": "started_at + 1",
            "result": "'null'",
            "forget_at": "NULL",
        }
        self._finish = (
            "WITH done AS (DELETE FROM betimes_job WHERE seq = ANY ($1::bigint[]) RETURNING *)"
            f" INSERT INTO betimes_finished ({', '.join(ended)}) SELECT {', '.join(ended.values())} FROM done"
        )
        self._claim = """
            WITH picked AS MATERIALIZED (
                SELECT seq FROM betimes_job
                WHERE status = 'ready' AND parked IS NULL AND gates IS NULL AND queue = $1 AND lane = $2
                ORDER BY sort_key, seq LIMIT $3 FOR UPDATE SKIP LOCKED
            )
            UPDATE betimes_job SET status = 'running', worker = 'limit', started_at = run_at + 1,
                attempt = attempt + 1, fence = fence + 1
            WHERE seq = ANY (ARRAY(SELECT seq FROM picked)) RETURNING seq, id, task, payload, attempt, fence
        """

    def _columns(self, table: str) -> list[str]:
        rows = self.sql.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0", (table,)
        )
        return [name for (name,) in rows]

    def _pattern(self) -> dict[str, Any]:
        columns = self._columns("betimes_job")
        row = self.sql.execute(f"SELECT {', '.join(columns)} FROM betimes_job LIMIT 1").fetchone()
        assert row is not None
        return dict(zip(columns, row, strict=True))

    def _literal(self, value: object) -> str:
        return psycopg.sql.Literal(value).as_string(self.sql)

    def insert(self, rows: int) -> None:
        """Insert so many rows, in a transaction of the statement's own."""
        begin = f"{threading.get_ident():x}-{id(self):x}"
        ids = ",".join(f"{begin}-{next(self._ids)}" for _ in range(rows))
        self.sql.execute(self._insert, (f"{{{ids}}}",))

    def claim(self, limit: int) -> list[tuple[Any, ...]]:
        """Mark jobs as running and return what it takes to run them."""
        return self.sql.execute(self._claim, (*self._place, limit)).fetchall()

    def finish(self, claimed: list[tuple[Any, ...]]) -> None:
        """Move jobs to the ended ones."""
        if claimed:
            self.sql.execute(self._finish, (f"{{{','.join(str(job[0]) for job in claimed)}}}",))

    def drain(self, jobs: int, batch: int) -> None:
        """Claim and finish in turns, one transaction each, until so many jobs have been finished."""
        claimed: list[tuple[Any, ...]] = []
        for _ in range(0, jobs, batch):
            self.sql.execute("BEGIN")
            self.finish(claimed)
            claimed = self.claim(batch)
            self.sql.execute("COMMIT")
        self.finish(claimed)


def submits(jobs: int, callers: int, server: str) -> dict[str, float]:
    """Insert one row a transaction, with so many threads and connections."""
    with fresh_schema(server) as url:
        fill(url, 1)
        tables = [RawTables(url) for _ in range(callers)]

        def insert(number: int) -> None:
            def call(one: RawTables) -> None:
                for _ in range(number // callers):
                    one.insert(1)

            threads = [threading.Thread(target=call, args=(one,)) for one in tables]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        insert(callers * 5)
        watch = Stopwatch()
        insert(jobs)
        return watch.figures(jobs)


def bulk(jobs: int, batch: int, server: str) -> dict[str, float]:
    """Insert so many rows a transaction."""
    with fresh_schema(server) as url:
        fill(url, 1)
        tables = RawTables(url)
        for _ in range(2):
            tables.insert(batch)
        watch = Stopwatch()
        for _ in range(0, jobs, batch):
            tables.insert(batch)
        return watch.figures(jobs)


def drain(jobs: int, batch: int, server: str, *, backlog: int = 0, history: int = 0) -> dict[str, float]:
    """Claim and finish so many jobs of those that a schema holds."""
    with fresh_schema(server) as url:
        fill(url, jobs)
        multiply(url, backlog=backlog, history=history)
        tables = RawTables(url)
        watch = Stopwatch()
        tables.drain(jobs, batch)
        return watch.figures(jobs)


def drain_together(jobs: int, batch: int, workers: int, server: str) -> dict[str, float]:
    """The same by several threads, each with a connection and its part of the jobs."""
    with fresh_schema(server) as url:
        fill(url, jobs)
        multiply(url)
        part = jobs // workers
        threads = [threading.Thread(target=RawTables(url).drain, args=(part, batch)) for _ in range(workers)]
        watch = Stopwatch()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return watch.figures(jobs)


def drain_for(seconds: float, jobs: int, server: str, *, is_pinned: bool) -> dict[str, float]:
    """Insert, claim and finish for so long; return the rate over the last quarter of that time."""

    def work(url: str) -> dict[str, float]:
        tables = RawTables(url)
        began = Stopwatch()
        done, watch = 0, Stopwatch()
        while began.seconds() < seconds:
            if began.seconds() < seconds * 3 / 4:
                done, watch = 0, Stopwatch()
            for _ in range(0, jobs, AT_ONCE):
                tables.insert(AT_ONCE)
            tables.drain(jobs, jobs // 20)
            done += jobs
        return watch.figures(done)

    with fresh_schema(server) as url:
        fill(url, 1)
        if not is_pinned:
            return work(url)
        with pinned_horizon(url):
            return work(url)


def starts(jobs: int, server: str) -> dict[str, float]:
    """Insert a row, commit, notify, hear it on another connection in another thread, claim it, commit."""
    latencies = Latencies(jobs)
    with fresh_schema(server) as url:
        fill(url, 1)
        tables, mine = RawTables(url), RawTables(url)
        tables.finish(tables.claim(1))
        started = threading.Semaphore(0)
        listening = threading.Event()

        def work() -> None:
            mine.sql.execute(f"LISTEN {CHANNEL}")
            listening.set()
            for number in range(jobs):
                claimed: list[tuple[Any, ...]] = []
                while not claimed:
                    if list(mine.sql.notifies(timeout=PATIENCE_S, stop_after=1)):
                        claimed = mine.claim(1)
                latencies.started(number)
                started.release()
                mine.finish(claimed)

        worker = threading.Thread(target=work)
        worker.start()
        listening.wait()
        for number in range(jobs):
            threading.Event().wait(DURABLE_IDLE_S)
            latencies.submitted(number)
            tables.insert(1)
            tables.sql.execute(f"NOTIFY {CHANNEL}")
            started.acquire()
        worker.join()
    return latencies.figures(skip=jobs // 10)
