"""Each connection is an open file, of which a process may have only so many."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import time
from collections.abc import Callable
from typing import Any

import uvloop

from jqmaster.engine import packform
from jqmaster.server import jsonform
from jqmaster.server.http_error import busy

log = logging.getLogger("jqmaster.server")

KEPT = 256  # for Redis, deliveries, and answers to those who are refused; at most a quarter of all
SAY_EVERY_S = 10.0
REFUSED_WITHIN_S = 1.0
LINGER_S = 2.0

Factory = Callable[[], asyncio.BaseProtocol]


def raise_limit() -> None:
    """As many as this user may have. Processes that this one starts have the same limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # some systems say more than they give
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _most() -> int:
    """The first number of a file that is too many for a connection. New files get the lowest that is free."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return limit - min(KEPT, limit // 4)


class Loop(uvloop.Loop):
    """Servers made in this loop let go of connections that their clients have closed, and answer 503 to those
    that come when nearly all open files are in use: these would be closed without a word."""

    async def create_server(self, protocol_factory: Factory, *args: Any, **options: Any) -> Any:
        door = _Door(protocol_factory)
        return await super().create_server(lambda: _Guest(door), *args, **options)


class _Door:
    def __init__(self, factory: Factory) -> None:
        self.factory = factory
        self._refused = 0
        self._said = -SAY_EVERY_S

    def refuses(self, transport: Any) -> bool:
        most = _most()
        if transport.get_extra_info("socket").fileno() < most:
            return False
        self._refused += 1
        if time.monotonic() - self._said >= SAY_EVERY_S:
            self._said = time.monotonic()
            log.warning(
                "connections are refused, %d so far: %d files are open, the limit is %d (ulimit -n)",
                self._refused, most, resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            )  # fmt: skip
        return True


class _Guest(asyncio.Protocol):
    """A connection that comes: it gets its real protocol, or a refusal."""

    def __init__(self, door: _Door) -> None:
        self._door = door
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._door.refuses(transport):
            self._transport = transport
            asyncio.get_running_loop().call_later(REFUSED_WITHIN_S, transport.close)
            return
        protocol: Any = self._door.factory()
        protocol.eof_received = _closing(transport, protocol.eof_received)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        # Once the request is here: who gets the answer before may take it for another's.
        if not self._transport.is_closing():
            is_json = b"msgpack" not in data
            # A process that is full is alive: who asks that would restart it.
            asks_alive = data.startswith(b"GET /alive ")
            alive = _answer(b"200 OK", {"status": "ok"}, is_json)
            self._transport.write(alive if asks_alive else _refusal(is_json))
            self._transport.close()


def _closing(transport: Any, received: Callable[[], Any]) -> Callable[[], Any]:
    """Hypercorn keeps a connection that its client has closed for as long as one that is idle."""

    def at_end() -> Any:
        # An answer may be under way to a client that says no more and still listens.
        asyncio.get_running_loop().call_later(LINGER_S, transport.close)
        return received()

    return at_end


def _refusal(is_json: bool) -> bytes:
    error = busy("too many connections")
    return _answer(b"503 Service Unavailable", error.body(), is_json, *error.headers())


def _answer(status: bytes, document: object, is_json: bool, *more: tuple[bytes, bytes]) -> bytes:
    body = packform.pack(document)
    if is_json:
        body = jsonform.to_json(body)
    headers = [
        (b"content-type", b"application/json" if is_json else b"application/msgpack"),
        (b"content-length", b"%d" % len(body)), (b"connection", b"close"), *more,
    ]  # fmt: skip
    lines = [b"HTTP/1.1 " + status, *(b"%s: %s" % header for header in headers), b"", body]
    return b"\r\n".join(lines)
