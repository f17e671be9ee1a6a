"""The jobs' logs: lines in order, numbered, bounded, and only from whoever holds the job."""

from __future__ import annotations

from betimes.core.events import DeadlinePassed, Errored, Succeeded
from betimes.core.log import LINES_KEPT, LogLine, LogPage
from betimes.testing.store_contract.stage import BOOM, Stage, Taken, played


def page(stage: Stage, taken: Taken, *texts: str, source: str = "log", level: int = 20) -> LogPage:
    """Lines that an attempt has written just now."""
    lines = tuple(
        LogLine(at_us=stage.now, attempt=taken.attempt, text=text, source=source, level=level)
        for text in texts
    )
    return LogPage(taken.job, taken.fence, lines)


async def texts(stage: Stage, taken: Taken) -> list[str]:
    """What stands in a job's log."""
    return [line.text for line in await stage.store.log(taken.job)]


class LogContract:
    """What a job's log promises."""

    @played
    async def test_lines_are_kept_as_they_were_written(self, stage: Stage) -> None:
        taken, other = await stage.start(), await stage.start()
        assert await stage.store.log(taken.job) == []
        begun = stage.now
        await stage.store.write_log([page(stage, taken, "one", ""), page(stage, other, "other's")])
        stage.advance(1)
        await stage.store.write_log([page(stage, taken, "drei – ü 🎈 \t'\"", source="stderr", level=40)])
        assert await stage.store.log(taken.job) == [
            LogLine(at_us=begun, attempt=1, text="one", number=1),
            LogLine(at_us=begun, attempt=1, text="", number=2),
            LogLine(
                at_us=stage.now,
                attempt=1,
                text="drei – ü 🎈 \t'\"",
                source="stderr",
                level=40,
                number=3,
            ),
        ]
        assert await texts(stage, other) == ["other's"]

    @played
    async def test_a_log_can_be_read_on_from_where_one_stopped(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.store.write_log([page(stage, taken, *"abcdefg")])
        first = await stage.store.log(taken.job, limit=3)
        rest = await stage.store.log(taken.job, after=first[-1].number)
        assert [line.text for line in first + rest] == list("abcdefg")
        assert [line.number for line in rest] == [4, 5, 6, 7]
        assert await stage.store.log(taken.job, after=7) == []
        await stage.store.write_log([page(stage, taken, "h")])
        assert [line.text for line in await stage.store.log(taken.job, after=7)] == ["h"]

    @played
    async def test_p27_the_newest_lines_stay_and_the_numbers_go_on(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.store.write_log([page(stage, taken, *(str(n) for n in range(1, 700)))])
        await stage.store.write_log([page(stage, taken, *(str(n) for n in range(700, 1501)))])
        lines = await stage.store.log(taken.job, limit=2 * LINES_KEPT)
        assert [line.number for line in lines] == list(range(1501 - LINES_KEPT, 1501))
        assert [line.text for line in lines] == [str(line.number) for line in lines]
        assert await stage.store.log(taken.job, after=5, limit=1) == lines[:1]
        await stage.store.write_log([page(stage, taken, *(str(n) for n in range(1501, 4001)))])
        lines = await stage.store.log(taken.job, limit=2 * LINES_KEPT)
        assert [int(line.text) for line in lines] == list(range(4001 - LINES_KEPT, 4001))
        assert [line.number for line in lines] == [int(line.text) for line in lines]

    @played
    async def test_p07_lines_of_who_does_not_hold_the_job_are_dropped(self, stage: Stage) -> None:
        lost, other = await stage.start(), await stage.start(worker="w2")
        stage.advance(20)
        await stage.beat([other], worker="w2")
        stage.advance(11)
        stage.see(await stage.store.rescue({"t"}))
        await stage.store.write_log([page(stage, lost, "too late"), page(stage, other, "in time")])
        (second,) = await stage.claim(worker="w2")
        await stage.store.write_log([page(stage, lost, "too late"), page(stage, second, "mine")])
        assert (await texts(stage, lost), await texts(stage, other)) == (["mine"], ["in time"])

    @played
    async def test_the_lines_of_all_attempts_stand_in_one_log(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.store.write_log([page(stage, taken, "one")])
        await stage.report(taken, Errored(stage.now, BOOM, 0))
        await stage.store.write_log([page(stage, taken, "written before it was known")])
        (second,) = await stage.claim()
        await stage.store.write_log([page(stage, second, "two")])
        await stage.report(second, Succeeded(stage.now, b"1"))
        lines = await stage.store.log(taken.job)
        assert [(line.attempt, line.text) for line in lines if "before" not in line.text] == [
            (1, "one"),
            (2, "two"),
        ]
        assert [line.number for line in lines] == list(range(1, len(lines) + 1))

    @played
    async def test_p26_code_that_runs_on_after_its_timeout_is_still_heard(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.report(taken, DeadlinePassed(stage.now, BOOM))
        await stage.store.write_log([page(stage, taken, "still here")])
        assert await texts(stage, taken) == ["still here"]

    @played
    async def test_a_log_stays_with_the_finished_job_and_goes_with_it(self, stage: Stage) -> None:
        taken, other = await stage.start(), await stage.start()
        await stage.store.write_log([page(stage, taken, "a"), page(stage, other, "b")])
        await stage.report(taken, Succeeded(stage.now, b"1"))
        assert await texts(stage, taken) == ["a"]
        stage.advance(5)
        assert await stage.store.prune(keep_us=0) == 1
        await stage.store.write_log([page(stage, taken, "too late")])
        assert await texts(stage, other) == ["b"]
        if await stage.store.get(taken.job) is None:
            assert await texts(stage, taken) == []

    @played
    async def test_each_version_of_an_id_has_its_own_log(self, stage: Stage) -> None:
        old = await stage.start("x")
        await stage.store.write_log([page(stage, old, "old")])
        await stage.report(old, Succeeded(stage.now, b"1"))
        new = await stage.start("x")
        assert await texts(stage, new) == []
        await stage.store.write_log([page(stage, new, "new")])
        assert (await texts(stage, old), await texts(stage, new)) == (["old"], ["new"])

    @played
    async def test_p09_what_is_retried_by_an_operator_writes_on_in_its_log(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.store.write_log([page(stage, taken, "one")])
        await stage.report(taken, Errored(stage.now, BOOM))
        stage.see(await stage.store.retry(taken.job, by="ops"))
        (second,) = await stage.claim()
        await stage.store.write_log([page(stage, second, "two")])
        assert [(line.number, line.text) for line in await stage.store.log(taken.job)] == [
            (1, "one"),
            (2, "two"),
        ]

    @played
    async def test_nothing_written_changes_nothing(self, stage: Stage) -> None:
        taken = await stage.start()
        before = await stage.snapshot()
        await stage.store.write_log([])
        await stage.store.write_log([page(stage, taken)])
        assert await stage.store.log(taken.job) == []
        assert await stage.snapshot() == before
