"""The limits of schedules: the bare statements of a tick on the very tables that Betimes uses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.clockwork import Stopwatch
from bench.limits.raw_file import CHUNK, RawFile
from bench.ours.recurring import FILE, fill_due

AT_ONCE = 500
CLAIMED = 100
DAY_US = 86_400_000_000


class TickFile(RawFile):
    """A connection with the statements of a tick: who is due, their jobs, the next instants, the history."""

    VARYING = (*RawFile.VARYING, "rare")

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        row = "(?, ?, 0, ?, 1, 1, 'fired', ?, ?, NULL)"
        self._fires = {
            size: f"INSERT INTO betimes_fire VALUES {', '.join([row] * size)}" for size in (CHUNK, 1)
        }

    def tick(self, limit: int) -> int:
        """Give the next schedules that are due their jobs, and move them on by a day."""
        due = self.sql.execute(
            "SELECT id, next_fire_at FROM betimes_schedule WHERE paused = 0 AND next_fire_at IS NOT NULL "
            "ORDER BY next_fire_at, id LIMIT ?",
            (limit,),
        ).fetchall()
        jobs = [(*self.row()[:-1], f'{{"fire":["{schedule}",{at}]}}') for schedule, at in due]
        self.insert(jobs)
        self.sql.execute(
            "UPDATE betimes_schedule SET last_fire_at = next_fire_at, next_fire_at = next_fire_at + ?, "
            "version = version + 1, fired = fired + 1 "
            f"WHERE id IN ({', '.join('?' * len(due))})",
            (DAY_US, *(schedule for schedule, _ in due)),
        )
        fires = [(schedule, at, at, at, job[1]) for (schedule, at), job in zip(due, jobs, strict=True)]
        self.write(self._fires, fires)
        return len(due)


def tick(schedules: int, folder: Path) -> dict[str, float]:
    """Move on schedules that are due at once, 500 a transaction, and insert their jobs; then finish those."""
    fill_due(schedules, folder, datetime.now(UTC) + timedelta(days=1))
    file = TickFile(folder / FILE)
    sql = file.sql
    file.claim(1)  # the pattern
    watch = Stopwatch()
    for _ in range(0, schedules, AT_ONCE):
        sql.execute("BEGIN IMMEDIATE")
        assert file.tick(AT_ONCE) == AT_ONCE
        sql.execute("COMMIT")
    inserted = watch.figures(schedules)
    claimed: list[tuple[Any, ...]] = []
    for _ in range(0, schedules + CLAIMED, CLAIMED):
        sql.execute("BEGIN IMMEDIATE")
        file.finish(claimed)
        claimed = file.claim(CLAIMED)
        sql.execute("COMMIT")
    assert not claimed
    return inserted | {"finished_rate": watch.figures(schedules)["rate"]}
