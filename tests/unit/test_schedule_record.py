"""The record of a schedule, as stores keep it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from betimes.core.job import EMPTY_PAYLOAD, JobSpec
from betimes.core.schedule import ScheduleRecord


def test_a_new_record_has_fired_nothing_and_fires_without_arguments() -> None:
    record = ScheduleRecord(id="nightly", spec=JobSpec(task="t"))
    assert (record.fired, record.skipped, record.last_fire_at, record.next_fire_at) == (0, 0, None, None)
    assert (record.version, record.paused, record.payload) == (1, False, EMPTY_PAYLOAD)


def test_a_record_is_a_value() -> None:
    record = ScheduleRecord(id="nightly", spec=JobSpec(task="t"))
    assert replace(record, version=2) != record
    assert replace(record) == record
    with pytest.raises(AttributeError):
        record.version = 2  # type: ignore[misc]
