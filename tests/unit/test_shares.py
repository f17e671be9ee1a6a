"""The places that fair share gives out: exact sequences, and how they lie in sort keys."""

from __future__ import annotations

import pytest
from tests.unit.lives import ready

from betimes.core.job import Job, Tenant
from betimes.core.shares import COST, LAST_TAG, UNTAGGED, Shares, finish_tag, key_of, start_tag, tag_of
from betimes.core.sort_key import LARGEST_KEY, SMALLEST_KEY


def new(name: str | None, cost: int = COST) -> Job:
    job = ready()
    job.sort_key = UNTAGGED
    job.tenant = None if name is None else Tenant(name, cost)
    return job


def tags(place: Shares, *names: str, cost: int = COST) -> list[float]:
    """The start tags of new jobs, in rounds of a tenant of weight 1."""
    jobs = [new(name, cost) for name in names]
    place.tag(jobs)
    return [tag_of(job.sort_key) / COST for job in jobs]


def test_a_tenants_jobs_are_numbered_in_its_own_time() -> None:
    assert tags(Shares(), *"aaabba") == [0, 1, 2, 0, 1, 3]


def test_a_heavier_tenant_is_numbered_more_closely() -> None:
    assert tags(Shares(), *"aaaaa", cost=COST // 4) == [0, 0.25, 0.5, 0.75, 1]


def test_who_comes_late_begins_at_the_virtual_time() -> None:
    place = Shares()
    jobs = [new("a") for _ in range(5)]
    for job in jobs:
        place.tag([job])
    for job in (jobs[3], jobs[1]):  # a gate can hold back the first
        place.claimed([job])
    assert place.virtual == 3 * COST
    assert tags(place, "b", "b", "a") == [3, 4, 5]


def test_of_jobs_claimed_together_the_last_with_a_tenant_tells_the_time() -> None:
    place = Shares()
    jobs = [new("a"), new("a"), new(None), new("a"), new(None)]
    place.tag(jobs)
    place.claimed(jobs[:3])
    assert place.virtual == COST
    place.claimed(jobs)
    assert place.virtual == 2 * COST
    place.claimed(jobs[:1])
    place.claimed([])
    assert place.virtual == 2 * COST


def test_a_place_is_given_once_and_only_to_tenants() -> None:
    place = Shares()
    job, nobodys = new("a"), new(None)
    place.tag([job])
    before = job.sort_key
    place.tag([job])
    place.tag([nobodys])
    place.claimed([nobodys])
    assert (job.sort_key, nobodys.sort_key, place.virtual) == (before, UNTAGGED, 0)


def test_what_comes_again_moves_nothing() -> None:
    place = Shares()
    job = new("a")
    place.tag([job])
    for _ in range(3):
        place.claimed([job])
        place.tag([job])
    assert tags(place, "a", "b") == [1, 0]


def test_priority_decides_between_equal_tags_only() -> None:
    keys = [key_of(tag, priority) for tag in (0, COST, LAST_TAG) for priority in (1000, 1, 0, -1000)]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("priority", [-1000, 0, 1000])
@pytest.mark.parametrize("tag", [0, COST, 7 * COST, LAST_TAG])
def test_a_tag_can_be_read_from_its_key(tag: int, priority: int) -> None:
    key = key_of(tag, priority)
    assert tag_of(key) == tag
    assert SMALLEST_KEY <= key < UNTAGGED == LARGEST_KEY


def test_tags_end_at_the_last_one() -> None:
    assert finish_tag(LAST_TAG, COST) == finish_tag(LAST_TAG - 1, COST) == LAST_TAG
    assert finish_tag(0, COST) == COST


@pytest.mark.parametrize(("virtual", "finish", "start"), [(5, None, 5), (5, 4, 5), (5, 5, 5), (5, 6, 6)])
def test_a_start_is_the_later_of_the_virtual_time_and_the_finish_before(
    virtual: int, finish: int | None, start: int
) -> None:
    assert start_tag(virtual, finish) == start


def test_tenants_who_stand_no_worse_than_new_ones_are_forgotten() -> None:
    place = Shares()
    for number in range(5_000):
        job = new(f"t{number}")
        place.tag([job])
        place.claimed([job])
        late = new(f"t{number}")
        place.tag([late])
        place.claimed([late])
    assert len(place._finishes) <= 1024
    behind = new("behind")
    place.tag([behind])
    for number in range(3_000):
        place.tag([new(f"other {number}")])
    assert "behind" in place._finishes, "whoever has jobs ahead of the virtual time is not"


def test_weights_from_one_to_ten_divide_what_a_job_costs() -> None:
    assert [COST % weight for weight in range(1, 11)] == [0] * 10
