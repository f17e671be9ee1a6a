"""ClockContract: what every clock promises, asked of both; then what each promises by itself."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from betimes.clock import SystemClock, monotonic_s
from betimes.core.durations import Duration
from betimes.errors import ConfigurationError
from betimes.ports import Clock
from betimes.testing import VirtualClock

START = datetime(2030, 1, 1, tzinfo=UTC)
START_US = 1_893_456_000_000_000


class ClockContract(ABC):
    """Inherit it and say how the clock is made."""

    @abstractmethod
    def make_clock(self) -> Clock: ...

    def test_the_wall_clock_is_whole_microseconds_since_the_epoch(self) -> None:
        now = self.make_clock().now()
        assert type(now) is int
        assert datetime(2020, 1, 1, tzinfo=UTC) < datetime.fromtimestamp(now / 1e6, UTC)
        assert datetime.fromtimestamp(now / 1e6, UTC) < datetime(2200, 1, 1, tzinfo=UTC)

    def test_the_boot_clock_is_whole_microseconds_and_never_goes_back(self) -> None:
        clock = self.make_clock()
        read = [clock.boottime() for _ in range(1000)]
        assert {type(one) for one in read} == {int}
        assert read == sorted(read)
        assert read[0] > 0

    def test_the_monotonic_clock_is_seconds_and_never_goes_back(self) -> None:
        clock = self.make_clock()
        read = [clock.monotonic() for _ in range(1000)]
        assert {type(one) for one in read} == {float}
        assert read == sorted(read)

    def test_the_boot_clock_and_the_monotonic_clock_run_alike(self) -> None:
        clock = self.make_clock()
        before, begun = clock.boottime(), clock.monotonic()
        self.let_time_pass(clock)
        ended, after = clock.monotonic(), clock.boottime()
        # The inner pair of readings lies within the outer one; a microsecond for rounding at each end.
        assert (ended - begun) * 1e6 <= after - before + 2

    def test_the_boot_id_is_text_and_stays(self) -> None:
        clock = self.make_clock()
        assert type(clock.boot_id()) is str
        assert clock.boot_id()
        assert clock.boot_id() == clock.boot_id() == self.make_clock().boot_id()

    def let_time_pass(self, clock: Clock) -> None:
        begun = clock.monotonic()
        while clock.monotonic() == begun:
            pass


class TestSystemClock(ClockContract):
    def make_clock(self) -> Clock:
        return SystemClock()

    def test_now_is_the_systems_wall_clock(self) -> None:
        before = time.time_ns()  # noqa: TID251 - the system's own clock is what is compared with
        now = SystemClock().now()
        after = time.time_ns()  # noqa: TID251 - as above
        assert before // 1000 <= now <= after // 1000

    def test_the_measuring_clocks_are_the_systems(self) -> None:
        before = time.monotonic()  # noqa: TID251 - the system's own clock is what is compared with
        read = [SystemClock().monotonic(), monotonic_s()]
        after = time.monotonic()  # noqa: TID251 - as above
        assert before <= read[0] <= read[1] <= after

    def test_the_boot_clock_has_run_at_least_as_long_as_the_one_that_stops_in_suspend(self) -> None:
        monotonic = time.monotonic_ns() // 1000  # noqa: TID251 - the system's own clock is what is compared with
        assert SystemClock().boottime() >= monotonic


class TestVirtualClock(ClockContract):
    def make_clock(self) -> Clock:
        return VirtualClock()

    def let_time_pass(self, clock: Clock) -> None:
        assert isinstance(clock, VirtualClock)
        clock.advance(0.25)

    def test_it_begins_at_a_fixed_instant_and_stands_still(self) -> None:
        clock = VirtualClock()
        assert [clock.now() for _ in range(3)] == [START_US] * 3
        assert [clock.monotonic() for _ in range(3)] == [0.0] * 3
        assert clock.boottime() == 1_000_000_000

    def test_it_begins_where_it_is_told_to_in_any_zone(self) -> None:
        start = START.astimezone(timezone(timedelta(hours=5, minutes=30)))
        assert VirtualClock(start).now() == START_US
        assert VirtualClock(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)).now() == -1

    def test_a_naive_start_is_refused_by_name(self) -> None:
        with pytest.raises(ConfigurationError, match=r"^start.*time zone"):
            VirtualClock(datetime(2030, 1, 1))  # noqa: DTZ001 - that is what is refused

    @pytest.mark.parametrize("duration", [90, 90.0, timedelta(seconds=90), "1m30s"])
    def test_advance_moves_every_clock_alike(self, duration: Duration) -> None:
        clock = VirtualClock()
        clock.advance(duration)
        assert clock.now() == START_US + 90_000_000
        assert clock.boottime() == 1_090_000_000
        assert clock.monotonic() == 90.0

    @pytest.mark.parametrize(
        ("duration", "moved_us"),
        [
            (3600, 3_600_000_000),
            (-3600, -3_600_000_000),
            (-0.5, -500_000),
            (0, 0),
            ("2d", 172_800_000_000),
            ("-1h", -3_600_000_000),
            ("0s", 0),
            (timedelta(days=-400), -34_560_000_000_000),
            (timedelta(microseconds=1), 1),
        ],
    )
    def test_a_jump_moves_the_wall_clock_only(self, duration: Duration, moved_us: int) -> None:
        clock = VirtualClock()
        clock.jump(duration)
        assert clock.now() == START_US + moved_us
        assert (clock.boottime(), clock.monotonic()) == (1_000_000_000, 0.0)

    @pytest.mark.parametrize("duration", ["", "-", "--1h", float("nan"), float("-inf"), "-1 fortnight", None])
    def test_a_jump_by_no_duration_is_refused(self, duration: Any) -> None:
        clock = VirtualClock()
        with pytest.raises(ConfigurationError, match=r"^duration"):
            clock.jump(duration)
        assert clock.now() == START_US

    @pytest.mark.parametrize("duration", [-1, -1e-9, timedelta(microseconds=-1), float("nan"), "1 fortnight"])
    def test_time_does_not_run_backwards(self, duration: Duration) -> None:
        clock = VirtualClock()
        with pytest.raises(ConfigurationError, match=r"^duration"):
            clock.advance(duration)
        assert (clock.now(), clock.monotonic()) == (START_US, 0.0)

    def test_many_small_steps_lose_nothing(self) -> None:
        clock = VirtualClock()
        for _ in range(100_000):
            clock.advance(0.1)
        assert clock.now() == START_US + 10_000_000_000

    def test_advance_to_goes_forward_only(self) -> None:
        clock = VirtualClock()
        clock.advance_to(5)
        clock.advance_to(3)
        assert (clock.monotonic(), clock.now()) == (5.0, START_US + 5_000_000)

    def test_two_virtual_machines_have_two_boots(self) -> None:
        assert VirtualClock(boot_id="left").boot_id() != VirtualClock(boot_id="right").boot_id()
