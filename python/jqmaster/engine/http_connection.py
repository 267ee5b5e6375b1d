"""Requests to a master by HTTP/1.1. A client that serves plain calls and event loops alike, at a third of what usual
ones cost, is short, as it knows no proxies, redirects, cookies and compression."""

from __future__ import annotations

import functools
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from jqmaster.connection import plainly
from jqmaster.connection.stream import Stream, opened

CONNECT_S = 5.0
MOST_IDLE = 32
IDLE_S = 30.0  # then a connection may be closed: servers and proxies do so after a minute
_MOST_HEAD = 1 << 16


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
        self._is_closed = False

    async def request(
        self, method: str, url: str, path: str, body: bytes, *, most_s: float, connect_s: float
    ) -> HttpResponse:
        """`most_s`: how long it may take in all; `connect_s`: connecting for it."""
        async with plainly.within(most_s):
            place = _split(url)
            connection = await self._connected(place, connect_s)
            try:
                status, fields = await connection.ask(self._head(place, method, path, body) + body)
                content = b"".join([piece async for piece in connection.pieces(fields)])
            except BaseException:
                connection.stream.close()
                raise
            self._keep(place, connection)
            return HttpResponse(status, content, fields.get("content-type", "").partition(";")[0])

    def close(self) -> None:
        """Close them, each that is in use at the end of its request."""
        self._is_closed = True
        with suppress(IndexError):  # none is left, or another thread was quicker
            while True:
                self._idle.pop()[1].stream.close()

    def _keep(self, place: SplitResult, connection: MasterConnection) -> None:
        connection.used_at = time.monotonic()
        if not connection.is_kept:
            connection.stream.close()
            return
        self._idle.append((place, connection))
        if self._is_closed:
            self.close()
        with suppress(IndexError):
            while len(self._idle) > MOST_IDLE:
                self._idle.popleft()[1].stream.close()

    async def _connected(self, place: SplitResult, most_s: float) -> MasterConnection:
        """One that was used before and is still open, or a new one. Raises NotSent."""
        with suppress(IndexError):
            while True:
                known, connection = self._idle.pop()
                is_usable = known == place and time.monotonic() - connection.used_at < IDLE_S
                if is_usable and connection.stream.is_open():
                    return connection
                connection.stream.close()
        context = ssl.create_default_context() if place.scheme == "https" else None
        address = place.hostname or "", place.port or (443 if context else 80)
        try:
            async with plainly.within(most_s):
                return MasterConnection(await opened(address, context))
        except OSError as error:
            raise NotSent(str(error) or type(error).__name__) from error

    def _head(self, place: SplitResult, method: str, path: str, body: bytes) -> bytes:
        name = place.netloc.rpartition("@")[2]
        lines = [f"{method} {place.path}{path} HTTP/1.1", f"host: {name}", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in self._headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class MasterConnection:
    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.is_kept = False  # whether another request may follow
        self.used_at = 0.0
        self._received = b""

    async def ask(self, request: bytes) -> tuple[int, Mapping[str, str]]:
        """Send a request; status and header of its answer."""
        self.is_kept = False
        await self.stream.send(request)
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
            while piece := await self.stream.receive():
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
        if piece := await self.stream.receive():
            return piece
        raise OSError("the connection was closed")


def _number(text: str | bytes, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        raise OSError(f"not an HTTP/1 response: expected a length, got {text[:40]!r}") from None
