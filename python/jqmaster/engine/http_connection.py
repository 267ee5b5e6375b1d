"""Requests to a master by HTTP/1.1: over sockets that block in plain calls (`connection.plainly`), by asyncio on an
event loop. A client that serves both kinds of callers, at a third of what usual ones cost, is short,
as it knows no proxies, redirects, cookies and compression."""

from __future__ import annotations

import asyncio
import functools
import selectors
import socket
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from jqmaster.connection import plainly

CONNECT_S = 5.0
MOST_IDLE = 32
IDLE_S = 30.0  # then a connection may be closed: servers and proxies do so after a minute
_MOST_HEAD = 1 << 16
_PIECE = 1 << 16


class NotSent(OSError):
    """There was no connection: nobody has heard of the request."""


class HttpResponse(NamedTuple):
    status: int
    content: bytes
    content_type: str


_split = functools.cache(urlsplit)


class HttpConnections:
    """To masters. For all threads, or for one event loop; each is one request's at a time. All raise OSError,
    TimeoutError and NotSent among them."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        """`headers` go with each request."""
        self._headers = headers
        self._idle: deque[tuple[SplitResult, MasterConnection]] = deque()

    async def request(
        self, method: str, url: str, path: str, body: bytes, headers: Mapping[str, str], *, most_s: float,
        connect_s: float,
    ) -> HttpResponse:  # fmt: skip
        """`most_s`: how long it may take in all; `connect_s`: connecting for it."""
        async with plainly.within(most_s):
            place = _split(url)
            connection = await self._connected(place, connect_s)
            is_kept = False
            try:
                status, fields = await connection.ask(self._head(place, method, path, body, headers) + body)
                content = b"".join([piece async for piece in connection.pieces(fields)])
                is_kept = connection.is_kept
            finally:
                if not is_kept:
                    connection.close()
            connection.used_at = time.monotonic()
            self._idle.append((place, connection))
            with suppress(IndexError):  # another thread was quicker
                while len(self._idle) > MOST_IDLE:
                    self._idle.popleft()[1].close()
            return HttpResponse(status, content, fields.get("content-type", "").partition(";")[0])

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[1].close()

    async def _connected(self, place: SplitResult, most_s: float) -> MasterConnection:
        """One that was used before and is still open, or a new one. Raises NotSent."""
        with suppress(IndexError):  # none is left, or another thread was quicker
            while True:
                known, connection = self._idle.pop()
                if known == place and time.monotonic() - connection.used_at < IDLE_S and connection.is_open():
                    return connection
                connection.close()
        kind = _MasterSocket if plainly.is_plain() else _MasterFlow
        context = ssl.create_default_context() if place.scheme == "https" else None
        try:
            async with plainly.within(most_s):
                return await kind.opened(place.hostname or "", place.port or (443 if context else 80), context)
        except OSError as error:
            raise NotSent(str(error) or type(error).__name__) from error

    def _head(self, place: SplitResult, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        name = place.netloc.rpartition("@")[2]
        lines = [f"{method} {place.path}{path} HTTP/1.1", f"host: {name}", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for given in (self._headers, headers) for name, value in given.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class MasterConnection:
    """One connection, whose bytes go and come as those below do it."""

    is_kept = False
    """Whether another request may follow."""
    used_at = 0.0
    _received = b""

    async def ask(self, request: bytes) -> tuple[int, Mapping[str, str]]:
        """Send a request; status and header of its answer."""
        self.is_kept = False
        await self.send(request)
        status = 100
        while status < 200:
            first, *lines = (await self._until(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            version, _, rest = first.partition(" ")
            if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
                raise OSError(f"not an HTTP/1 response: {first[:40]!r}")
            status = int(rest[:3])
        pairs = (line.partition(":") for line in lines)
        fields = {name.lower(): value.strip() for name, _, value in pairs}
        return status, {**fields, "content-length": "0"} if status in (204, 304) else fields

    async def pieces(self, fields: Mapping[str, str]) -> AsyncIterator[bytes]:
        """The body. At its end the connection is free for another request, if the answer does not say otherwise."""
        if fields.get("transfer-encoding", "").lower() == "chunked":
            while size := _number((await self._until(b"\r\n")).partition(b";")[0], 16):
                yield (await self._exactly(size + 2))[:-2]
            while await self._until(b"\r\n"):
                pass
        elif "content-length" in fields:
            yield await self._exactly(_number(fields["content-length"], 10))
        else:
            yield self._received
            while piece := await self.receive():
                yield piece
            return
        self.is_kept = fields.get("connection", "").lower() != "close" and not self._received

    async def _until(self, end: bytes) -> bytes:
        while (at := self._received.find(end)) < 0:
            if len(self._received) > _MOST_HEAD:
                raise OSError("an answer with a very long header")
            self._received += await self._more()
        found, self._received = self._received[:at], self._received[at + len(end) :]
        return found

    async def _exactly(self, count: int) -> bytes:
        parts, size = [self._received], len(self._received)
        while size < count:
            parts.append(await self._more())
            size += len(parts[-1])
        whole = b"".join(parts)
        self._received = whole[count:]
        return whole[:count]

    async def _more(self) -> bytes:
        if piece := await self.receive():
            return piece
        raise OSError("the connection was closed")

    # -- its bytes --------------------------------------------------------------------------------

    async def send(self, data: bytes) -> None:
        raise NotImplementedError

    async def receive(self) -> bytes:
        """Some bytes; none when the other side has closed it."""
        raise NotImplementedError

    def is_open(self) -> bool:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class _MasterSocket(MasterConnection):
    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    @classmethod
    async def opened(cls, host: str, port: int, context: ssl.SSLContext | None) -> MasterConnection:
        connected = socket.create_connection((host, port), plainly.left_s())
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(context.wrap_socket(connected, server_hostname=host) if context else connected)

    async def send(self, data: bytes) -> None:
        self._socket.settimeout(plainly.left_s())
        self._socket.sendall(data)

    async def receive(self) -> bytes:
        self._socket.settimeout(plainly.left_s())
        return self._socket.recv(_PIECE)

    def is_open(self) -> bool:
        return not _is_readable(self._socket.fileno())

    def close(self) -> None:
        self._socket.close()


class _MasterFlow(MasterConnection, asyncio.Protocol):
    """By a protocol: asyncio's streams cost twice as much."""

    def __init__(self) -> None:
        self._came: list[bytes] = []
        self._size = 0
        self._problem: Exception | None = None
        self._has_ended = False
        self._waiter: asyncio.Future[None] | None = None

    @classmethod
    async def opened(cls, host: str, port: int, context: ssl.SSLContext | None) -> MasterConnection:
        return (await asyncio.get_running_loop().create_connection(cls, host, port, ssl=context))[1]

    async def send(self, data: bytes) -> None:
        self._transport.write(data)

    async def receive(self) -> bytes:
        if not self._came and not self._has_ended:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self._problem is not None:
            raise self._problem
        data = b"".join(self._came)
        self._came.clear()
        if self._size > _PIECE:
            self._transport.resume_reading()
        self._size = 0
        return data

    def is_open(self) -> bool:
        if self._has_ended or self._came:
            return False
        # The loop may not have had a turn since the other side closed it.
        return not _is_readable(self._transport.get_extra_info("socket").fileno())

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._came.append(data)
        self._size += len(data)
        if self._size > _PIECE:
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._problem = error
        self._has_ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _is_readable(fd: int) -> bool:
    """Whether there is anything to read: of a connection that waits for no answer, its end."""
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        return bool(selector.select(0))


def _number(text: str | bytes, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        raise OSError(f"not an HTTP/1 response: expected a length, got {text[:40]!r}") from None
