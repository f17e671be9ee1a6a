"""A schedule's definition: the same text means the same schedule, in every process and after years."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.plots import Listed, S

from betimes import BetimesError, InvalidTrigger, Trigger, at, calendar, cron, every
from betimes.core.schedule import Missed, Overlap
from betimes.core.schedule_terms import OWN_KIND, ScheduleTerms, stored_trigger

FULL = ScheduleTerms(
    trigger={"kind": "cron", "expr": "30 2 * * *", "tz": "Europe/Berlin"},
    overlap=Overlap.QUEUE_ONE,
    missed=Missed.ALL,
    max_catchup=7,
    jitter_us=S,
    starts_at=1,
    ends_at=2,
    expires_us=3,
    anchor=4,
    created_at=5,
    is_declared=True,
)
TRIGGERS: list[Trigger] = [
    cron("30 2 * * mon-fri", tz="Europe/Berlin"),
    every("90m"),
    every("15m", align=True),
    every("5m", after="finish"),
    calendar(months=1, at="09:00", tz="America/New_York"),
    at(datetime(2030, 1, 1, tzinfo=UTC)),
    cron("0 9 * * *") | every("1h"),
    cron("0 9 * * *").excluding(date(2030, 12, 25)),
]


def test_a_definition_comes_back_as_it_was_written() -> None:
    assert ScheduleTerms.from_text(FULL.to_text()) == FULL
    bare = ScheduleTerms(trigger={"kind": "every", "period_us": 1000})
    assert ScheduleTerms.from_text(bare.to_text()) == bare
    assert bare == ScheduleTerms.from_text('{"trigger":{"kind":"every","period_us":1000}}')


def test_case_033_a_definition_is_json_with_the_zone_by_its_iana_name() -> None:
    assert json.loads(FULL.to_text())["trigger"]["tz"] == "Europe/Berlin"


@pytest.mark.parametrize("trigger", TRIGGERS, ids=repr)
def test_p18_a_trigger_that_was_stored_has_the_same_instants(trigger: Trigger) -> None:
    begin = 1_900_000_000 * S
    terms = ScheduleTerms(trigger=stored_trigger(trigger), anchor=begin)
    read = ScheduleTerms.from_text(terms.to_text()).read_trigger()
    expected = trigger.anchored(begin)
    assert read == expected
    after: int | None = begin
    for _ in range(5):
        assert after is None or read.next_us(after) == expected.next_us(after)
        after = None if after is None else expected.next_us(after)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", "null", '{"trigger":[]}', '{"trigger":{},"overlap":"sometimes"}',
     '{"trigger":{},"anchor":"now"}', '{"trigger":{},"max_catchup":1.5}'],
)  # fmt: skip
def test_case_096_a_damaged_definition_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(BetimesError, match="stored definition cannot be read"):
        ScheduleTerms.from_text(text)


def test_case_033_an_unknown_zone_or_kind_is_refused_when_the_trigger_is_read() -> None:
    for trigger in ({"kind": "cron", "expr": "* * * * *", "tz": "Foo/Bar"}, {"kind": "moon"}, {}):
        terms = ScheduleTerms.from_text(ScheduleTerms(trigger=trigger).to_text())
        with pytest.raises(InvalidTrigger):
            terms.read_trigger()


def test_the_same_is_asked_for_whenever_it_was_added() -> None:
    assert FULL.asks_the_same_as(replace(FULL, anchor=99, created_at=98))
    changes: list[dict[str, Any]] = [
        {"trigger": {}},
        {"overlap": Overlap.SKIP},
        {"missed": Missed.SKIP},
        {"max_catchup": 8},
        {"jitter_us": 0},
        {"starts_at": None},
        {"ends_at": None},
        {"expires_us": None},
    ]
    for changed in changes:
        assert not FULL.asks_the_same_as(replace(FULL, **changed))


def test_of_a_users_own_trigger_its_class_and_words_are_kept() -> None:
    stored = stored_trigger(Listed([1]))
    assert stored["kind"] == OWN_KIND
    assert stored["name"].endswith("plots.Listed")
    assert stored["text"] == "By the rule of Listed."
    assert ScheduleTerms(trigger=stored).is_own
    assert not FULL.is_own
