"""What `explain()` says of a cron expression, and the hints below it."""

from __future__ import annotations

import pytest

from betimes.core.triggers import cron


@pytest.mark.parametrize(
    ("expr", "tz", "said"),
    [
        ("0 9 * * mon-fri", "Europe/Berlin", "At 09:00 on Monday through Friday, Europe/Berlin time."),
        ("*/5 * * * *", "UTC", "Every fifth minute of every hour, UTC."),
        ("@hourly", "UTC", "At the start of every hour, UTC."),
        ("0 0 L * *", "UTC", "At 00:00 on the last day of every month, UTC."),
        ("0 0 LW * *", "UTC", "At 00:00 on the last weekday of every month, UTC."),
        ("0 0 15W * *", "UTC", "At 00:00 on the weekday nearest to day 15 of every month, UTC."),
        (
            "0 0 1W,15W,LW * *",
            "UTC",
            "At 00:00 on the last weekday and the weekday nearest to day 1 and day 15 of every month, UTC.",
        ),
        (
            "0 0 5,15W * *",
            "UTC",
            "At 00:00 on the fifth day of month and the weekday nearest to day 15 of the month, UTC.",
        ),
        ("0 0 * * friL", "UTC", "At 00:00 on the last Friday of the month, UTC."),
        ("0 0 * * 1#2", "UTC", "At 00:00 on the second Monday of the month, UTC."),
        (
            "0 0 11,21,22,23 * *",
            "UTC",
            "At 00:00 on the 11th, the 21st, the 22nd, and the 23rd day of month, UTC.",
        ),
    ],
)
def test_an_expression_is_explained_in_one_sentence(expr: str, tz: str, said: str) -> None:
    assert cron(expr, tz=tz).sentence() == said


def test_seconds_are_explained() -> None:
    assert cron("30 0 9 * * *", seconds=True).sentence() == "At 09:00:30 every day, UTC."
    assert cron("* * * * * *", seconds=True).sentence() == "Every second, UTC."


@pytest.mark.parametrize(
    ("expr", "hints"),
    [
        ("0 9 * * *", []),
        ("*/15 * * * *", []),
        ("0 */6 * */3 *", []),
        ("*/45 * * * *", ["*/45 in the minute field is 0 and 45"]),
        ("0 */5 * * *", ["*/5 in the hour field is 0, 5, 10, 15 and 20"]),
        ("0 0 */2 * *", ["*/2 in the day-of-month field starts again at day 1"]),
        ("0 0 * * */2", ["*/2 in the day-of-week field is 0, 2, 4 and 6, and then from 0 again"]),
        ("0 0 1-7 * */7", ["match both"]),
        ("0 0 */2 * mon", ["starts again", "match both"]),
        ("0 0 13 * fri", ["either is enough"]),
        ("0 0 15W * fri", ["either is enough"]),
        ("0 0 31 * *", ["months without a day 31 are left out; L is the last day"]),
        ("0 0 30,31W * *", ["months without a day 30 and 31 are left out"]),
        ("0 0 31 1,3 *", []),
        ("0 0 28-31/3 * *", ["without a day 31"]),
        ("0 0 29 2 *", ["leap years"]),
        ("0 0 29 * *", ["leap years"]),
        ("0 0 29 1-3/2 *", []),
        ("* 9 * * *", ["every minute of those hours"]),
    ],
)
def test_what_may_surprise_is_hinted_at(expr: str, hints: list[str]) -> None:
    found = cron(expr).hints()
    assert len(found) == len(hints)
    assert all(part in hint for part, hint in zip(hints, found, strict=True)), found


def test_six_fields_are_hinted_at() -> None:
    assert cron("0 0 9 * * *", seconds=True).hints() == ("of the six fields, the first is seconds.",)
    found = cron("* 0 9 * * *", seconds=True).hints()
    assert found[1:] == (
        "* in the second field is every second of those minutes; write 0 to fire once a minute.",
    )
    assert len(cron("* * * * * *", seconds=True).hints()) == 1


@pytest.mark.parametrize(
    ("expr", "tz", "hints"),
    [
        (
            "30 2 * * *",
            "Europe/Berlin",
            [
                "in Europe/Berlin, the clock skips 02:00–03:00 on 2024-03-31; it then fires once, at 03:00.",
                (
                    "in Europe/Berlin, the clock shows 02:00–03:00 twice on 2024-10-27; "
                    "it fires in the first pass only."
                ),
            ],
        ),
        (
            "*/15 1 * * *",
            "Europe/Dublin",
            [
                "in Europe/Dublin, the clock skips 01:00–02:00 on 2024-03-31; nothing fires.",
                "in Europe/Dublin, the clock shows 01:00–02:00 twice on 2024-10-27; it fires in both passes.",
            ],
        ),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            [
                (
                    "in Australia/Lord_Howe, the clock shows 01:30–02:00 twice on 2024-04-07; "
                    "it fires in the first pass only."
                )
            ],
        ),
        ("30 3 * * *", "Europe/Berlin", []),
        ("30 2 1 * *", "Europe/Berlin", []),
        ("30 2 * * *", "Asia/Tokyo", []),
        ("*/30 * * * *", "Europe/Berlin", []),
    ],
)
def test_times_that_are_skipped_or_repeated_are_hinted_at(expr: str, tz: str, hints: list[str]) -> None:
    assert list(cron(expr, tz=tz).hints()) == hints


def test_explain_puts_the_hints_below_the_sentence() -> None:
    assert cron("0 0 31 * *").explain().splitlines() == [
        "At 00:00 on the 31st day of every month, UTC.",
        "Note: months without a day 31 are left out; L is the last day.",
    ]
