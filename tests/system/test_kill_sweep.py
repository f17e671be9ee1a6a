"""Death at each boundary of the store: a process is killed at the N-th, another goes on, and nothing is lost.

By default only some N are tried, spread over a whole life; `BETIMES_TEST_SWEEP=all ./run tests
tests/system/test_kill_sweep.py` tries every one (about half an hour on two cores), and
`BETIMES_TEST_SWEEP=5` every fifth.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

import pytest
from tests.system.fault_program import Options
from tests.system.fault_stage import FaultStage

CHOSEN = os.environ.get("BETIMES_TEST_SWEEP", "41")
STRIDE = 1 if CHOSEN == "all" else int(CHOSEN)
INTO_S = (0.0, 0.0004, 0.0, 0.002)
"""How long after the boundary it dies; by turns, since a commit takes about as long."""

LIFE = Options(for_s=0.6)


def die_at(folder: Path, fatal: int, into_s: float, *, is_wal: bool) -> bool:
    """Have a process die at this boundary, and another go on; False if the first ended by itself."""
    folder.mkdir()
    stage = FaultStage(folder, is_wal=is_wal)
    doomed = Options(for_s=LIFE.for_s, fatal=fatal, into_s=into_s)
    with stage.running("all", doomed) as first:
        code, words = first.ends()
    has_died = code != 0
    if has_died:
        with stage.running("all", LIFE) as second:
            code, words = second.ends()
    assert code == 0
    assert words.endswith("over\n")
    if not has_died:
        assert missing(words, is_wal=is_wal) == set()
    stage.judge()
    return has_died


def missing(words: str, *, is_wal: bool) -> set[str]:
    """Return the kinds of boundaries that a whole life did not pass, so that none is ever lost sight of."""
    kinds = {"BEGIN IMMEDIATE", "COMMIT", "PRAGMA journal_mode", "a close"}
    if is_wal:
        kinds.add("PRAGMA wal_checkpoint")
    expected = {f"{when} {kind}" for kind in kinds for when in ("before", "after")} | {"before an answer"}
    return {each for each in expected if f"passed {each}\n" not in words}


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("is_wal", [True, False], ids=["wal", "rollback-journal"])
def test_p01_p06_p07_p11_p12_p16_p24_case_114_a_process_may_die_at_any_boundary_of_the_store(
    tmp_path: Path, is_wal: bool
) -> None:
    fatal = 0
    for turn in count():
        fatal = 1 + turn * STRIDE
        into_s = INTO_S[turn % len(INTO_S)] if STRIDE > 1 else 0.0
        if not die_at(tmp_path / str(fatal), fatal, into_s, is_wal=is_wal):
            break
    assert fatal > 100, "there are more boundaries than that"
