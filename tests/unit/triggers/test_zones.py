"""Wall clocks: gaps and overlaps of every size, and names that are none."""

from __future__ import annotations

import pickle
import zoneinfo
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from betimes.core.durations import from_us, instant_us
from betimes.core.triggers import calendar, cron
from betimes.core.triggers.zones import changes_of, zone_of
from betimes.errors import InvalidTrigger


def us(text: str) -> int:
    return instant_us(datetime.fromisoformat(text), name="text")


def wall(text: str, tz: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(tz))


@pytest.mark.parametrize(
    ("tz", "at", "first"),
    [
        ("Europe/Berlin", "2025-03-30T01:59:59", "2025-03-30T00:59:59Z"),
        ("Europe/Berlin", "2025-03-30T02:00", "2025-03-30T01:00Z"),
        ("Europe/Berlin", "2025-03-30T02:59:59", "2025-03-30T01:00Z"),
        ("Europe/Berlin", "2025-03-30T03:00", "2025-03-30T01:00Z"),
        ("Europe/Berlin", "2025-10-26T02:00", "2025-10-26T00:00Z"),
        ("Europe/Berlin", "2025-10-26T02:59:59", "2025-10-26T00:59:59Z"),
        ("Europe/Berlin", "2025-10-26T03:00", "2025-10-26T02:00Z"),
        ("Australia/Lord_Howe", "2019-10-06T02:15", "2019-10-05T15:30Z"),
        ("Antarctica/Troll", "2025-03-30T01:30", "2025-03-30T01:00Z"),
        ("Pacific/Apia", "2011-12-30T12:00", "2011-12-30T10:00Z"),
        ("America/Santiago", "2018-08-12T00:30", "2018-08-12T04:00Z"),
        ("America/St_Johns", "2010-03-14T00:30", "2010-03-14T03:31Z"),
        ("Africa/Monrovia", "1972-01-07T00:10", "1972-01-07T00:44:30Z"),
    ],
)
def test_the_first_instant_that_shows_a_time_or_more(tz: str, at: str, first: str) -> None:
    assert from_us(zone_of(tz).first(wall(at, tz))) == datetime.fromisoformat(first)


def test_the_span_that_is_shown_twice() -> None:
    zone = zone_of("Europe/Berlin")
    start, end = wall("2025-10-26T02:00", "Europe/Berlin"), wall("2025-10-26T03:00", "Europe/Berlin")
    for at in (
        "2025-10-26T00:00Z",
        "2025-10-26T00:59:59.999999Z",
        "2025-10-26T01:00Z",
        "2025-10-26T01:59:59Z",
    ):
        assert zone.repeated(zone.local(us(at))) == (start, end)
    assert zone.repeated(zone.local(us("2025-10-26T02:00Z"))) is None
    assert zone.repeated(zone.local(us("2025-10-25T23:59:59Z"))) is None
    assert zone.repeated(zone.local(us("2025-03-30T01:00Z"))) is None


def test_the_span_that_is_skipped_just_before() -> None:
    zone = zone_of("Pacific/Apia")
    at = us("2011-12-30T10:00Z")
    assert zone.gap_before(at) == (
        wall("2011-12-30T00:00", "Pacific/Apia"),
        wall("2011-12-31T00:00", "Pacific/Apia"),
    )
    assert zone.gap_before(at + 1) is None
    assert zone.gap_before(at - 1_000_000) is None
    assert zone.gap_before(us("2012-04-01T14:00Z")) is None
    assert zone.gap_before(us("0001-01-01T12:00Z")) is None


def test_only_times_within_a_gap_are_moved() -> None:
    end = us("2025-03-30T01:00Z")
    assert cron("30 2 * * *", tz="Europe/Berlin").moved_from(end) == "2025-03-30T02:30[Europe/Berlin]"
    assert cron("15,45 2 * * *", tz="Europe/Berlin").moved_from(end) == "2025-03-30T02:15[Europe/Berlin]"
    for expr in ("0 12 * * *", "0 1,3 * * *", "0 2,3 * * *", "*/30 2 * * *"):
        assert cron(expr, tz="Europe/Berlin").moved_from(end) is None
    assert cron("30 2 * * *", tz="Europe/Berlin").moved_from(end + 3_600_000_000) is None


