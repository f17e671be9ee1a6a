"""Roles: the least rights that whoever works with a schema needs, and the SQL that grants them.

The *owner* makes and changes the tables. A *worker* runs jobs, and does all that an operator does. A
*submitter* brings jobs and waits for their results; it cannot claim, cancel, replace or change any, and sees
neither logs nor schedules. A *viewer* looks at everything and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TypeAlias

Rights: TypeAlias = Mapping[str, tuple[str, ...]]
"""By table, view or sequence: what may be done; `UPDATE (name)`: with this column only."""


class Role(StrEnum):
    """Whom rights are for, from the most to the least."""

    OWNER = "owner"
    WORKER = "worker"
    SUBMITTER = "submitter"
    VIEWER = "viewer"


SELECT, INSERT, UPDATE, DELETE = "SELECT", "INSERT", "UPDATE", "DELETE"
MARK = "UPDATE (awaited)"
"""To have a job known as one that others wait for, and to keep it from ending meanwhile."""
LOCK = "UPDATE (forget_at)"
"""To lock rows takes the right to change something of them."""

WORKER: Rights = {
    "betimes_meta": (SELECT, INSERT, UPDATE),
    "betimes_job": (SELECT, INSERT, UPDATE, DELETE),
    "betimes_finished": (SELECT, INSERT, LOCK, DELETE),
    "betimes_key": (SELECT, INSERT, UPDATE, DELETE),
    "betimes_dependency": (SELECT, INSERT, DELETE),
    "betimes_unsettled": (SELECT, INSERT, "UPDATE (ended_at)", DELETE),
    "betimes_worker": (SELECT, INSERT, UPDATE, DELETE),
    "betimes_worker_known": (SELECT, INSERT, UPDATE, DELETE),
    "betimes_paused_queue": (SELECT, INSERT, DELETE),
    "betimes_schedule": (SELECT, INSERT, UPDATE, DELETE),
    "betimes_fire": (SELECT, INSERT, DELETE),
    "betimes_rule": (SELECT, INSERT, UPDATE),
    "betimes_gate": (SELECT, INSERT, UPDATE, DELETE),
    "betimes_permit": (SELECT, INSERT, UPDATE, DELETE),
    "betimes_line": (SELECT, INSERT, UPDATE, DELETE),
    "betimes_tenant": (SELECT, INSERT, UPDATE, DELETE),
    "betimes_log": (SELECT, INSERT, DELETE),
    "betimes_stirred": (SELECT, INSERT, DELETE),
    "betimes_live": (SELECT, UPDATE),
    "betimes_ended": (SELECT, UPDATE),
    "betimes_plan": (SELECT, UPDATE),
    "betimes_number": ("USAGE",),
}
"""To lock a row that a view shows takes the right to change it through that view."""

SUBMITTER: Rights = {
    "betimes_meta": (SELECT,),
    "betimes_job": (SELECT, INSERT, MARK),
    "betimes_finished": (SELECT,),
    "betimes_key": (SELECT, INSERT, UPDATE),
    "betimes_dependency": (INSERT,),
    "betimes_rule": (SELECT,),
    "betimes_stirred": (INSERT,),
    "betimes_live": (SELECT, MARK),
    "betimes_ended": (SELECT, MARK),
    "betimes_number": ("USAGE",),
}

VIEWER: Rights = {name: (SELECT,) for name in WORKER if name != "betimes_number"}

RIGHTS: Mapping[Role, Rights] = {Role.WORKER: WORKER, Role.SUBMITTER: SUBMITTER, Role.VIEWER: VIEWER}

PURPOSES = {
    Role.OWNER: "makes and changes the tables: for `betimes db migrate`, and nobody else.",
    Role.WORKER: "runs jobs and fires schedules; operators need it, too, to pause, retry, cancel and prune.",
    Role.SUBMITTER: "submits jobs, and reads what became of them; claims, cancels and changes none.",
    Role.VIEWER: "looks at everything (`betimes job list`, `explain`, `doctor`), and changes nothing.",
}


def role_name(schema: str, role: Role) -> str:
    """Return the name of a group role; login roles become its members."""
    return f"{schema}_{role.value}"


def grants(schema: str) -> str:
    """Return the SQL that makes the four roles and gives them the least rights that each needs."""
    return "\n".join(_lines(schema))


def _lines(schema: str) -> Iterator[str]:
    owner = role_name(schema, Role.OWNER)
    yield f"-- The roles of the schema {schema}, each with the least rights that it needs: groups, which"
    yield "-- nobody logs in as. Run it as a superuser, or as who may create roles and owns the schema, after"
    yield "-- `betimes db migrate`; then make each login role a member of one of them, such as:"
    yield f"--     CREATE ROLE shop LOGIN PASSWORD '…' IN ROLE {role_name(schema, Role.WORKER)};"
    yield "-- After a later `betimes db migrate`, run it again: it can be run any number of times."
    yield "BEGIN;"
    for role in Role:
        name = role_name(schema, role)
        yield f"\n-- {name} {PURPOSES[role]}"
        yield f"DO $$ BEGIN CREATE ROLE {name} NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;"
        if role is Role.OWNER:
            yield from _given_to_owner(schema, owner)
        else:
            yield f"GRANT USAGE ON SCHEMA {schema} TO {name};"
            for thing, kinds in RIGHTS[role].items():
                what = "SEQUENCE" if kinds == ("USAGE",) else "TABLE"
                yield f"GRANT {', '.join(kinds)} ON {what} {schema}.{thing} TO {name};"
    yield "\nCOMMIT;"


def _given_to_owner(schema: str, owner: str) -> Iterator[str]:
    yield f"ALTER SCHEMA {schema} OWNER TO {owner};"
    for thing in WORKER:
        kind = "SEQUENCE" if thing == "betimes_number" else "TABLE"
        yield f"ALTER {kind} {schema}.{thing} OWNER TO {owner};"


def needs(role: Role) -> list[tuple[str, str, str | None]]:
    """Return what a role needs, right by right: its kind, the thing, and the column if it is for one."""
    found: list[tuple[str, str, str | None]] = []
    for thing, kinds in RIGHTS[role].items():
        for kind in kinds:
            name, _, column = kind.partition(" (")
            found.append((name, thing, column.rstrip(")") or None))
    return found
