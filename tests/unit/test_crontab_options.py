"""What `# betimes: …` above an entry may ask for."""

from __future__ import annotations

from typing import Any

import pytest

from betimes.core.crontab_lines import LineError
from betimes.core.crontab_options import OPTIONS, EntryOptions, make_options, read_options
from betimes.core.restraints import Limit
from betimes.core.schedule import Missed, Overlap


def options(*lines: str) -> EntryOptions:
    given: dict[str, Any] = {}
    for line in lines:
        read_options(line, given)
    return make_options(given)


def refusal(*lines: str) -> str:
    with pytest.raises(LineError) as error:
        options(*lines)
    return str(error.value)


def test_every_option_is_read() -> None:
    assert options(
        " name=backup timeout=5m grace=10s overlap=queue_one missed=all max_catchup=7 ",
        "retry=3\tretry_delay=1m jitter=90s limit=disk:2 priority=-5 keep=90d ok_codes=0,1 tz=Europe/Berlin",
    ) == EntryOptions(
        name="backup",
        timeout_s=300.0,
        grace_s=10.0,
        overlap=Overlap.QUEUE_ONE,
        missed=Missed.ALL,
        max_catchup=7,
        retry=3,
        retry_delay_s=60.0,
        jitter_s=90.0,
        limit=Limit("disk", 2),
        priority=-5,
        keep_s=90 * 86_400.0,
        ok_codes=frozenset({0, 1}),
        tz="Europe/Berlin",
    )


def test_nothing_is_asked_for_without_options() -> None:
    assert make_options({}) == EntryOptions()


def test_values_may_stand_in_quotes() -> None:
    assert options("timeout=\"1h 30m\" name='a'").timeout_s == 5400.0


def test_a_limit_without_a_number_is_one_and_a_duration_may_be_none_at_all() -> None:
    assert options("limit=disk grace=0 jitter=0s") == EntryOptions(
        limit=Limit("disk", 1), grace_s=0, jitter_s=0
    )


def test_wrong_options_are_refused_with_what_to_write() -> None:
    assert refusal("tiemout=5") == "there is no option 'tiemout'; did you mean 'timeout'?"
    assert refusal("xyzzy=5").endswith(f"the options are {', '.join(OPTIONS)}")
    assert "no option follows" in refusal("  ")
    assert "'timeout' is no option: each is written name=value" in refusal("timeout = 5m")
    assert "'5m' is no option" in refusal("timeout=5m 5m")
    assert "overlap is given twice" in refusal("overlap=skip", "overlap=allow")
    assert "timeout='5' is no duration" in refusal("timeout=5")
    assert "timeout must be more than zero" in refusal("timeout=0s")
    assert refusal("overlap=skp").endswith(
        "it is one of skip, queue_one, replace and allow; did you mean 'skip'?"
    )
    assert refusal("missed=9") == "missed is '9'; it is one of latest, skip and all"
    assert "retry is '0'; it is a whole number from 1 to 100" in refusal("retry=0")
    assert "retry is '٣'" in refusal("retry=٣")
    assert "max_catchup is '1001'" in refusal("missed=all max_catchup=1001")
    assert "priority is '1.5'" in refusal("priority=1.5")
    assert "ok_codes is '256'" in refusal("ok_codes=0,256")
    assert "limit is '0'" in refusal("limit=disk:0")
    assert "limit is ''" in refusal("limit=:3")
    assert "name is '-a'" in refusal("name=-a")
    assert "did you mean Europe/Berlin" in refusal("tz=Europe/Berln")


def test_options_that_need_another_say_so() -> None:
    assert "only together with missed=all" in refusal("max_catchup=5")
    assert "only together with retry=2" in refusal("retry_delay=5s")
    assert "at most once is not tried again" in refusal("delivery=at_most_once retry=2")


def test_a_run_may_be_had_at_most_once() -> None:
    assert options("delivery=at_most_once").at_most_once
    assert not options("delivery=at_least_once retry=2").at_most_once
    assert "did you mean 'at_most_once'" in refusal("delivery=most_once")