def test_a_time_within_a_gap_is_never_shown() -> None:
    zone = zone_of("Europe/Berlin")
    assert zone.shown_at(wall("2025-03-30T02:30", "Europe/Berlin")) is None
    assert zone.shown_at(wall("2025-03-30T03:00", "Europe/Berlin")) == us("2025-03-30T01:00Z")


def test_changes_are_found_whatever_hour_they_come_at() -> None:
    berlin = changes_of(zone_of("Europe/Berlin"))
    assert len(berlin) == 28
    assert [change.is_gap for change in berlin[:4]] == [True, False, True, False]
    assert {(change.since.hour, change.until.hour) for change in berlin} == {(2, 3)}
    assert changes_of(zone_of("UTC")) == ()
    troll = changes_of(zone_of("Antarctica/Troll"))
    assert {change.until - change.since for change in troll} == {timedelta(hours=2)}


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("Asia/Berlin", "Europe/Berlin"),
        ("America/New York", "America/New_York"),
        ("Foo/Bar", "an IANA zone name"),
        ("", "an IANA zone name"),
        ("/", "an IANA zone name"),
        ("Europe", "did you mean Europe/"),
        ("local", "differs from host to host"),
        ("localtime", "differs from host to host"),
        ("posixrules", "an IANA zone name"),
        ("right/Europe/Berlin", "Europe/Berlin"),
        ("posix/Europe/Berlin", "Europe/Berlin"),
        ("../Europe/Berlin", "Europe/Berlin"),
        ("Europe/../Europe/Berlin", "Europe/Berlin"),
        ("/usr/share/zoneinfo/UTC", "UTC"),
        ("Europe/Berlin\n", "Europe/Berlin"),
        ("UTC\0", "UTC?"),
        ("CEST", "CET"),
        ("x" * 5000, "an IANA zone name"),
    ],
)
def test_an_unknown_zone_is_refused_with_those_that_look_like_it(name: str, near: str) -> None:
    for make in (lambda: cron("0 9 * * *", tz=name), lambda: calendar(days=1, tz=name)):
        with pytest.raises(InvalidTrigger) as caught:
            make()
        assert caught.value.field == "tz"
        assert near in str(caught.value)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", [None, 5, ZoneInfo("UTC"), UTC, ["UTC"]])
def test_a_zone_is_given_by_its_name(name: object) -> None:
    with pytest.raises(InvalidTrigger, match="IANA zone name") as caught:
        cron("0 9 * * *", tz=name)  # type: ignore[arg-type]
    assert caught.value.field == "tz"


def test_of_a_zone_object_the_name_to_write_is_told() -> None:
    with pytest.raises(InvalidTrigger, match='write its IANA zone name, "Europe/Berlin"'):
        cron("0 9 * * *", tz=ZoneInfo("Europe/Berlin"))  # type: ignore[arg-type]


def test_the_zone_of_the_host_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    start = datetime(2025, 3, 30, tzinfo=UTC)
    before = cron("30 2 * * *", tz="Europe/Berlin").next(start)
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    assert cron("30 2 * * *", tz="Europe/Berlin").next(start) == before
    assert cron("0 0 * * *").next(datetime(2023, 9, 17, 22, 59, tzinfo=UTC)) == datetime(
        2023, 9, 18, tzinfo=UTC
    )


def test_zones_come_from_a_package_where_the_system_has_none() -> None:
    zoneinfo.reset_tzpath(to=())
    try:
        found = ZoneInfo.no_cache("Europe/Berlin")
    finally:
        zoneinfo.reset_tzpath()
    assert datetime(2025, 7, 1, tzinfo=found).utcoffset() == timedelta(hours=2)


def test_a_zone_is_pickled_by_its_name() -> None:
    zone = zone_of("Europe/Berlin")
    assert pickle.loads(pickle.dumps(zone)) is zone
