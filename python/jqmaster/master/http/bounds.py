"""What all requests together may take: bytes of bodies, and streams. Who comes when there is no more is told so
at once. Bodies are read here, whole, once it is known whose they are and before a handler sees the request."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from jqmaster.master.http.gate import is_closed
from jqmaster.master.http.routes import STREAM, WHO, Asgi, Receive, Scope, Send, has_body, refuse
from jqmaster.master.master import Master
from jqmaster.wire.errors import HttpError, busy
from jqmaster.wire.message import ANYBODY

MAX_CONTENT_LENGTH = 16 * 1024 * 1024
# So much of each body is not counted: outcomes and signs of life come through, whoever sends how much else.
SMALL = 16 * 1024


class Bounds:
    """Of one master. `most_bytes`: of all bodies, from their coming until their requests are answered. `body_s`:
    how long one may take to come."""

    def __init__(self, most_bytes: int = 128 * 1024 * 1024, body_s: float = 60.0) -> None:
        self.most_bytes = most_bytes
        self.bytes = 0
        self._body_s = body_s

    def around(self, app: Asgi, master: Master, longest: int) -> Asgi:
        """`app`, which gets each body as one message, of at most `longest` bytes."""

        async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            # Where keys are asked for, what anybody may send (a key to log in with) is small.
            is_strange = is_closed(master) and scope.get(WHO, ANYBODY) is ANYBODY
            body = _Body(self, min(longest, SMALL) if is_strange else longest)
            try:
                try:
                    coming = [await self._read(body, scope, receive)]
                except HttpError as error:
                    await refuse(master, scope, send, error)
                    return

                async def once() -> Any:
                    return coming.pop() if coming else await receive()

                await app(scope, once, send)
            finally:
                self.bytes -= body.counted
                master.streams -= scope.get(STREAM, 0)

        return asgi

    async def _read(self, body: _Body, scope: Scope, receive: Receive) -> Any:
        if not has_body(scope["headers"]):
            return await body.read((), receive)
        try:
            async with asyncio.timeout(self._body_s):
                return await body.read(scope["headers"], receive)
        except TimeoutError:
            message = f"the request's body did not arrive within {self._body_s:g} s"
            raise HttpError(408, "TIMEOUT", message) from None


class _Body:
    def __init__(self, bounds: Bounds, longest: int) -> None:
        self.counted = 0
        self._bounds = bounds
        self._longest = longest

    async def read(self, headers: Iterable[tuple[bytes, bytes]], receive: Receive) -> Any:
        """One message instead of many; that the client has left when it left before the end. Raises 413 and
        503."""
        for name, value in headers:
            if name == b"content-length" and value.isdigit() and int(value) > self._longest:
                raise self._too_large()
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return message
            if chunk := message.get("body", b""):
                size += len(chunk)
                chunks.append(chunk)
                self._count(size)
            if not message.get("more_body", False):
                return message | {"body": chunks[0] if len(chunks) == 1 else b"".join(chunks)}

    def _count(self, size: int) -> None:
        if size > self._longest:
            raise self._too_large()
        more = max(0, size - SMALL) - self.counted
        if more and self._bounds.bytes + more > self._bounds.most_bytes:
            raise busy("as many bytes of requests as it takes")
        self._bounds.bytes += more
        self.counted += more

    def _too_large(self) -> HttpError:
        return HttpError(413, "TOOLARGE", f"the body is larger than this server takes ({self._longest} bytes)")
