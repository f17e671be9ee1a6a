"""What a checkup says of the store itself: whether it can be used, and of its file."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from betimes.core.checkup_server import SERVER_REMEDIES
from betimes.core.facts import Facts
from betimes.core.finding import Finding, FindingCode, Severity
from betimes.core.vitals import FileVitals, Trouble
from betimes.core.wording import sized

LITTLE_SPACE = 512 * 1024 * 1024
NO_SPACE = 16 * 1024 * 1024
"""How much free space is a warning, and how little an error."""

LARGE_LOG = 256 * 1024 * 1024
"""A write-ahead log that is larger than this has not been cut for long."""

_OTHERS_READ, _OTHERS_WRITE = 0o044, 0o022

_TROUBLES = {
    Trouble.MISSING: (
        Severity.WARNING,  # as often as not the path is wrong, and a monitor would be content for ever
        "The first scheduler that opens it makes it; is it the path that the workers use?",
    ),
    Trouble.UNAVAILABLE: (Severity.ERROR, "See what holds it (`fuser FILE`), and who may open it."),
    Trouble.REPLACED: (
        Severity.ERROR,
        "Put the file back in its place, or stop this process, and start it again on what is there now.",
    ),
    Trouble.LEFT_OPEN: (Severity.WARNING, "The next scheduler that opens it rolls it back: start one."),
    Trouble.REFUSED: (Severity.ERROR, "Nothing was changed; do as the text says, and keep a copy of it."),
    Trouble.NEWER: (Severity.ERROR, "Use the version of Betimes that the workers use, or a later one."),
}


def store(facts: Facts) -> Iterable[Finding]:
    """Name the store, or say why it cannot be used."""
    vitals = facts.vitals
    if vitals.trouble is not None:
        severity, remedy = _TROUBLES[vitals.trouble]
        if vitals.kind == "postgres":
            remedy = SERVER_REMEDIES.get(vitals.trouble, remedy)
        yield Finding(code=FindingCode.STORE, severity=severity, text=f"{vitals.problem}.", remedy=remedy)
    elif vitals.file is not None:
        text = f"Jobs are kept in {vitals.place} ({sized(vitals.file.size)})."
        yield Finding(code=FindingCode.STORE, severity=Severity.OK, text=text)
    elif vitals.is_durable:
        text = f"Jobs are kept in {vitals.place or vitals.kind}."
        yield Finding(code=FindingCode.STORE, severity=Severity.OK, text=text)
    else:
        yield Finding(
            code=FindingCode.STORE,
            severity=Severity.NOTE,
            text="Jobs are kept in this process's memory, and are gone with it.",
            remedy="To keep them, name a file: Scheduler('jobs.db').",
        )


def sqlite(facts: Facts) -> Iterable[Finding]:
    """Name SQLite's version, and how commits are kept safe with it."""
    file = facts.vitals.file
    if file is None or not file.sqlite:
        return
    fault = ", which can lose commits in WAL mode if left to itself" if file.has_reset_fault else ""
    yield Finding(code=FindingCode.SQLITE, severity=Severity.OK, text=f"SQLite {file.sqlite}{fault}.")
    if file.journal_mode:
        yield _journal(file)


def _journal(file: FileVitals) -> Finding:
    mode, is_wal = file.journal_mode, file.journal_mode == "wal"
    if is_wal and file.is_shared and file.has_reset_fault:
        return Finding(
            code=FindingCode.JOURNAL,
            severity=Severity.ERROR,
            text=f"Others commit to the file too, and in WAL mode SQLite {file.sqlite} can damage it.",
            remedy="Close all that use it and run `PRAGMA journal_mode = DELETE` on it; or use a file of its "
            "own, or SQLite 3.51.3 or later.",
        )
    if mode in ("memory", "off"):
        return Finding(
            code=FindingCode.JOURNAL,
            severity=Severity.ERROR,
            text=f"The journal mode is {mode}: a crash can damage the file.",
            remedy="Run `PRAGMA journal_mode = DELETE` on it with everything else closed.",
        )
    why = "every commit is on the disk before it is acknowledged"
    if is_wal and file.has_reset_fault:
        why += "; no commit overlaps a checkpoint, which keeps SQLite's fault away"
    elif not is_wal and file.is_shared:
        why += "; others commit to the file too, and its mode is left as it is"
    return Finding(code=FindingCode.JOURNAL, severity=Severity.OK, text=f"The journal mode is {mode}: {why}.")


