"""A proxy between clients and a PostgreSQL server, which does to them what networks do.

It reads what clients send, message by message, so that it can act at a certain point of a transaction: it
knows the texts of all statements since `BEGIN`, prepared ones too. Each connection has two threads.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

HOST = "127.0.0.1"
CHUNK = 65536
NOT_YET_STARTED = {80877103, 80877104}
"""Codes of messages that come before the first: whether TLS, or GSSAPI, may be used."""

Watch = Callable[[list[str]], bool]


class Proxy:
    """Listens on a port of its own, and passes on to the server.

    Attributes:
        latency_s: how long each piece takes, either way.
        rate: how many bytes a second pass, either way; None: all.
        swallows: the directions (`up` to the server, `down` from it) in which nothing passes any more; a
            connection that was open then stays so for good.
        cut: how many connections were cut by `cut_after_commit`.
    """

    def __init__(self, port: int) -> None:
        self._server_port = port
        self.latency_s = 0.0
        self.rate: float | None = None
        self.swallows: frozenset[str] = frozenset()
        self.cut = 0
        self._watch: Watch | None = None
        self._links: list[Link] = []
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Whoever is blocked in `accept` is woken by this, and not by `close`.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut_all()

    def url(self, url: str) -> str:
        """The same place, reached through here."""
        return re.sub(r"@[^/:]+:[0-9]+/", f"@{HOST}:{self.port}/", url, count=1)

    @property
    def links(self) -> list[Link]:
        """The connections there have been, in order."""
        return list(self._links)

    def cut_all(self) -> None:
        """Cut all connections off; new ones are let in."""
        links, self._links = self._links, []
        for link in links:
            link.close()

    def swallow(self, *directions: str) -> None:
        """Let nothing pass any more in these directions; without any, let new connections pass again."""
        self.swallows = frozenset(directions)
        for link in self._links:
            link.swallows |= self.swallows

    def cut_after_commit(self, watch: Watch) -> None:
        """Cut one connection, once, when the server has answered the COMMIT of such a transaction.

        `watch` is given the statements of each transaction, when its COMMIT is passed on.
        """
        self._watch = watch

    def asks(self, statements: list[str]) -> bool:
        """Whether the connection that commits these is to be cut."""
        watch = self._watch
        if watch is None or not watch(statements):
            return False
        self._watch = None
        return True

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection((HOST, self._server_port))
            except OSError:
                client.close()  # as the server itself would
                continue
            link = Link(self, client, server)
            self._links.append(link)
            link.begin()


class Link:
    """One connection."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self.swallows = proxy.swallows
        self._is_to_be_cut = False
        self.is_closed = False
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def begin(self) -> None:
        threading.Thread(target=self._serve, args=(self._go_up,), daemon=True).start()
        threading.Thread(target=self._serve, args=(self._go_down,), daemon=True).start()

    def close(self) -> None:
        self.is_closed = True
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _serve(self, go: Callable[[], None]) -> None:
        try:
            go()
        except OSError:
            pass
        finally:
            self.close()

    def _go_up(self) -> None:
        talk = Talk()
        while data := self._client.recv(CHUNK):
            self._take_time(data)
            for message, committed in talk.messages(data):
                if committed is not None and self._proxy.asks(committed):
                    self._is_to_be_cut = True
                self._pass(message, self._server, "up")

    def _go_down(self) -> None:
        while data := self._server.recv(CHUNK):
            if self._is_to_be_cut:
                self._proxy.cut += 1
                return
            self._take_time(data)
            self._pass(data, self._client, "down")

    def _pass(self, data: bytes, end: socket.socket, direction: str) -> None:
        if direction not in self.swallows:
            end.sendall(data)

    def _take_time(self, data: bytes) -> None:
        proxy = self._proxy
        time.sleep(proxy.latency_s + (0.0 if proxy.rate is None else len(data) / proxy.rate))


class Talk:
    """What one client says, taken apart into messages."""

    def __init__(self) -> None:
        self._rest = b""
        self._has_started = False
        self._prepared: dict[bytes, str] = {}
        self._bound = ""
        self._statements: list[str] = []
        self._is_within = False

    def messages(self, data: bytes) -> Iterator[tuple[bytes, list[str] | None]]:
        """Yield whole messages; beside one that carries a COMMIT out, the statements that it commits."""
        self._rest += data
        while (message := self._next()) is not None:
            statement = self._statement(message) if self._has_started else None
            self._has_started |= not self._has_code(message)
            yield message, None if statement is None else self._note(statement)

    def _next(self) -> bytes | None:
        head = 5 if self._has_started else 4
        if len(self._rest) < head:
            return None
        (length,) = struct.unpack("!I", self._rest[head - 4 : head])
        end = length + head - 4
        if len(self._rest) < end:
            return None
        message, self._rest = self._rest[:end], self._rest[end:]
        return message

    def _has_code(self, message: bytes) -> bool:
        return not self._has_started and struct.unpack("!I", message[4:8])[0] in NOT_YET_STARTED

    def _statement(self, message: bytes) -> str | None:
        """Return the statement that a message carries out."""
        kind, body = message[:1], message[5:]
        if kind == b"Q":
            return body.rstrip(b"\0").decode()
        if kind == b"P":
            name, text = body.split(b"\0", 2)[:2]
            self._prepared[name] = text.decode()
        elif kind == b"B":
            self._bound = self._prepared[body.split(b"\0", 2)[1]]
        elif kind == b"E":
            return self._bound
        return None

    def _note(self, statement: str) -> list[str] | None:
        if statement.startswith("BEGIN"):
            self._statements, self._is_within = [], True
        elif not self._is_within:
            return [statement]  # it is a transaction of its own
        self._statements.append(statement)
        self._is_within = statement not in {"COMMIT", "ROLLBACK"}
        return self._statements if statement == "COMMIT" else None
