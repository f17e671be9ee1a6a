"""Definitions as they are stored: there and back, and nothing that is not understood whole."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import UTC, date, datetime, time
from typing import Any

import pytest

from betimes.core.triggers import Trigger, at, calendar, cron, every, trigger_from_stored
from betimes.errors import InvalidTrigger

DAY = date(2025, 12, 25)
WHEN = datetime(2025, 1, 1, 9, tzinfo=UTC)


class Own(Trigger):
    """A user's own rule."""

    def next(self, after: datetime) -> datetime | None:
        return None


STORED: list[tuple[Trigger, dict[str, Any]]] = [
    (
        cron("0  9 * * mon-FRI", tz="Europe/Berlin"),
        {"kind": "cron", "expr": "0 9 * * mon-FRI", "tz": "Europe/Berlin"},
    ),
    (
        cron("0 0 9 * * *", seconds=True),
        {"kind": "cron", "expr": "0 0 9 * * *", "tz": "UTC", "seconds": True},
    ),
    (every("5m"), {"kind": "every", "period_us": 300_000_000}),
    (every("5m").anchored(7), {"kind": "every", "period_us": 300_000_000, "anchor_us": 7}),
    (every("5m", align=True), {"kind": "every", "period_us": 300_000_000, "align_us": 0}),
    (every("5m", after="finish"), {"kind": "every", "period_us": 300_000_000, "after": "finish"}),
    (calendar(days=1, at=time(9)), {"kind": "calendar", "days": 1, "at": "09:00", "tz": "UTC"}),
    (
        calendar(months=1, years=2, at="09:00:30", tz="Asia/Tokyo", anchor=date(2025, 1, 31)),
        {
            "kind": "calendar",
            "months": 1,
            "years": 2,
            "at": "09:00:30",
            "tz": "Asia/Tokyo",
            "anchor": "2025-01-31",
        },
    ),
    (at(WHEN), {"kind": "at", "at_us": [1_735_722_000_000_000]}),
    (
        at(WHEN) | every("1s"),
        {
            "kind": "union",
            "parts": [
                {"kind": "at", "at_us": [1_735_722_000_000_000]},
                {"kind": "every", "period_us": 1_000_000},
            ],
        },
    ),
    (
        (at(WHEN) | every("1s") | cron("@daily")).excluding(DAY, tz="Asia/Tokyo"),
        {
            "kind": "exclusion",
            "of": {
                "kind": "union",
                "parts": [
                    {"kind": "at", "at_us": [1_735_722_000_000_000]},
                    {"kind": "every", "period_us": 1_000_000},
                    {"kind": "cron", "expr": "@daily", "tz": "UTC"},
                ],
            },
            "dates": ["2025-12-25"],
            "tz": "Asia/Tokyo",
        },
    ),
]


@pytest.mark.parametrize(("trigger", "definition"), STORED, ids=lambda value: repr(value)[:40])
def test_a_definition_comes_back_as_the_same_trigger(trigger: Trigger, definition: dict[str, Any]) -> None:
    assert trigger.stored() == definition
    back = trigger_from_stored(json.loads(json.dumps(definition)))
    assert back == trigger
    assert hash(back) == hash(trigger)
    assert repr(back) == repr(trigger)
    assert back.stored() == definition


@pytest.mark.parametrize("trigger", [trigger for trigger, _ in STORED], ids=repr)
def test_triggers_are_values(trigger: Trigger) -> None:
    assert pickle.loads(pickle.dumps(trigger)) == copy.deepcopy(trigger) == trigger
    assert sum(trigger == other for other, _ in STORED) == 1
    with pytest.raises((AttributeError, TypeError)):
        trigger.period_us = 1  # type: ignore[attr-defined]


def test_a_trigger_of_the_users_own_cannot_be_stored() -> None:
    assert Own().stored() is None
    assert (Own() | every("1h")).stored() is None
    assert Own().excluding(DAY).stored() is None


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ({}, "kind"),
        ({"kind": "moon"}, "moon"),
        ({"kind": 5}, "kind"),
        ({"kind": "cron", "expr": "0 9 * * *"}, "tz"),
        ({"kind": "cron", "expr": "0 9 * * *", "tz": "UTC", "jitter": 5}, "jitter"),
        ({"kind": "cron", "expr": 9, "tz": "UTC"}, "expr"),
        ({"kind": "cron", "expr": "0 9 * *", "tz": "UTC"}, "has 4"),
        ({"kind": "cron", "expr": "0 9 * * *", "tz": "Foo/Bar"}, "Foo/Bar"),
        ({"kind": "every", "period_us": 5}, "period_us"),
        ({"kind": "every", "period_us": 10**30}, "cannot be read"),
        ({"kind": "every", "period_us": 5000, "after": "end"}, "after"),
        ({"kind": "every", "period_us": 5000, "align_us": 0, "anchor_us": 0}, "more than one"),
        ({"kind": "every", "period_us": 5000, "align_us": 0, "after": "finish"}, "more than one"),
        ({"kind": "calendar", "at": "09:00", "tz": "UTC"}, "as its step"),
        ({"kind": "calendar", "days": 1, "at": "9", "tz": "UTC"}, "09:00"),
        ({"kind": "calendar", "days": 1, "at": "09:00", "tz": "UTC", "anchor": "2025-02-30"}, "anchor"),
        ({"kind": "at", "at_us": []}, "at_us"),
        ({"kind": "at", "at_us": [10**18]}, "years"),
        ({"kind": "union", "parts": [{"kind": "every", "period_us": 5000}]}, "parts"),
        (
            {
                "kind": "union",
                "parts": [
                    {"kind": "every", "period_us": 5000},
                    {"kind": "every", "period_us": 5000, "after": "finish"},
                ],
            },
            "schedule of its own",
        ),
        (
            {
                "kind": "exclusion",
                "of": {"kind": "every", "period_us": 5000, "x": 1},
                "dates": ["2025-01-01"],
                "tz": "UTC",
            },
            "$.of",
        ),
        (
            {"kind": "exclusion", "of": {"kind": "every", "period_us": 5000}, "dates": [], "tz": "UTC"},
            "dates",
        ),
        (None, "cannot be read"),
        (["cron"], "cannot be read"),
        ("cron", "cannot be read"),
    ],
)
def test_what_is_not_understood_is_refused_with_the_place(definition: Any, said: str) -> None:
    with pytest.raises(InvalidTrigger) as caught:
        trigger_from_stored(definition)
    assert said in str(caught.value)


def test_a_definition_that_is_nested_without_end_is_refused() -> None:
    definition: dict[str, Any] = {"kind": "every", "period_us": 5000}
    for _ in range(5000):
        definition = {"kind": "exclusion", "of": definition, "dates": ["2025-01-01"], "tz": "UTC"}
    with pytest.raises(InvalidTrigger, match="nested too deep"):
        trigger_from_stored(definition)
