"""Requests to a JQ server by HTTP/1.1. A client that serves plain calls and event loops alike, at a third of what usual
ones cost, is short, as it knows no proxies, redirects, cookies and compression."""

from __future__ import annotations

import functools
import ssl
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

import msgpack

from jqmaster.connection import plainly
from jqmaster.connection.stream import Stream, opened
from jqmaster.errors import CLASSES, Internal, Invalid, Unavailable, Vanished, Version

MOST_IDLE = 32
IDLE_S = 30.0  # then a connection may be closed: servers and proxies do so after a minute
_MOST_HEAD = 1 << 16


class NotSent(OSError):
    """There was no connection: nobody has heard of the request."""


class Answer(NamedTuple):
    status: int
    content: bytes
    content_type: str

    @property
    def body(self) -> bytes:
        """Raises JQError for an error."""
        if self.status < 400:
            return self.content
        try:
            refusal = msgpack.unpackb(self.content)["error"]
            code, message, field = refusal["code"], refusal["message"], refusal.get("field")
        except (ValueError, TypeError, KeyError, msgpack.UnpackException):
            code, message, field = "", f"the server answered {self.status}", None
        if code == "VERSION":
            raise (Vanished if "has vanished" in message else Version)(message)
        if self.status in (502, 503, 504):
            raise Unavailable(message)
        kind = CLASSES.get(code, Invalid if self.status < 500 else Internal)
        raise kind(message.removeprefix(f"{field}: "), field)


_split = functools.cache(urlsplit)


class HttpConnections:
    """For all threads, or for one event loop; each is one request's at a time. All raise OSError, TimeoutError and
    NotSent among them."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        """`headers` go with each request."""
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._idle: deque[HttpConnection] = deque(maxlen=MOST_IDLE)
        self._is_closed = False

    async def request(
        self, method: str, url: str, path: str, body: bytes, *, connect_s: float, silent_s: float
    ) -> Answer:
        """`connect_s`: how long connecting for it may take; `silent_s`: until the server says something, or more."""
        place = _split(url)
        host = place.netloc.rpartition("@")[2]
        head = f"{method} {place.path}{path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {len(body)}\r\n"
        connection = await self._connected(place, connect_s)
        try:
            return await connection.ask(f"{head}{self._headers}\r\n".encode("latin-1") + body, silent_s)
        finally:
            if connection.is_kept and len(self._idle) < MOST_IDLE and not self._is_closed:
                self._idle.append(connection)
            else:
                connection.stream.close()

    def close(self) -> None:
        """Close them, each that is in use at the end of its request."""
        self._is_closed = True
        with suppress(IndexError):  # none is left, or another thread was quicker
            while True:
                self._idle.pop().stream.close()

    async def _connected(self, place: SplitResult, most_s: float) -> HttpConnection:
        """One that was used before and is still open, or a new one. Raises NotSent."""
        with suppress(IndexError):
            while True:
                connection = self._idle.pop()
                is_recent = time.monotonic() - connection.used_at < IDLE_S
                if connection.place == place and is_recent and connection.stream.is_open():
                    return connection
                connection.stream.close()
        context = ssl.create_default_context() if place.scheme == "https" else None
        address = place.hostname or "", place.port or (443 if context else 80)
        try:
            async with plainly.within(most_s):
                return HttpConnection(place, await opened(address, context))
        except OSError as error:
            raise NotSent(str(error) or type(error).__name__) from error


class HttpConnection:
    def __init__(self, place: SplitResult, stream: Stream) -> None:
        self.place, self.stream = place, stream
        self.is_kept = False  # whether another request may follow
        self.used_at = 0.0
        self._received = bytearray()

    async def ask(self, request: bytes, silent_s: float) -> Answer:
        """Send a request, and read the answer."""
        self.is_kept, self._silent_s = False, silent_s
        await self.stream.send(request)
        status = 100
        while status < 200:
            first, *lines = (await self._until(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            version, _, rest = first.partition(" ")
            if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
                raise OSError(f"not an HTTP/1 response: {first[:40]!r}")
            status = int(rest[:3])
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        content = b"" if status in (204, 304) else await self._body(fields)
        self.is_kept = fields.get("connection", "").lower() != "close" and not self._received
        self.used_at = time.monotonic()
        return Answer(status, content, fields.get("content-type", "").partition(";")[0])

    async def _body(self, fields: Mapping[str, str]) -> bytes:
        if fields.get("transfer-encoding", "").lower() != "chunked":
            return await self._exactly(_number(fields.get("content-length", "none"), 10))
        content = b""
        while size := _number((await self._until(b"\r\n")).partition(b";")[0], 16):
            content += (await self._exactly(size + 2))[:-2]
        while await self._until(b"\r\n"):
            pass
        return content

    async def _until(self, end: bytes) -> bytes:
        while (at := self._received.find(end)) < 0:
            if len(self._received) > _MOST_HEAD:
                raise OSError("an answer with a very long header")
            await self._more()
        return (await self._exactly(at + len(end)))[:at]

    async def _exactly(self, count: int) -> bytes:
        while len(self._received) < count:
            await self._more()
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken

    async def _more(self) -> None:
        if not (piece := await self.stream.receive(self._silent_s)):
            raise OSError("the connection was closed")
        self._received += piece


def _number(text: str | bytes, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        raise OSError(f"not an HTTP/1 response: expected a length, got {text[:40]!r}") from None
