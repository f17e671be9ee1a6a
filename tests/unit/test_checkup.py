"""A checkup: from facts to findings, each with its severity and remedy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from betimes.core.checkup import checkup
from betimes.core.facts import (
    Facts,
    Machine,
    Poisoned,
    Process,
    QueueFacts,
    ScheduleFacts,
    Work,
)
from betimes.core.finding import Checkup, Finding, FindingCode, Severity
from betimes.core.limits import GateKind, GateTerms, GateView
from betimes.core.queue_view import Pause
from betimes.core.situation import WorkerSeen
from betimes.core.vitals import FileVitals, Trouble, Vitals

S = 1_000_000
NOW = 1_800_000_000 * S
MINUTE, HOUR = 60 * S, 3_600 * S
GIB = 1024**3
OK, NOTE, WARNING, ERROR = Severity.OK, Severity.NOTE, Severity.WARNING, Severity.ERROR
Code = FindingCode

MACHINE = Machine(python="3.12.1 (CPython)", zone_data="/usr/share/zoneinfo", local_zone="Europe/Berlin")
FILE = FileVitals(
    size=GIB, free=9 * GIB, sqlite="3.51.3", journal_mode="wal", schema=4, newest_schema=4, damage=()
)
VITALS = Vitals(
    kind="sqlite", is_durable=True, place="/x/jobs.db", strategy="priority", latest=NOW, file=FILE
)
ALIVE = WorkerSeen(
    id="w", queues=None, lease_us=30 * S, is_alive=True, left_us=29 * S, host="h", pid=7, tasks=("t",)
)
WELL = Work(
    workers=(ALIVE,),
    held={"w": 2},
    queues=(QueueFacts(name="q", ready=1, running=2, oldest_at=NOW - S),),
    schedules=(ScheduleFacts(id="s", task="t", next_fire_at=NOW + HOUR),),
)


def facts(**given: Any) -> Facts:
    """Facts in which all is well, but for what is given."""
    return Facts(
        **{"now": NOW, "machine": MACHINE, "vitals": VITALS, "work": WELL, "process": Process(), **given}
    )


def with_file(**given: Any) -> Facts:
    return facts(vitals=replace(VITALS, file=replace(FILE, **given)))


def with_work(**given: Any) -> Facts:
    return facts(work=replace(WELL, **given))


def bad(found: Checkup) -> list[Finding]:
    return [finding for finding in found.findings if finding.severity is not OK]


def only(given: Facts, code: Code, severity: Severity) -> Finding:
    """The one finding that is not OK."""
    (finding,) = bad(checkup(given))
    assert (finding.code, finding.severity) == (code, severity), finding
    assert finding.remedy or severity is NOTE
    return finding


def text_of(given: Facts, code: Code) -> str:
    return next(str(finding) for finding in checkup(given).findings if finding.code is code)


def test_where_all_is_well_the_findings_say_so_and_the_exit_code_is_zero() -> None:
    found = checkup(facts())
    assert (found.worst, found.exit_code, found.codes) == (OK, 0, frozenset())
    assert [finding.code for finding in found.findings] == [
        Code.STORE, Code.SQLITE, Code.JOURNAL, Code.SCHEMA, Code.PERMISSIONS, Code.FREE_SPACE, Code.INTEGRITY,
        Code.PYTHON, Code.ZONE_DATA, Code.CLOCK, Code.WORKERS, Code.QUEUE_LATE, Code.SCHEDULES,
    ]  # fmt: skip
    lines = str(found).splitlines()
    assert lines[0] == "Checkup of sqlite /x/jobs.db at 2027-01-15 08:00:00 UTC: ok"
    assert "ok       Jobs are kept in /x/jobs.db (1.0 GiB)." in lines
    assert "ok       1 worker(s) run: w (h, pid 7) with 2 job(s)." in lines
    assert "ok       Queue 'q': 1 job(s) ready, the oldest for 1s." in lines


def test_the_worst_comes_first_and_gives_the_exit_code() -> None:
    found = checkup(
        facts(
            vitals=replace(VITALS, file=replace(FILE, mode=0o644, free=1)),
            work=replace(WELL, parked={"task:gone": 3}),
        )
    )
    assert [finding.severity for finding in bad(found)] == [ERROR, WARNING, NOTE]
    assert (found.worst, found.exit_code) == (ERROR, 2)
    assert [severity.exit_code for severity in Severity] == [0, 0, 1, 2]
    assert max(Severity) is ERROR
    assert str(bad(found)[0]).splitlines()[0] == "error    The disk has 1 B left."


# the store


@pytest.mark.parametrize(
    ("trouble", "severity"),
    [
        (Trouble.MISSING, WARNING),
        (Trouble.UNAVAILABLE, ERROR),
        (Trouble.REPLACED, ERROR),
        (Trouble.LEFT_OPEN, WARNING),
        (Trouble.REFUSED, ERROR),
        (Trouble.NEWER, ERROR),
    ],
)
def test_a_store_that_cannot_be_used_is_a_finding(trouble: Trouble, severity: Severity) -> None:
    vitals = Vitals(
        kind="sqlite", is_durable=True, place="/x", trouble=trouble, problem="/x is odd", file=FILE
    )
    finding = only(facts(vitals=vitals, work=None, process=None), Code.STORE, severity)
    assert finding.text == "/x is odd."
    assert not vitals.can_be_looked_at


def test_a_store_in_memory_is_a_note_and_one_elsewhere_is_named() -> None:
    only(facts(vitals=Vitals(kind="memory", is_durable=False)), Code.STORE, NOTE)
    assert checkup(facts(vitals=Vitals(kind="memory", is_durable=False))).store == "the memory store"
    elsewhere = Vitals(kind="server", is_durable=True, place="db.example")
    assert text_of(facts(vitals=elsewhere), Code.STORE) == "ok       Jobs are kept in db.example."
    assert elsewhere.can_be_looked_at


def test_sqlite_s_fault_is_named_with_what_keeps_it_away() -> None:
    given = with_file(has_reset_fault=True)
    assert "can lose commits in WAL mode" in text_of(given, Code.SQLITE)
    assert "no commit overlaps a checkpoint" in text_of(given, Code.JOURNAL)
    assert bad(checkup(given)) == []
    assert "others commit to the file too" in text_of(
        with_file(journal_mode="delete", is_shared=True), Code.JOURNAL
    )
    assert bad(checkup(with_file(journal_mode="delete"))) == []


@pytest.mark.parametrize(
    "given",
    [
        {"is_shared": True, "has_reset_fault": True},
        {"journal_mode": "memory"},
        {"journal_mode": "off"},
    ],
)
def test_a_journal_mode_that_is_not_safe_is_an_error(given: dict[str, Any]) -> None:
    only(with_file(**given), Code.JOURNAL, ERROR)


def test_a_file_that_could_not_be_read_says_nothing_of_its_journal() -> None:
    codes = {finding.code for finding in checkup(with_file(journal_mode="", schema=None)).findings}
    assert Code.SQLITE in codes
    assert not codes & {Code.JOURNAL, Code.SCHEMA}


def test_an_older_schema_is_a_note() -> None:
    finding = only(facts(vitals=replace(VITALS, file=replace(FILE, schema=2)), work=None), Code.SCHEMA, NOTE)
    assert "version 2; this Betimes uses version 4" in finding.text


def test_another_strategy_is_an_error_and_none_in_mind_is_none() -> None:
    only(facts(strategy="aging"), Code.STRATEGY, ERROR)
    assert bad(checkup(facts(strategy="priority"))) == []
    assert bad(checkup(facts(strategy=None))) == []
    assert bad(checkup(facts(strategy="aging", vitals=replace(VITALS, strategy=None)))) == []


@pytest.mark.parametrize(
    ("given", "severity"),
    [
        ({"mode": 0o640}, NOTE),
        ({"mode": 0o604}, NOTE),
        ({"mode": 0o660}, WARNING),
        ({"mode": 0o602}, WARNING),
        ({"is_writable": False}, ERROR),
    ],
)
def test_who_may_read_and_write_the_file_is_looked_at(given: dict[str, Any], severity: Severity) -> None:
    only(with_file(**given), Code.PERMISSIONS, severity)


@pytest.mark.parametrize(
    ("given", "severity"),
    [
        ({"free": 100 * 1024**2}, WARNING),
        ({"free": 1024**2}, ERROR),
        ({"free": 9 * GIB, "is_full": True}, ERROR),
    ],
)
def test_a_disk_without_room_is_found(given: dict[str, Any], severity: Severity) -> None:
    only(with_file(**given), Code.FREE_SPACE, severity)


def test_a_disk_that_does_not_say_is_not_judged() -> None:
    assert Code.FREE_SPACE not in {each.code for each in checkup(with_file(free=None)).findings}


def test_a_log_that_is_not_cut_is_found() -> None:
    assert "1.0 GiB" in only(with_file(log_size=GIB), Code.LOG_SIZE, WARNING).text


def test_damage_is_an_error_and_no_check_no_finding() -> None:
    assert "row 3 missing" in only(with_file(damage=("row 3 missing",)), Code.INTEGRITY, ERROR).text
    assert Code.INTEGRITY not in {each.code for each in checkup(with_file(damage=None)).findings}


# the machine


def test_missing_zone_data_is_a_warning() -> None:
    only(facts(machine=replace(MACHINE, zone_problem="No such file")), Code.ZONE_DATA, WARNING)
    plain = facts(machine=replace(MACHINE, local_zone=""))
    assert text_of(plain, Code.ZONE_DATA) == "ok       Time zones are read from /usr/share/zoneinfo."


def test_a_clock_that_was_set_back_or_never_set_is_found() -> None:
    ahead = replace(VITALS, latest=NOW + 2 * MINUTE)
    assert "set back" in only(facts(vitals=ahead), Code.CLOCK, WARNING).text
    assert bad(checkup(facts(vitals=replace(VITALS, latest=NOW + S)))) == []
    assert bad(checkup(facts(vitals=replace(VITALS, latest=None)))) == []
    only(facts(now=S, vitals=replace(VITALS, latest=None), work=None), Code.CLOCK, ERROR)


# the work


def test_case_147_jobs_without_a_worker_are_an_error() -> None:
    only(with_work(workers=(), schedules=()), Code.WORKERS, ERROR)
    only(with_work(workers=(), queues=()), Code.WORKERS, ERROR)
    only(with_work(workers=(), queues=(), schedules=()), Code.WORKERS, NOTE)
    assert bad(checkup(with_work(workers=(replace(ALIVE, is_alive=False),), here="w"))) == []


@pytest.mark.parametrize(
    ("worker", "held", "severity", "words"),
    [
        (replace(ALIVE, id="x", is_alive=False, left_us=0), 1, WARNING, "its lease is over; it holds 1 job"),
        (replace(ALIVE, id="x", is_alive=False, left_us=0), 0, NOTE, "its lease is over; it holds 0 job"),
        (replace(ALIVE, id="x", is_gone=True), 3, WARNING, "its process has ended; it holds 3 job"),
        (
            replace(ALIVE, id="x", left_us=5 * S),
            2,
            WARNING,
            "is silent, with 2 job(s); its lease is over in 5s",
        ),
    ],
)
def test_dead_and_silent_workers_are_named(
    worker: WorkerSeen, held: int, severity: Severity, words: str
) -> None:
    finding = only(with_work(workers=(ALIVE, worker), held={"x": held}), Code.DEAD_WORKER, severity)
    assert finding.about == "x"
    assert words in finding.text


def test_the_worker_of_this_process_is_never_called_silent() -> None:
    assert bad(checkup(with_work(workers=(replace(ALIVE, left_us=S),), here="w"))) == []


@pytest.mark.parametrize(
    ("age", "severity"), [(59 * S, None), (2 * MINUTE, WARNING), (2 * HOUR, ERROR), (-MINUTE, None)]
)
def test_case_147_the_oldest_ready_job_of_each_queue_is_looked_at(
    age: int, severity: Severity | None
) -> None:
    given = with_work(queues=(QueueFacts(name="q", ready=9, oldest_at=NOW - age),))
    if severity is None:
        assert bad(checkup(given)) == []
    else:
        assert only(given, Code.QUEUE_LATE, severity).about == "q"


def test_a_queue_that_no_worker_serves_is_found() -> None:
    narrow = (replace(ALIVE, queues=("other",)),)
    only(with_work(workers=narrow), Code.QUEUE_NOT_SERVED, ERROR)
    only(with_work(workers=narrow, queues=(QueueFacts(name="q", delayed=1),)), Code.QUEUE_NOT_SERVED, WARNING)
    assert bad(checkup(with_work(workers=narrow, queues=(QueueFacts(name="q", running=1),)))) == []


def test_a_paused_queue_is_a_note_that_says_since_when_and_by_whom() -> None:
    queue = QueueFacts(name="q", ready=2, blocked=1, oldest_at=0, pause=Pause(at=NOW - HOUR, by="ops"))
    finding = only(with_work(queues=(queue,)), Code.QUEUE_PAUSED, NOTE)
    assert finding.text == (
        "Queue 'q' is paused since 2027-01-15 07:00:00 UTC (1h ago), by ops; 3 job(s) wait in it."
    )
    finding = only(with_work(queues=(replace(queue, pause=Pause()),)), Code.QUEUE_PAUSED, NOTE)
    assert finding.text == "Queue 'q' is paused; 3 job(s) wait in it."


def test_what_no_worker_can_run_is_named() -> None:
    assert only(with_work(parked={"task:gone": 3}), Code.TASK_UNKNOWN, WARNING).about == "gone"
    assert only(with_work(parked={"lane:process": 1}), Code.PUT_ASIDE, WARNING).about == "process"
    assert only(with_work(parked={"odd": 1}), Code.PUT_ASIDE, WARNING).about == "odd"


def test_a_schedule_of_a_task_that_no_worker_knows_is_named() -> None:
    later = tuple(ScheduleFacts(id=name, task="gone", next_fire_at=NOW + HOUR) for name in "ab")
    finding = only(with_work(schedules=later), Code.TASK_UNKNOWN, WARNING)
    assert "schedule(s) a and b would run it" in finding.text
    silent = (ALIVE, replace(ALIVE, id="x", tasks=None))
    assert bad(checkup(with_work(schedules=later, workers=silent))) == []
    both = with_work(schedules=later, parked={"task:gone": 1})
    only(both, Code.TASK_UNKNOWN, WARNING)


def test_poison_pills_are_named_by_task() -> None:
    poisoned = tuple(Poisoned(job_id=f"j{n}", task="t", at=NOW - MINUTE) for n in range(2))
    finding = only(with_work(poisoned=poisoned), Code.POISON_PILL, WARNING)
    assert "j0 (2027-01-15 07:59:00 UTC (1m ago)) and j1" in finding.text


def test_an_open_circuit_is_named() -> None:
    terms = GateTerms(kind=GateKind.BREAKER, name="t", every_us=S)
    view = GateView(key="breaker:t", terms=terms, full_at=NOW + S, tripped_at=NOW, waiting=4)
    finding = only(with_work(open_circuits=(view,)), Code.CIRCUIT_OPEN, WARNING)
    assert finding.text == "The circuit of task 't' is open; 4 job(s) wait there."


@pytest.mark.parametrize(
    ("schedule", "code", "severity"),
    [
        (ScheduleFacts(id="s", task="t", paused=True, error="it raised."), Code.SCHEDULE_BROKEN, ERROR),
        (ScheduleFacts(id="s", task="t", next_fire_at=NOW - 2 * MINUTE), Code.SCHEDULE_LATE, ERROR),
        (ScheduleFacts(id="s", task="t", next_fire_at=NOW - HOUR, paused=True), Code.SCHEDULE_PAUSED, NOTE),
    ],
)
def test_schedules_that_do_not_fire_are_found(
    schedule: ScheduleFacts, code: Code, severity: Severity
) -> None:
    finding = only(with_work(schedules=(schedule,)), code, severity)
    assert ".." not in finding.text
    assert bad(checkup(with_work(schedules=(ScheduleFacts(id="s", task="t"),)))) == []


# this process


@pytest.mark.parametrize(
    ("given", "code", "severity"),
    [
        ({"stalled_s": 11.0}, Code.NOT_WORKING, ERROR),
        ({"stuck": ("a",), "slots": 2}, Code.SLOTS_STUCK, WARNING),
        ({"stuck": ("a", "b"), "slots": 2}, Code.SLOTS_STUCK, ERROR),
        ({"deadlocked": 2}, Code.SLOTS_DEADLOCKED, ERROR),
        ({"store_errors": 1}, Code.STORE_ERRORS, NOTE),
        ({"leases_lost": 1}, Code.LEASES_LOST, WARNING),
        ({"loop_stalls": 1, "longest_stall_s": 2.5}, Code.LOOP_STALLS, WARNING),
    ],
)
def test_what_has_gone_wrong_in_this_process_is_told(
    given: dict[str, Any], code: Code, severity: Severity
) -> None:
    only(facts(process=Process(**given)), code, severity)


def test_a_worker_that_waits_for_the_store_for_a_moment_works() -> None:
    assert bad(checkup(facts(process=Process(stalled_s=3.0)))) == []
    assert bad(checkup(facts(process=None))) == []
