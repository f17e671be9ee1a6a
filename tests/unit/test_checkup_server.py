"""A checkup of a store on a database server: from what it says of itself to findings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from betimes.core.checkup import checkup
from betimes.core.checkup_server import MANY_DEAD, OF_A_PROCESS, SLOT_BEHIND
from betimes.core.facts import Facts, Machine, Process, Work
from betimes.core.finding import Checkup, Finding, FindingCode, Severity
from betimes.core.situation import WorkerSeen
from betimes.core.vitals import Horizon, ServerVitals, TableVitals, Trouble, Vitals

S = 1_000_000
NOW = 1_800_000_000 * S
OK, NOTE, WARNING, ERROR = Severity.OK, Severity.NOTE, Severity.WARNING, Severity.ERROR
Code = FindingCode

SERVER = ServerVitals(
    version="18.1",
    schema=3,
    newest_schema=3,
    serves=2,
    role="shop",
    fits="worker",
    idle_in_transaction_ms=600_000,
    connections=20,
    max_connections=100,
    clock_ahead_us=-3_000,
    tables=(
        TableVitals(name="betimes_finished", size=3 * 1024**2, live=9, dead=MANY_DEAD),
        TableVitals(name="betimes_job", size=1024**2, live=5, dead=MANY_DEAD - 1),
    ),
)
VITALS = Vitals(kind="postgres", is_durable=True, place="PostgreSQL at db", latest=NOW, server=SERVER)
ALIVE = WorkerSeen(
    id="w", queues=None, lease_us=30 * S, is_alive=True, left_us=29 * S, host="h", pid=7, tasks=()
)
WELL = Work(workers=(ALIVE,))


def facts(**given: Any) -> Facts:
    """Facts in which all is well, but for what is given."""
    machine = Machine(python="3.12.1 (CPython)", zone_data="/usr/share/zoneinfo")
    return Facts(
        **{"now": NOW, "machine": machine, "vitals": VITALS, "work": WELL, "process": Process(), **given}
    )


def with_server(**given: Any) -> Facts:
    return facts(vitals=replace(VITALS, server=replace(SERVER, **given)))


def bad(found: Checkup) -> list[Finding]:
    return [finding for finding in found.findings if finding.severity is not OK]


def only(given: Facts, code: Code, severity: Severity) -> Finding:
    """The one finding that is not OK."""
    (finding,) = bad(checkup(given))
    assert (finding.code, finding.severity) == (code, severity), finding
    assert finding.remedy
    return finding


def texts(given: Facts, code: Code) -> list[str]:
    return [finding.text for finding in checkup(given).findings if finding.code is code]


def test_where_all_is_well_the_findings_say_so() -> None:
    found = checkup(facts())
    assert found.exit_code == 0
    assert [finding.code for finding in found.findings if finding.severity is OK] == [
        Code.STORE, Code.SCHEMA, Code.SERVER, Code.DURABILITY, Code.RIGHTS, Code.CONNECTIONS,
        Code.CLOCK_OFFSET, Code.OLD_TRANSACTION, Code.DEAD_ROWS, Code.TABLE_SIZES, Code.PYTHON,
        Code.ZONE_DATA, Code.CLOCK, Code.WORKERS,
    ]  # fmt: skip
    lines = str(found).splitlines()
    assert lines[0] == "Checkup of PostgreSQL at db at 2027-01-15 08:00:00 UTC: ok"
    assert "ok       The role shop has the rights of a worker." in lines
    assert "ok       20 of 100 connections are taken." in lines
    assert "ok       The server's clock is 3ms behind this machine's." in lines
    assert "ok       The busy tables have 99,999 dead rows." in lines
    sizes = "betimes_finished 3.0 MiB, betimes_job 1.0 MiB"
    assert f"ok       The tables take 4.0 MiB with their indexes: {sizes}, …" in lines


def test_a_store_elsewhere_says_nothing_of_a_server() -> None:
    found = checkup(facts(vitals=Vitals(kind="memory", is_durable=False)))
    assert not {Code.SERVER, Code.RIGHTS} & {finding.code for finding in found.findings}


@pytest.mark.parametrize(
    ("trouble", "severity", "remedy"),
    [
        (Trouble.MISSING, WARNING, "db migrate"),
        (Trouble.UNAVAILABLE, ERROR, "whether the server runs"),
        (Trouble.REFUSED, ERROR, "as the text says"),
        (Trouble.NEWER, ERROR, "or a later one"),
    ],
)
def test_a_server_that_cannot_be_used_is_a_finding(trouble: Trouble, severity: Severity, remedy: str) -> None:
    vitals = replace(VITALS, trouble=trouble, problem="it is so", server=None)
    finding = only(facts(vitals=vitals, work=None, process=None), Code.STORE, severity)
    assert remedy in finding.remedy


def test_a_schema_that_is_not_this_code_s_is_judged_by_whether_it_serves_it() -> None:
    later = only(with_server(schema=4, serves=3), Code.SCHEMA, NOTE)
    assert "version 4; this Betimes uses version 3." in later.text
    assert "not looked at" not in later.text
    older = only(with_server(schema=2), Code.SCHEMA, ERROR)
    assert ("db migrate" in older.remedy, "not looked at" in older.text) == (True, True)
    assert not with_server(schema=4, serves=4).vitals.can_be_looked_at
    assert not with_server(schema=4, serves=0).vitals.can_be_looked_at
    assert not with_server(schema=None).vitals.can_be_looked_at
    assert not with_server(schema=0).vitals.can_be_looked_at
    assert with_server(schema=4, serves=3).vitals.can_be_looked_at
    assert not facts(vitals=replace(VITALS, trouble=Trouble.NEWER)).vitals.can_be_looked_at
    assert (VITALS.schema, VITALS.newest_schema) == (3, 3)
    nowhere = Vitals(kind="memory", is_durable=False)
    assert (nowhere.schema, nowhere.newest_schema, nowhere.can_be_looked_at) == (None, 0, True)


def test_a_server_that_may_lose_what_it_took_is_found() -> None:
    assert "damage the whole database" in only(with_server(fsync=False), Code.DURABILITY, ERROR).text
    pages = only(with_server(full_page_writes=False), Code.DURABILITY, WARNING)
    assert pages.remedy.startswith("Set full_page_writes to on")
    assert "last jobs" in only(with_server(synchronous_commit="off"), Code.DURABILITY, WARNING).text
    assert "is local" in texts(with_server(synchronous_commit="local"), Code.DURABILITY)[0]


def test_a_standby_is_an_error_and_a_server_that_does_not_say_is_not_judged() -> None:
    assert "primary" in only(with_server(is_standby=True), Code.SERVER, ERROR).remedy
    silent = facts(vitals=replace(VITALS, server=ServerVitals(idle_in_transaction_ms=1)))
    codes = {finding.code for finding in checkup(silent).findings}
    assert not codes & {
        Code.SERVER, Code.RIGHTS, Code.CONNECTIONS, Code.CLOCK_OFFSET, Code.OLD_TRANSACTION, Code.DEAD_ROWS,
        Code.TABLE_SIZES,
    }  # fmt: skip


def test_rights_that_are_too_few_are_an_error() -> None:
    lacks = tuple(f"SELECT on betimes_{number}" for number in range(5))
    finding = only(with_server(fits="", lacks=lacks), Code.RIGHTS, ERROR)
    assert "SELECT on betimes_0, SELECT on betimes_1, SELECT on betimes_2 and 2 more" in finding.text
    here = with_server(fits="submitter")
    assert texts(here, Code.RIGHTS) == ["The role shop has the rights of a submitter."]
    working = replace(here, work=replace(WELL, here="w"))
    assert "rights of a submitter" in only(working, Code.RIGHTS, ERROR).text
    nobody = replace(here, work=None)
    assert texts(nobody, Code.RIGHTS) == ["The role shop has the rights of a submitter."]
    for fits in ("owner", "worker"):
        given = replace(with_server(fits=fits), work=replace(WELL, here="w"))
        assert not bad(checkup(given))
    assert texts(with_server(fits="owner"), Code.RIGHTS) == ["The role shop has the rights of the owner."]


@pytest.mark.parametrize(("taken", "severity"), [(79, OK), (80, WARNING), (94, WARNING), (95, ERROR)])
def test_a_server_with_few_connections_left_is_found(taken: int, severity: Severity) -> None:
    given = with_server(connections=taken)
    assert checkup(given).worst is severity
    if severity is not OK:
        assert f"up to {OF_A_PROCESS}" in only(given, Code.CONNECTIONS, severity).remedy


def test_time_limits_that_are_too_short_or_missing_are_found() -> None:
    statement = only(with_server(statement_timeout_ms=1500), Code.TIMEOUTS, WARNING)
    assert (statement.about, "is 1s 500ms" in statement.text) == ("statement_timeout", True)
    assert only(with_server(lock_timeout_ms=19_999), Code.TIMEOUTS, WARNING).about == "lock_timeout"
    assert not bad(checkup(with_server(statement_timeout_ms=20_000, lock_timeout_ms=20_000)))
    assert "for ever" in only(with_server(idle_in_transaction_ms=0), Code.TIMEOUTS, NOTE).text


def test_a_pooler_is_a_note_that_says_what_it_costs() -> None:
    assert "`poll`" in only(with_server(is_pooled=True), Code.POOLER, NOTE).text


@pytest.mark.parametrize(
    ("ahead_us", "severity"),
    [(1_999_999, OK), (2 * S, NOTE), (-2 * S, NOTE), (60 * S, WARNING), (-3600 * S, WARNING)],
)
def test_clocks_that_are_apart_are_found(ahead_us: int, severity: Severity) -> None:
    given = with_server(clock_ahead_us=ahead_us)
    assert checkup(given).worst is severity
    way = "ahead of" if ahead_us > 0 else "behind"
    assert f" {way} this machine's" in texts(given, Code.CLOCK_OFFSET)[0]


@pytest.mark.parametrize(
    ("horizon", "remedy"),
    [
        (Horizon(kind="transaction", name="77", who="ann, psql", age_s=60), "pg_terminate_backend(77)"),
        (Horizon(kind="prepared transaction", name="tx", age_s=9e4), "ROLLBACK PREPARED 'tx'"),
        (
            Horizon(kind="replication slot", name="gone", behind=SLOT_BEHIND),
            "pg_drop_replication_slot('gone')",
        ),
    ],
    ids=["transaction", "prepared", "slot"],
)
def test_what_keeps_dead_rows_is_named(horizon: Horizon, remedy: str) -> None:
    finding = only(with_server(horizon=horizon), Code.OLD_TRANSACTION, WARNING)
    assert remedy in finding.remedy
    assert finding.about == horizon.name
    assert ("(ann, psql)" in finding.text) == bool(horizon.who)
    assert ("1,000,000 transactions behind" in finding.text) == bool(horizon.behind)


def test_a_young_transaction_is_none_and_what_cannot_be_seen_is_said() -> None:
    young = Horizon(kind="transaction", name="77", age_s=59.9)
    assert texts(with_server(horizon=young), Code.OLD_TRANSACTION) == ["No transaction is older than 60 s."]
    (hidden,) = texts(with_server(hidden=3), Code.OLD_TRANSACTION)
    assert "3 session(s) of others cannot be seen: `GRANT pg_read_all_stats TO shop`." in hidden


def test_dead_rows_that_stay_are_found() -> None:
    table = TableVitals(name="betimes_job", live=10, dead=MANY_DEAD)
    finding = only(with_server(tables=(table,)), Code.DEAD_ROWS, WARNING)
    assert finding.text == "betimes_job has 100,000 dead rows beside 10 that live."
    assert "`VACUUM betimes_job`" in finding.remedy
    assert "is off" in only(with_server(autovacuum=False), Code.DEAD_ROWS, WARNING).text