def schema(facts: Facts) -> Iterable[Finding]:
    """Compare the schema with the one that is known here."""
    vitals = facts.vitals
    if not vitals.schema or vitals.trouble is not None:
        return
    if vitals.schema == vitals.newest_schema:
        text = f"The schema is version {vitals.schema}."
        yield Finding(code=FindingCode.SCHEMA, severity=Severity.OK, text=text)
        return
    text = f"The schema is version {vitals.schema}; this Betimes uses version {vitals.newest_schema}."
    if vitals.server is None:
        severity = Severity.NOTE
        remedy = "The first scheduler that opens it carries it over: stop older workers, and make a copy."
    elif vitals.server.is_usable:
        severity, remedy = Severity.NOTE, "It serves both; go on to the later version of Betimes."
    else:
        severity = Severity.ERROR
        remedy = "Run `betimes db migrate` once, as the owner of the schema; --plan says what it would do."
    if not vitals.can_be_looked_at:
        text += " Its jobs were not looked at."
    yield Finding(code=FindingCode.SCHEMA, severity=severity, text=text, remedy=remedy)


def strategy(facts: Facts) -> Iterable[Finding]:
    """See that the store was made with this scheduler's strategy."""
    own, found = facts.strategy, facts.vitals.strategy
    if own is None or found is None or own == found:
        return
    yield Finding(
        code=FindingCode.STRATEGY,
        severity=Severity.ERROR,
        text=f"The store's jobs are ordered by strategy {found!r}; this scheduler's is {own!r}, and it is "
        "refused if there are any.",
        remedy="Use the same strategy, or order the jobs anew with scheduler.rekey() while no worker runs.",
    )


def permissions(facts: Facts) -> Iterable[Finding]:
    """See who may read and write the file."""
    file = facts.vitals.file
    if file is None:
        return
    mode = f"{file.mode:04o}"
    if not file.is_writable:
        yield Finding(
            code=FindingCode.PERMISSIONS,
            severity=Severity.ERROR,
            text=f"This user may not write to the file or to its folder (mode {mode}).",
            remedy="Run this as the user who runs the workers, or give the group the file and its folder.",
        )
    if file.mode & _OTHERS_WRITE:
        yield Finding(
            code=FindingCode.PERMISSIONS,
            severity=Severity.WARNING,
            text=f"Others may write to the file (mode {mode}), and so have any code of yours run.",
            remedy="Unless that is meant: `chmod go-w FILE*`.",
        )
    elif file.mode & _OTHERS_READ:
        yield Finding(
            code=FindingCode.PERMISSIONS,
            severity=Severity.NOTE,
            text=f"Others may read the file (mode {mode}), arguments and results included.",
            remedy="Unless that is meant: `chmod go-r FILE*`.",
        )
    elif file.is_writable:
        yield Finding(
            code=FindingCode.PERMISSIONS,
            severity=Severity.OK,
            text=f"Only its user may read it (mode {mode}).",
        )


def free_space(facts: Facts) -> Iterable[Finding]:
    """See that the disk has room."""
    file = facts.vitals.file
    if file is None or file.free is None:
        return
    text = f"The disk has {sized(file.free)} left."
    if file.is_full:
        text += " New jobs are refused until there is more."
    elif file.free >= LITTLE_SPACE:
        yield Finding(code=FindingCode.FREE_SPACE, severity=Severity.OK, text=text)
        return
    yield Finding(
        code=FindingCode.FREE_SPACE,
        severity=Severity.ERROR if file.is_full or file.free < NO_SPACE else Severity.WARNING,
        text=text,
        remedy="Make room: on a full disk submits fail, and outcomes cannot be recorded until there is some.",
    )


def log_size(facts: Facts) -> Iterable[Finding]:
    """See that the write-ahead log is cut now and then."""
    file = facts.vitals.file
    if file is None or file.log_size <= LARGE_LOG:
        return
    yield Finding(
        code=FindingCode.LOG_SIZE,
        severity=Severity.WARNING,
        text=f"The write-ahead log has grown to {sized(file.log_size)}.",
        remedy="Somebody has been reading the file in one transaction for long: end it (`fuser FILE` names "
        "who has it open). If nobody has, the next worker that is closed cuts it.",
    )


def integrity(facts: Facts) -> Iterable[Finding]:
    """Say what the check of the whole file has found, if there was one."""
    file = facts.vitals.file
    if file is None or file.damage is None:
        return
    if not file.damage:
        yield Finding(code=FindingCode.INTEGRITY, severity=Severity.OK, text="The whole file is sound.")
        return
    yield Finding(
        code=FindingCode.INTEGRITY,
        severity=Severity.ERROR,
        text=f"The file is damaged: {'; '.join(file.damage)}.",
        remedy="Stop the workers, keep a copy of the file with its -wal and -shm, and restore a backup, or "
        "save what can be read with `sqlite3 FILE .recover`.",
    )


FILE_CHECKS: tuple[Callable[[Facts], Iterable[Finding]], ...] = (
    store,
    sqlite,
    schema,
    strategy,
    permissions,
    free_space,
    log_size,
    integrity,
)
