"""Requests to a JQ server by HTTP/1.1. A client that serves plain calls and event loops alike, at a third of what usual
ones cost, is short, as it knows no proxies, redirects, cookies and compression."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import msgpack

from jqmaster.connection import plainly
from jqmaster.connection.stream import Stream, opened
from jqmaster.errors import CLASSES, Internal, Invalid, Unavailable, Vanished, Version

IDLE_S = 30.0  # then a connection may be closed: servers and proxies do so after a minute
_MOST_HEAD = 1 << 16


class NotSent(OSError):
    """There was no connection: nobody has heard of the request."""


class Answer(NamedTuple):
    status: int
    content: bytes
    content_type: str

    @property
    def is_not_now(self) -> bool:
        """Whether nothing was carried out only because the server stops, or has enough to do."""
        return self.status == 503 and self._error[0] in ("BUSY", "DRAINING")

    @property
    def body(self) -> bytes:
        """Raises JQError for an error."""
        if self.status < 400:
            return self.content
        code, message, field = self._error
        if code == "VERSION":
            raise (Vanished if "has vanished" in message else Version)(message)
        if self.status in (502, 503, 504):
            raise Unavailable(message)
        kind = CLASSES.get(code, Invalid if self.status < 500 else Internal)
        raise kind(message.removeprefix(f"{field}: "), field)

    @property
    def _error(self) -> tuple[str, str, str | None]:
        """Its code, message and field."""
        try:
            error = msgpack.unpackb(self.content)["error"]
            return error["code"], error["message"], error.get("field")
        except (ValueError, TypeError, KeyError, msgpack.UnpackException):
            return "", f"the server answered {self.status}", None


class HttpConnection:
    """For one request at a time."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        """`headers` go with each request."""
        place = urlsplit(url)
        self._path = place.path
        fields = {"host": place.netloc.rpartition("@")[2], **headers}
        self._fields = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._context = ssl.create_default_context() if place.scheme == "https" else None
        self._address = place.hostname or "", place.port or (443 if self._context else 80)
        self._used_at = 0.0
        self._received = bytearray()
        self._stream: Stream
        self.is_kept = False  # whether another request may follow

    async def ready(self, within_s: float) -> None:
        """Connect it, if it is new, or may have been closed. Raises NotSent."""
        if self.is_kept and time.monotonic() - self._used_at < IDLE_S and self._stream.is_open():
            return
        self.close()
        try:
            async with plainly.within(within_s):
                self._stream = await opened(self._address, self._context)
        except OSError as error:
            raise NotSent(str(error) or type(error).__name__) from error

    async def ask(self, method: str, path: str, body: bytes, silent_s: float) -> Answer:
        """Send a request, and read the answer, which begins within `silent_s`, and goes on. Raises OSError."""
        self.is_kept, self._silent_s = False, silent_s
        head = f"{method} {self._path}{path} HTTP/1.1\r\n{self._fields}content-length: {len(body)}\r\n\r\n"
        try:
            await self._stream.send(head.encode("latin-1") + body)
            return await self._answer()
        finally:
            if not self.is_kept:
                self._stream.close()

    def close(self) -> None:
        """Close it, if it is kept."""
        if self.is_kept:
            self.is_kept = False
            self._stream.close()

    async def _answer(self) -> Answer:
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
        self._used_at = time.monotonic()
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
        if not (piece := await self._stream.receive(self._silent_s)):
            raise OSError("the connection was closed")
        self._received += piece


def _number(text: str | bytes, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        raise OSError(f"not an HTTP/1 response: expected a length, got {text[:40]!r}") from None
