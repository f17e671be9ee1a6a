"""What a checkup says of a database server: whether it keeps what it takes, and has room for more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from betimes.core.facts import Facts
from betimes.core.finding import Finding, FindingCode, Severity
from betimes.core.vitals import Horizon, ServerVitals, Trouble
from betimes.core.wording import listed, sized, span

MANY_CONNECTIONS, MOST_CONNECTIONS = 0.8, 0.95
"""Which share of the connections, once taken, is a warning, and which an error."""
OF_A_PROCESS = 8
"""The most connections that one process opens for a store."""
SHORT_TIMEOUT_MS = 20_000
"""A longer limit never acts: a statement that takes so long is given up here."""
OLD_S = 60.0
"""A transaction that has been open for longer is old."""
SLOT_BEHIND = 1_000_000
"""A replication slot that lags behind by more transactions holds up too much."""
MANY_DEAD = 100_000
"""So many dead rows in a busy table slow claims down to a fraction."""
CLOCKS_APART_US, CLOCKS_FAR_APART_US = 2_000_000, 60_000_000
"""How far apart two clocks are for a note, and for a warning."""
SHOWN = 3

HOT = frozenset(
    f"betimes_{name}"
    for name in ("job", "line", "stirred", "gate", "permit", "worker", "meta", "dependency", "schedule")
)
"""The tables whose rows come and go."""

SERVER_REMEDIES: Mapping[Trouble, str] = {
    Trouble.MISSING: "The first scheduler that opens it makes it, and so does `betimes db migrate`; are "
    "these the database and schema that the workers use?",
    Trouble.UNAVAILABLE: "See whether the server runs, lets this role in and has connections left; work goes "
    "on by itself once it can be reached.",
    Trouble.REFUSED: "Nothing was changed; do as the text says.",
}

OK, NOTE, WARNING, ERROR = Severity.OK, Severity.NOTE, Severity.WARNING, Severity.ERROR


def server(found: ServerVitals, _facts: Facts) -> Iterable[Finding]:
    """Name the server's version."""
    if not found.version:
        return
    if found.is_standby:
        yield Finding(
            code=FindingCode.SERVER,
            severity=ERROR,
            text=f"PostgreSQL {found.version} is a standby, to which nothing can be written.",
            remedy="Name the primary in the URL, or several hosts with target_session_attrs=read-write.",
        )
        return
    yield Finding(code=FindingCode.SERVER, severity=OK, text=f"PostgreSQL {found.version}.")


def durability(found: ServerVitals, _facts: Facts) -> Iterable[Finding]:
    """See that what was acknowledged is on the server's disk."""
    if not found.fsync:
        severity, text = ERROR, "fsync is off: a crash of the server's machine can damage the whole database"
    elif not found.full_page_writes:
        severity, text = (
            WARNING,
            "full_page_writes is off: a power cut can leave pages of tables half written",
        )
    elif found.synchronous_commit == "off":
        severity, text = WARNING, "synchronous_commit is off: a crash of the server can lose the last jobs"
    else:
        how = f"synchronous_commit is {found.synchronous_commit}"
        text = f"Commits are on the server's disk when they return: {how}."
        yield Finding(code=FindingCode.DURABILITY, severity=OK, text=text)
        return
    name = text.partition(" ")[0]
    yield Finding(
        code=FindingCode.DURABILITY,
        severity=severity,
        text=f"{text}.",
        remedy=f"Set {name} to on, for the server or (synchronous_commit) for this role; nothing that was "
        "acknowledged is lost then.",
    )


