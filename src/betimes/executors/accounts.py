"""The users of this system, and what a program gets that runs as one of them."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass

from betimes.core.command import SHELL
from betimes.errors import CommandFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user, as the system knows it.

    Attributes:
        name: what it is called.
        uid, gid, groups: by number, all its groups.
        home, shell: as passwd(5) says.
    """

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str

    @property
    def is_own(self) -> bool:
        """Whether this process runs as this user."""
        return self.uid == os.geteuid()

    @property
    def may_be_taken(self) -> bool:
        """Whether this process may start programs as this user: it is its own, or this process is root's."""
        return self.is_own or os.geteuid() == 0

    @property
    def environment(self) -> dict[str, str]:
        """The variables that say who the user is."""
        return {
            "HOME": self.home,
            "LOGNAME": self.name,
            "USER": self.name,
            "SHELL": self.shell or SHELL,
        }


def find_account(name: str) -> Account | None:
    """Return the user of this name; None: there is none."""
    try:
        return _account(pwd.getpwnam(name))
    except KeyError:
        return None


def own_account() -> Account:
    """Return the user whose process this is; one without a name, as in containers, is called by number."""
    uid = os.geteuid()
    try:
        return _account(pwd.getpwuid(uid))
    except KeyError:
        home = os.environ.get("HOME") or "/"
        return Account(name=str(uid), uid=uid, gid=os.getegid(), groups=(), home=home, shell=SHELL)


def account_to_run_as(name: str, *, command: str) -> Account:
    """Return the user that a command is to run as.

    Raises:
        CommandFailed: there is no such user, or this process may not run programs as somebody else.
    """
    account = find_account(name)
    if account is None:
        raise CommandFailed(
            f"{command} could not be started: there is no user {name!r} on this machine", may_retry=False
        )
    if not account.may_be_taken:
        raise CommandFailed(
            f"{command} could not be started: only a worker that runs as root can run it as {name!r}",
            may_retry=False,
        )
    return account


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(
        name=entry.pw_name,
        uid=entry.pw_uid,
        gid=entry.pw_gid,
        groups=tuple(os.getgrouplist(entry.pw_name, entry.pw_gid)),
        home=entry.pw_dir or "/",
        shell=entry.pw_shell,
    )
