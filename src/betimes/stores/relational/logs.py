"""The jobs' logs: numbered lines, of which the newest stay."""

from __future__ import annotations

from collections.abc import Sequence

from betimes.core.log import LINES_KEPT, LogLine, LogPage
from betimes.stores.relational.rows import array
from betimes.stores.relational.statements import ManyRows, Row, statement
from betimes.stores.relational.turn import Turn

FENCES = statement("fences")
LAST_LINE = statement("last_line")
ADD_LOG_LINE = ManyRows("add_log_line")
CUT_LOG = statement("cut_log")


def write(turn: Turn, pages: Sequence[LogPage]) -> None:
    """Add the lines of the pages whose fence is their job's; a page of a job that was pruned is dropped."""
    sql = turn.sql
    wanted = (array({page.job.seq for page in pages}),)
    fences = dict(sql.execute(FENCES, wanted).fetchall())
    last = {seq: number or 0 for seq, number in sql.execute(LAST_LINE, wanted).fetchall()}
    rows: list[Row] = []
    for page in pages:
        seq = page.job.seq
        if fences.get(seq) != page.fence:
            continue
        for line in page.lines:
            last[seq] += 1
            rows.append((seq, last[seq], line.at_us, line.attempt, line.source, line.level, line.text))
    ADD_LOG_LINE.write(sql, rows)
    for seq in {row[0] for row in rows}:
        if last[seq] > LINES_KEPT:
            sql.execute(CUT_LOG, (seq, last[seq] - LINES_KEPT))


def line_of(row: Row) -> LogLine:
    """Return the line that a record of `log` describes."""
    number, at, attempt, source, level, text = row
    return LogLine(number=number, at_us=at, attempt=attempt, source=source, level=level, text=text)