def rights(found: ServerVitals, facts: Facts) -> Iterable[Finding]:
    """Say what the role may do."""
    if not found.fits and not found.lacks:
        return  # nothing is there to have rights to
    if not found.fits:
        yield Finding(
            code=FindingCode.RIGHTS,
            severity=ERROR,
            text=f"The role {found.role} may not even look at everything: it lacks "
            f"{listed(found.lacks, most=SHOWN)}.",
            remedy="As the owner: `betimes db sql --roles` prints what each role needs.",
        )
    elif facts.work is not None and facts.work.here is not None and found.fits not in ("owner", "worker"):
        yield Finding(
            code=FindingCode.RIGHTS,
            severity=ERROR,
            text=f"A worker runs here with the role {found.role}, which has the rights of a {found.fits}.",
            remedy="As the owner: `betimes db sql --roles` prints what a worker needs.",
        )
    else:
        text = (
            f"The role {found.role} has the rights of {'the' if found.fits == 'owner' else 'a'} {found.fits}."
        )
        yield Finding(code=FindingCode.RIGHTS, severity=OK, text=text)


def connections(found: ServerVitals, _facts: Facts) -> Iterable[Finding]:
    """See that the server has connections left."""
    if not found.max_connections:
        return
    share = found.connections / found.max_connections
    text = f"{found.connections} of {found.max_connections} connections are taken."
    if share < MANY_CONNECTIONS:
        yield Finding(code=FindingCode.CONNECTIONS, severity=OK, text=text)
        return
    yield Finding(
        code=FindingCode.CONNECTIONS,
        severity=ERROR if share >= MOST_CONNECTIONS else WARNING,
        text=text,
        remedy=f"Each process takes up to {OF_A_PROCESS}: raise max_connections, run fewer processes, or put "
        "a pooler between.",
    )


def timeouts(found: ServerVitals, _facts: Facts) -> Iterable[Finding]:
    """See that the server leaves statements the time that they need, and transactions not all of it."""
    for name, limit_ms, harm in (
        ("statement_timeout", found.statement_timeout_ms, "what takes longer, as pruning may, fails"),
        ("lock_timeout", found.lock_timeout_ms, "a submit that waits longer for a key fails"),
    ):
        if 0 < limit_ms < SHORT_TIMEOUT_MS:
            yield Finding(
                code=FindingCode.TIMEOUTS,
                severity=WARNING,
                text=f"{name} of this role is {span(limit_ms * 1000)}: {harm}.",
                remedy=f"`ALTER ROLE … SET {name} = 0`: what takes longer than 20 s is given up here anyway.",
                about=name,
            )
    if not found.idle_in_transaction_ms:
        yield Finding(
            code=FindingCode.TIMEOUTS,
            severity=NOTE,
            text="idle_in_transaction_session_timeout is 0: a transaction that somebody forgets to end holds "
            "its locks, and dead rows, for ever.",
            remedy="Set it for the roles of people and applications, to some minutes; ours bring their own.",
        )


def pooler(found: ServerVitals, _facts: Facts) -> Iterable[Finding]:
    """Say what a pooler costs."""
    if found.is_pooled:
        yield Finding(
            code=FindingCode.POOLER,
            severity=NOTE,
            text="A pooler stands between: workers here hear nothing of others' new jobs, and find them when "
            "they look, every `poll`.",
            remedy="Name the server itself in the workers' URL if they should hear at once.",
        )


def clock_offset(found: ServerVitals, _facts: Facts) -> Iterable[Finding]:
    """Compare the clocks."""
    ahead = found.clock_ahead_us
    if ahead is None:
        return
    text = f"The server's clock is {span(ahead)} {'ahead of' if ahead >= 0 else 'behind'} this machine's"
    if abs(ahead) < CLOCKS_APART_US:
        yield Finding(code=FindingCode.CLOCK_OFFSET, severity=OK, text=f"{text}.")
        return
    yield Finding(
        code=FindingCode.CLOCK_OFFSET,
        severity=WARNING if abs(ahead) >= CLOCKS_FAR_APART_US else NOTE,
        text=f"{text}; jobs go by the server's.",
        remedy="Keep both right (chrony, systemd-timesyncd): logs and instants reckoned here differ.",
    )


