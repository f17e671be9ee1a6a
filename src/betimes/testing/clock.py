"""A clock that stands still until a test moves it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from betimes.core.durations import Duration, duration_s, duration_us, instant_us
from betimes.ports import Clock

DEFAULT_START: Final = datetime(2030, 1, 1, tzinfo=UTC)

# The boot clock does not begin where the monotonic one does, so that code which mixes them up fails.
_BOOTTIME_AT_START = 1_000_000_000


class VirtualClock(Clock):
    """A clock which moves only when told to: the same test sees the same instants every time.

    `monotonic()` begins at 0.0, `boottime()` at 1,000 s, `now()` at `start`. The clock belongs to one thread,
    that of the event loop.

    Args:
        start: what the wall clock shows first; an aware datetime.
        boot_id: what `boot_id()` answers; give two clocks different ones to play two machines.
        tells_jumps: whether a scheduler hears of each `jump` or `suspend` at once, and so need not look at
            the clock every few seconds; False: it must notice by itself, as with a real clock.

    Raises:
        ConfigurationError: `start` is naive.

    Example:
        >>> clock = VirtualClock()
        >>> clock.advance(60)
        >>> clock.monotonic()
        60.0
    """

    def __init__(
        self,
        start: datetime = DEFAULT_START,
        *,
        boot_id: str = "virtual-boot",
        tells_jumps: bool = True,
    ) -> None:
        self._wall_at_start = instant_us(start, name="start")
        self._boot_id = boot_id
        # The seconds are kept as they are given, so that a loop's `time()` shows a timer's deadline to the
        # last bit and no timer runs early; the other clocks show them rounded to the microsecond.
        self._monotonic = 0.0
        self._tells_jumps = tells_jumps
        self._hearers: list[Callable[[], None]] = []
        self._elapsed = 0
        self._suspended = 0

    def now(self) -> int:
        """The virtual wall clock, in microseconds since the Unix epoch: `start`, and all moves and jumps."""
        return self._wall_at_start + self._elapsed

    def boottime(self) -> int:
        """The virtual boot clock, in microseconds: it moves with `advance` and `suspend` only."""
        return _BOOTTIME_AT_START + self._elapsed + self._suspended

    def boot_id(self) -> str:
        """The boot id given to the constructor."""
        return self._boot_id

    def monotonic(self) -> float:
        """The virtual seconds since the clock was made: they move with `advance` only."""
        return self._monotonic

    def advance(self, duration: Duration) -> None:
        """Let time pass on all clocks at once, as if the whole process had been held up that long.

        On a `VirtualLoop` every timer that is due by then runs afterwards, late. To let the loop run each at
        its own instant, await an `asyncio.sleep` instead.

        Args:
            duration: seconds, a `timedelta`, or text such as `"1h30m"`; zero or more.

        Raises:
            ConfigurationError: it is no duration, or negative: only the wall clock goes back, by `jump`.
        """
        self.advance_to(self._monotonic + duration_s(duration, name="duration", allow_zero=True))

    def advance_to(self, monotonic_s: float) -> None:
        """Let time pass until `monotonic()` shows this; nothing happens when it shows as much already.

        Args:
            monotonic_s: a reading of `monotonic()`, in seconds.
        """
        if monotonic_s > self._monotonic:
            self._monotonic = float(monotonic_s)
            self._elapsed = round(monotonic_s * 1_000_000)

    def jump(self, duration: Duration) -> None:
        """Set the wall clock, as an operator or NTP would: no time passes, `boottime` and `monotonic` stand.

        Args:
            duration: as for `advance`; to set the clock back, a negative one, such as `"-1h"`.

        Raises:
            ConfigurationError: it is no duration.
        """
        length: Duration = duration
        if isinstance(duration, str):
            length = duration.strip().removeprefix("-")
            is_back = duration.strip().startswith("-")
        else:
            is_back = isinstance(duration, int | float | timedelta) and abs(duration) != duration
            length = -duration if is_back else duration
        moved = duration_us(length, name="duration", allow_zero=True)
        self._wall_at_start += -moved if is_back else moved
        self._tell()

    def suspend(self, duration: Duration) -> None:
        """Have the machine sleep: the wall clock and `boottime` move, and `monotonic` stands, as on Linux.

        So no timer is any nearer afterwards, and whatever leases are counted on the boot clock are older.

        Args:
            duration: as for `advance`.

        Raises:
            ConfigurationError: it is no duration, or negative.
        """
        slept = duration_us(duration, name="duration", allow_zero=True)
        self._wall_at_start += slept
        self._suspended += slept
        self._tell()

    def _tell(self) -> None:
        for hear in tuple(self._hearers):
            hear()

    def on_jump(self, hear: Callable[[], None]) -> Callable[[], None] | None:
        """Have `hear` called at each `jump` and `suspend`; None if this clock was made not to tell."""
        if not self._tells_jumps:
            return None
        self._hearers.append(hear)
        return lambda: self._hearers.remove(hear)
