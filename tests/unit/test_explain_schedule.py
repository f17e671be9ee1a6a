"""Why a schedule did or did not run: each reason has a situation, and says what would change it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.plots import MINUTE, Listed, S, Wrong, record

from betimes import ScheduleReasonCode as Code
from betimes import Trigger, cron, every
from betimes.core.durations import instant_us
from betimes.core.explain_schedule import ScheduleSituation, explain_schedule
from betimes.core.grid import Grid
from betimes.core.job import JobStatus, Micros
from betimes.core.schedule import Fire, FireOutcome, ScheduleRecord
from betimes.core.schedule_reason import NextFire, ScheduleExplanation
from betimes.core.schedule_terms import ScheduleTerms, stored_trigger


def us(text: str) -> Micros:
    return instant_us(datetime.fromisoformat(f"{text}+00:00"), name="text")


NOW = us("2026-03-28T12:00")
NIGHTLY = cron("30 2 * * *", tz="Europe/Berlin")
NEXT = us("2026-03-29T01:00")
SKIPPED = "2026-03-29T02:30[Europe/Berlin]"  # it does not exist on that day, so the first instant after it


def situation(
    trigger: Trigger | None = NIGHTLY,
    *,
    stands: ScheduleRecord | None = None,
    terms: dict[str, Any] | None = None,
    **known: Any,
) -> ScheduleSituation:
    """A nightly schedule, added a month ago."""
    read = grid = None
    if trigger is not None:
        read = ScheduleTerms(
            trigger=stored_trigger(trigger), created_at=us("2026-03-01T00:00"), **(terms or {})
        )
        grid = Grid(trigger=trigger, starts_at=read.starts_at, ends_at=read.ends_at)
    stands = stands if stands is not None else record(NEXT / S)
    return ScheduleSituation(now=NOW, record=stands, terms=read, grid=grid, **known)


def fire(outcome: FireOutcome, at: str, *, first: str | None = None, late_us: int = 0, **fields: Any) -> Fire:
    """What became of an instant."""
    first_at = us(at) if first is None else us(first)
    return Fire(at=us(at), first_at=first_at, outcome=outcome, decided_at=us(at) + late_us, **fields)


def one(explanation: ScheduleExplanation) -> tuple[Code, str]:
    """The only reason."""
    (reason,) = explanation.reasons
    return reason.code, str(reason)


# ---------------------------------------------------------------------------------------------- now


def test_a_schedule_that_waits_names_its_next_instants_in_its_zone_and_in_utc() -> None:
    explained = explain_schedule(situation())
    assert one(explained)[0] is Code.NOT_DUE
    assert explained.codes == {Code.NOT_DUE}
    assert [str(each) for each in explained.next_fires[:2]] == [
        "Sun 2026-03-29 03:00:00 CEST = 2026-03-29 01:00:00 UTC, in place of 2026-03-29T02:30[Europe/Berlin]",
        "Mon 2026-03-30 02:30:00 CEST = 2026-03-30 00:30:00 UTC",
    ]
    assert len(explained.next_fires) == 5
    lines = str(explained).splitlines()
    assert lines[0] == "Schedule s: At 02:30 every day, Europe/Berlin time."
    assert lines[1] == "- Its next instant is 2026-03-29 01:00:00 UTC (in 13h)."
    assert lines[3] == f"Next: {explained.next_fires[0]}"
    assert (explained.at, explained.schedule_id) == (None, "s")


def test_without_a_zone_the_next_instants_are_in_utc_alone() -> None:
    for trigger in (cron("0 0 * * *"), every("1d", align=True)):
        (first, *_) = explain_schedule(situation(trigger, stands=record(NOW / S + 43_200))).next_fires
        assert first == NextFire(at=datetime(2026, 3, 29, tzinfo=UTC))
        assert str(first) == "2026-03-29 00:00:00 UTC"


HELD = replace(record(), held_at=NOW - MINUTE)
AWAITS = replace(record(), awaits=5, delay_us=10 * MINUTE)
DELAYED = every("10m", after="finish")


@pytest.mark.parametrize(
    ("seen", "code", "words"),
    [
        (situation(stands=record(NOW / S - 5)), Code.DUE, "2026-03-28 11:59:55 UTC (5s ago) has come"),
        (situation(stands=record()), Code.OVER, "no instant ahead"),
        (situation(stands=record(NEXT / S, paused=True)), Code.PAUSED, "resume_schedule"),
        (
            situation(stands=record(NEXT / S, paused=True, error="its trigger raised")),
            Code.BROKEN,
            "The scheduler paused it: its trigger raised",
        ),
        (situation(None, unreadable="no zone"), Code.BROKEN, "cannot be read here: no zone"),
        (situation(None, is_elsewhere=True, unreadable="own"), Code.TRIGGER_ELSEWHERE, "here: own"),
        (situation(stands=HELD, live=["j1"]), Code.HELD_BACK, "waits until job j1 has ended"),
        (situation(stands=HELD), Code.HELD_BACK, "waits until a job has ended"),
        (
            situation(DELAYED, stands=AWAITS, live=["j1"]),
            Code.AFTER_END,
            "It fires 10m after the end of job j1",
        ),
        (situation(DELAYED, stands=AWAITS), Code.AFTER_END, "It fires 10m after the end of a job"),
    ],
)  # fmt: skip
def test_each_state_has_its_reason(seen: ScheduleSituation, code: Code, words: str) -> None:
    found, text = one(explain_schedule(seen))
    assert found is code
    assert words in text


def test_without_a_worker_that_comes_first() -> None:
    explained = explain_schedule(situation(is_worked=False))
    assert [reason.code for reason in explained.reasons] == [Code.NO_WORKER, Code.NOT_DUE]
    paused = explain_schedule(situation(stands=record(NEXT / S, paused=True), is_worked=False))
    assert paused.codes == {Code.PAUSED}


def test_a_task_that_no_worker_knows_is_told_beside_the_next_fire() -> None:
    explained = explain_schedule(situation(is_task_known=False))
    assert [reason.code for reason in explained.reasons] == [Code.TASK_UNKNOWN, Code.NOT_DUE]
    assert "'" in explained.reasons[0].text
    nobody = explain_schedule(situation(is_worked=False, is_task_known=False))
    assert [reason.code for reason in nobody.reasons] == [Code.NO_WORKER, Code.NOT_DUE]


def test_the_reason_names_the_job_it_speaks_of() -> None:
    for seen in (situation(stands=HELD, live=["j1", "j2"]), situation(stands=AWAITS, live=["j1"])):
        (reason,) = explain_schedule(seen).reasons
        assert reason.job_id == "j1"


def test_the_next_fires_of_a_paused_schedule_are_those_after_a_resume() -> None:
    paused = record(NOW / S - 86_400 * 3, paused=True)
    assert explain_schedule(situation(stands=paused)).next_fires[0].at == datetime(2026, 3, 29, 1, tzinfo=UTC)


def test_an_instant_that_is_held_or_due_is_among_the_next_fires() -> None:
    minutely = cron("* * * * *")
    for stands in (HELD, record((NOW - MINUTE) / S)):
        fires = explain_schedule(situation(minutely, stands=stands)).next_fires
        assert fires[0].at == datetime(2026, 3, 28, 11, 59, tzinfo=UTC)
        assert fires[1].at == datetime(2026, 3, 28, 12, 0, tzinfo=UTC)


def test_of_a_fixed_delay_the_next_fire_is_known_once_the_run_has_ended() -> None:
    assert explain_schedule(situation(DELAYED, stands=AWAITS)).next_fires == ()
    known = record(NEXT / S, delay_us=10 * MINUTE)
    assert explain_schedule(situation(DELAYED, stands=known)).next_fires == (
        NextFire(at=datetime(2026, 3, 29, 1, tzinfo=UTC)),
    )


def test_a_broken_schedule_shows_no_next_fires() -> None:
    assert explain_schedule(situation(stands=record(NEXT / S, paused=True, error="x"))).next_fires == ()
    assert explain_schedule(situation(None, unreadable="x")).next_fires == ()
    raising = Wrong(ZeroDivisionError("0"))
    assert explain_schedule(situation(raising)).next_fires == ()


def test_a_trigger_with_few_instants_left_shows_these() -> None:
    few = Listed([NEXT // S, NEXT // S + 60])
    assert len(explain_schedule(situation(few)).next_fires) == 2


# ------------------------------------------------------------------------------------- an instant

OLD = "2026-03-27T01:30"  # 02:30 in Berlin


@pytest.mark.parametrize(
    ("outcome", "code", "change"),
    [
        (FireOutcome.FIRED, Code.FIRED, ""),
        (FireOutcome.BY_HAND, Code.BY_HAND, ""),
        (FireOutcome.OVERLAP, Code.OVERLAP, "overlap='queue_one', 'replace' or 'allow'"),
        (FireOutcome.MERGED, Code.MERGED, "missed='all' gives each"),
        (FireOutcome.MISSED, Code.MISSED, "missed='latest' or 'all'"),
        (FireOutcome.CATCH_UP, Code.CATCH_UP, "A larger max_catchup"),
        (FireOutcome.PAUSED, Code.PAUSED, ""),
    ],
)
def test_what_is_on_record_of_an_instant_is_told(outcome: FireOutcome, code: Code, change: str) -> None:
    of = fire(outcome, OLD, job_id="j1")
    explained = explain_schedule(situation(fires=[of]), us(OLD))
    (reason,) = explained.reasons
    assert (reason.code, reason.job_id) == (code, "j1")
    assert change in reason.change
    assert bool(change) is bool(reason.change)
    assert explained.at == datetime(2026, 3, 27, 1, 30, tzinfo=UTC)
    assert str(explained).startswith("Schedule s at 2026-03-27 01:30:00 UTC: At 02:30")


def test_what_was_merged_into_a_run_that_was_made_before_names_none() -> None:
    _, text = one(explain_schedule(situation(fires=[fire(FireOutcome.MERGED, OLD)]), us(OLD)))
    assert "one run stands for all that were." in text
    assert "None" not in text


def test_every_outcome_has_a_reason_of_its_own() -> None:
    codes = [
        one(explain_schedule(situation(fires=[fire(outcome, OLD)]), us(OLD)))[0] for outcome in FireOutcome
    ]
    assert len(set(codes)) == len(FireOutcome)


def test_a_fire_that_was_decided_late_says_when() -> None:
    prompt = fire(FireOutcome.FIRED, OLD, job_id="j1")
    assert one(explain_schedule(situation(fires=[prompt]), us(OLD)))[1] == "It became job j1."
    late = fire(FireOutcome.FIRED, OLD, job_id="j1", late_us=2 * S)
    assert (
        "That was decided 2026-03-27 01:30:02 UTC"
        in one(explain_schedule(situation(fires=[late]), us(OLD)))[1]
    )


def test_how_a_job_stands_is_told_where_it_is_known() -> None:
    def told(outcome: FireOutcome) -> str:
        s = situation(fires=[fire(outcome, OLD, job_id="j1")], statuses={"j1": JobStatus.CANCELLED})
        return one(explain_schedule(s, us(OLD)))[1]

    assert told(FireOutcome.FIRED) == "It became job j1, which is CANCELLED."
    assert "job j1, which is CANCELLED." in told(FireOutcome.BY_HAND)
    assert "job j1, which is CANCELLED." in told(FireOutcome.MERGED)
    assert "job j1 had not ended." in told(FireOutcome.OVERLAP)


def test_of_a_run_of_instants_only_its_instants_are_told_of() -> None:
    merged = fire(FireOutcome.MERGED, OLD, first="2026-03-20T01:30", count=8, job_id="j1")
    inside, between = us("2026-03-24T01:30"), us("2026-03-24T09:00")
    assert one(explain_schedule(situation(fires=[merged]), inside))[0] is Code.MERGED
    assert one(explain_schedule(situation(fires=[merged]), between))[0] is Code.NO_INSTANT
    unread = situation(None, fires=[merged], unreadable="no zone")
    assert one(explain_schedule(unread, between))[0] is Code.MERGED


def test_a_moved_instant_names_the_wall_time_it_stood_for() -> None:
    moved = fire(FireOutcome.FIRED, OLD, job_id="j1", moved_from="2026-03-29T02:30[Europe/Berlin]")
    assert "stands for 2026-03-29T02:30[Europe/Berlin]" in one(
        explain_schedule(situation(fires=[moved]), us(OLD))
    )[1]  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "at", "code", "words"),
    [
        (situation(), "2026-02-01T01:30", Code.BEFORE_ADDED, "2026-03-01 00:00:00 UTC"),
        (
            situation(terms={"starts_at": us("2026-03-20T00:00")}), "2026-03-10T01:30",
            Code.OUT_OF_BOUNDS, "starts 2026-03-20 00:00:00 UTC",
        ),
        (
            situation(terms={"ends_at": us("2026-04-01T00:00")}), "2026-04-10T00:30",
            Code.OUT_OF_BOUNDS, "ends 2026-04-01 00:00:00 UTC",
        ),
        (situation(), "2026-03-30T00:30", Code.NOT_DUE, "It is ahead"),
        (situation(stands=record(NEXT / S, paused=True)), "2026-03-30T00:30", Code.PAUSED, "is paused"),
        (situation(stands=record(NEXT / S, paused=True)), OLD, Code.PAUSED, "is paused"),
        (
            situation(stands=record(NEXT / S, paused=True, error="e")), OLD, Code.BROKEN,
            "The scheduler paused it: e",
        ),
        (situation(), OLD, Code.NOT_ON_RECORD, "longer ago than fires are kept"),
        (situation(stands=record()), OLD, Code.NOT_ON_RECORD, "longer ago"),
        (situation(stands=record(us(OLD) / S)), OLD, Code.DUE, "has come"),
        (situation(stands=record(us(OLD) / S), is_worked=False), OLD, Code.NO_WORKER, "Nobody runs jobs"),
        (
            situation(stands=replace(record(), held_at=us(OLD)), live=["j1"]), "2026-03-28T01:30",
            Code.HELD_BACK, "until job j1 has ended",
        ),
        (situation(None, unreadable="no zone"), OLD, Code.BROKEN, "no zone"),
        (situation(Wrong(ZeroDivisionError("0"))), OLD, Code.BROKEN, "raised ZeroDivisionError"),
        (
            situation(cron("* * * * *"), stands=replace(record(), awaits=5, delay_us=None)),
            OLD, Code.AFTER_END, "after the end of a job",
        ),
    ],
)  # fmt: skip
def test_an_instant_without_a_record_has_its_reason(
    seen: ScheduleSituation, at: str, code: Code, words: str
) -> None:
    found, text = one(explain_schedule(seen, us(at)))
    assert found is code
    assert words in text


def test_an_instant_that_the_trigger_does_not_have_names_its_neighbours() -> None:
    code, text = one(explain_schedule(situation(), us("2026-03-29T01:30")))
    assert code is Code.NO_INSTANT
    assert "the one before it is 2026-03-29 01:00:00 UTC" in text
    assert f"in place of {SKIPPED}, which the clocks skipped" in text
    assert "the next one after it is 2026-03-30 00:30:00 UTC" in text


def test_a_neighbour_that_stands_for_a_skipped_wall_time_says_so() -> None:
    code, text = one(explain_schedule(situation(), us("2026-03-29T00:30")))
    assert code is Code.NO_INSTANT
    assert (
        "in place of 2026-03-29T02:30[Europe/Berlin], a wall time that a change of the clocks skips" in text
    )


def test_after_the_last_instant_no_neighbour_is_named() -> None:
    few = Listed([NEXT // S])
    assert one(explain_schedule(situation(few), us("2026-05-01T00:00"))) == (
        Code.NO_INSTANT,
        "The trigger has no instant then.",
    )


def test_a_skipped_wall_time_is_looked_for_through_a_bounded_number_of_instants() -> None:
    busy = Listed(range(us("2026-03-28T09:00") // S, NOW // S), moved=[us("2026-03-28T09:10") // S])
    code, text = one(explain_schedule(situation(busy), NOW - S // 2))
    assert (code, text) == (Code.NO_INSTANT, "The trigger has no instant then.")


def test_of_a_fixed_delay_only_its_pending_instant_is_one() -> None:
    known = situation(DELAYED, stands=record(NEXT / S, delay_us=10 * MINUTE))
    assert one(explain_schedule(known, NEXT))[0] is Code.NOT_DUE
    ahead, past = NEXT + MINUTE, NOW - MINUTE
    assert one(explain_schedule(known, ahead)) == (
        Code.NO_INSTANT,
        "Its instants come 10m after the end of each run, and none is known to be then.",
    )
    assert "there was none then" in one(explain_schedule(known, past))[1]
    due = situation(DELAYED, stands=record(NOW / S - 5, delay_us=10 * MINUTE))
    assert one(explain_schedule(due, NOW - 5 * S))[0] is Code.DUE


def test_a_long_explanation_stays_one() -> None:
    text = str(explain_schedule(situation(is_worked=False)))
    assert text.count("\n- ") == 2
    assert text.count("\nNext: ") == 5


def test_a_zone_that_is_not_known_here_leaves_utc() -> None:
    class Elsewhere(Listed):
        tz = "Mars/Olympus"

    explanation = explain_schedule(situation(Elsewhere([NEXT // S])))
    assert explanation.next_fires == (NextFire(at=datetime(2026, 3, 29, 1, tzinfo=UTC)),)