def old_transaction(found: ServerVitals, _facts: Facts) -> Iterable[Finding]:
    """Name what keeps dead rows from being cleared away."""
    horizon = found.horizon
    if horizon is not None and (horizon.age_s >= OLD_S or horizon.behind >= SLOT_BEHIND):
        yield _old(horizon)
    elif found.version:
        text = f"No transaction is older than {OLD_S:.0f} s."
        if found.hidden:
            text += (
                f" {found.hidden} session(s) of others cannot be seen: "
                f"`GRANT pg_read_all_stats TO {found.role}`."
            )
        yield Finding(code=FindingCode.OLD_TRANSACTION, severity=OK, text=text)


def _old(horizon: Horizon) -> Finding:
    who = f" ({horizon.who})" if horizon.who else ""
    if horizon.behind:
        how = f"lags {horizon.behind:,} transactions behind"
    else:
        how = f"has been open for {span(round(horizon.age_s * 1_000_000))}"
    remedy = {
        "transaction": f"`SELECT pg_terminate_backend({horizon.name})`, if it is not meant; long reports "
        "belong on a replica.",
        "prepared transaction": f"`ROLLBACK PREPARED '{horizon.name}'`, or commit it.",
    }.get(horizon.kind, f"See what reads it, or `SELECT pg_drop_replication_slot('{horizon.name}')`.")
    return Finding(
        code=FindingCode.OLD_TRANSACTION,
        severity=WARNING,
        text=f"The {horizon.kind} {horizon.name}{who} {how}: dead rows cannot be cleared away meanwhile, and "
        "claims become slower.",
        remedy=remedy,
        about=horizon.name,
    )


def dead_rows(found: ServerVitals, _facts: Facts) -> Iterable[Finding]:
    """See that dead rows are cleared away."""
    if not found.autovacuum:
        yield Finding(
            code=FindingCode.DEAD_ROWS,
            severity=WARNING,
            text="autovacuum (or track_counts) is off: dead rows stay, and claims become slower and slower.",
            remedy="Set both to on.",
        )
    many = [each for each in found.tables if each.name in HOT and each.dead >= MANY_DEAD]
    for table in many:
        yield Finding(
            code=FindingCode.DEAD_ROWS,
            severity=WARNING,
            text=f"{table.name} has {table.dead:,} dead rows beside {table.live:,} that live.",
            remedy="See what holds them (an old transaction), and whether autovacuum keeps up; "
            f"`VACUUM {table.name}` clears them away at once.",
            about=table.name,
        )
    if found.tables and found.autovacuum and not many:
        dead = sum(each.dead for each in found.tables if each.name in HOT)
        text = f"The busy tables have {dead:,} dead rows."
        yield Finding(code=FindingCode.DEAD_ROWS, severity=OK, text=text)


def table_sizes(found: ServerVitals, _facts: Facts) -> Iterable[Finding]:
    """Say how large the tables are."""
    if not found.tables:
        return
    whole = sized(sum(each.size for each in found.tables))
    largest = ", ".join(f"{each.name} {sized(each.size)}" for each in found.tables[:SHOWN])
    text = f"The tables take {whole} with their indexes: {largest}, …"
    yield Finding(code=FindingCode.TABLE_SIZES, severity=OK, text=text)


_ALL: tuple[Callable[[ServerVitals, Facts], Iterable[Finding]], ...] = (
    server,
    durability,
    rights,
    connections,
    timeouts,
    pooler,
    clock_offset,
    old_transaction,
    dead_rows,
    table_sizes,
)


def of_server(facts: Facts) -> Iterable[Finding]:
    """Say all of this, if the store is on a server that lets us in."""
    found = facts.vitals.server
    if found is not None:
        for check in _ALL:
            yield from check(found, facts)


SERVER_CHECKS: tuple[Callable[[Facts], Iterable[Finding]], ...] = (of_server,)
