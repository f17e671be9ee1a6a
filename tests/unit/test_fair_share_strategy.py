"""The fair-share strategy: who a tenant is, and what a job costs it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.lives import ready

from betimes.core import strategy
from betimes.core.shares import COST, UNTAGGED
from betimes.core.strategy import FairShareStrategy, check_key
from betimes.errors import ConfigurationError


def test_a_job_has_no_place_before_the_store_gives_it_one() -> None:
    subject = FairShareStrategy(by="customer")
    assert check_key(subject.key(ready()), strategy=subject.name) == UNTAGGED


def test_a_tenant_pays_the_less_the_heavier_it_is() -> None:
    subject = FairShareStrategy(by="customer", weights={"acme": 3, "tiny": 0.5})
    costs = {name: subject.tenant(name).cost for name in ("acme", "tiny", "other")}
    assert costs == {"acme": COST // 3, "tiny": 2 * COST, "other": COST}


def test_jobs_without_the_argument_are_one_tenant_more() -> None:
    subject = FairShareStrategy(by="customer", weights={"": 2})
    assert subject.tenant(None) == ("", COST // 2)


def test_weights_do_not_make_it_another_strategy() -> None:
    one, other = FairShareStrategy(by="customer", weights={"a": 2}), FairShareStrategy(by="customer")
    assert one.name == other.name == "fair_share:customer"
    assert FairShareStrategy(by="team").name != one.name


def test_tenants_are_remembered_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "_TENANTS_KEPT", 10)
    subject = FairShareStrategy(by="customer")
    assert subject.tenant("a") is subject.tenant("a")
    for number in range(100):
        assert subject.tenant(str(number)).name == str(number)
    assert len(subject._tenants) <= 10


@pytest.mark.parametrize("by", ["", "two words", "1st", None, 7])
def test_what_is_no_argument_is_refused(by: Any) -> None:
    with pytest.raises(ConfigurationError, match="by is"):
        FairShareStrategy(by=by)


@pytest.mark.parametrize(
    "weights",
    [{"a": 0}, {"a": -1}, {"a": float("nan")}, {"a": 1e9}, {"a": True}, {"a": "1"}, {1: 1}, [("a", 1)]],
)
def test_weights_that_are_none_are_refused(weights: Any) -> None:
    with pytest.raises(ConfigurationError, match="weights"):
        FairShareStrategy(by="customer", weights=weights)
