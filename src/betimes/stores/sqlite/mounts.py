"""Which file system a path is on: SQLite's locks do not work over a network."""

from __future__ import annotations

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
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return
    kind = ""
    longest = -1
    for line in lines:
        before, _, after = line.partition(" - ")
        mount = _unescaped(before.split()[4])
        # Of two mounts on one place, the later covers the earlier.
        if path.is_relative_to(mount) and len(mount) >= longest:
            kind, longest = after.split()[0], len(mount)
    if kind in NETWORK:
        raise ConfigurationError(
            f"{path} is on a network file system ({kind}), where SQLite's locks do not hold; use a local "
            "disk, or PostgreSQL for several machines"
        )


def _unescaped(text: str) -> str:
    r"""Undo the octal escapes of blanks and backslashes (`\040` …)."""
    for code in ("\\040", "\\011", "\\012", "\\134"):
        text = text.replace(code, chr(int(code[1:], 8)))
    return text
