"""Which file system a path is on, and by which other paths its file goes.

SQLite's locks do not work over a network. And its log lies beside the file, by the file's name: two who open
one file by different paths have a log each, and lose what they commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from betimes.errors import ConfigurationError

NETWORK = frozenset(
    {"9p", "afs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "ncpfs", "nfs", "nfs4", "smb3"}
)
MOUNTS = Path("/proc/self/mountinfo")


def refuse_network(path: Path, *, mounts: Path = MOUNTS) -> None:
    """Refuse a path on a network file system, where the system tells.

    Source: proc(5), `/proc/pid/mountinfo`: field 5 is the mount point, and the type follows a lone hyphen.

    Raises:
        ConfigurationError: two machines could write to the file at once, and damage it.
    """
    kind = ""
    longest = -1
    for mount, type_ in _mounted(mounts):
        # Of two mounts on one place, the later covers the earlier.
        if path.is_relative_to(mount) and len(mount) >= longest:
            kind, longest = type_, len(mount)
    if kind in NETWORK:
        raise ConfigurationError(
            f"{path} is on a network file system ({kind}), where SQLite's locks do not hold; use a local "
            "disk, or PostgreSQL for several machines"
        )


def refuse_other_names(path: Path, *, mounts: Path = MOUNTS) -> None:
    """Refuse a file that goes by another path, too, beside which its log is not.

    A link that names the file is not one: the path here is the real one. Folders that are mounted in two
    places do no harm, since the log is in both.

    Raises:
        ConfigurationError: it has another name, or is mounted by itself, as files can be in a container.
    """
    if any(mount == str(path) for mount, _ in _mounted(mounts)):
        raise ConfigurationError(
            f"{path} is mounted by itself, without the files that SQLite keeps beside it, and what is "
            "committed could be lost: mount its folder instead"
        )
    with suppress(OSError):
        names = path.stat().st_nlink
        if names > 1 and path.is_file():
            raise ConfigurationError(
                f"{path} is one of {names} names of one file (hard links), and SQLite keeps a log for each: "
                "who opens it by another name damages it. Delete the other names "
                "(`find -samefile` finds them), or use a copy of it"
            )


def _mounted(mounts: Path) -> Iterator[tuple[str, str]]:
    """Yield mount points and their types."""
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        before, _, after = line.partition(" - ")
        yield _unescaped(before.split()[4]), after.split()[0]


def _unescaped(text: str) -> str:
    r"""Undo the octal escapes of blanks and backslashes (`\040` …)."""
    for code in ("\\040", "\\011", "\\012", "\\134"):
        text = text.replace(code, chr(int(code[1:], 8)))
    return text
