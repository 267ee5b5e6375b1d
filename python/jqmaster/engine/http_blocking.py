"""Requests to a master by plain calls (`connection.plainly`), by the standard library; `http_loop` is the same on an
event loop."""

from __future__ import annotations

import http.client
import selectors
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from jqmaster.connection.plainly import left_s

CONNECT_S = 5.0
SILENCE_S = 60.0  # a master that has nothing to send says so every 15 seconds
MOST_IDLE = 32


class NotSent(OSError):
    """There was no connection: nobody has heard of the request."""


class Bounded(NamedTuple):
    """How long a request may take in all, and connecting for it."""

    answer_s: float
    connect_s: float = CONNECT_S


class HttpResponse(NamedTuple):
    status: int
    content: bytes
    content_type: str


class HttpContent(Protocol):
    """The body of an answer that goes on: its lines, or pieces as they come."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    def iter_any(self) -> AsyncIterator[bytes]: ...

    async def read(self) -> bytes: ...


class Session(Protocol):
    """Connections to masters. All raise OSError, TimeoutError among them, and NotSent."""

    async def request(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str], bounds: Bounded
    ) -> HttpResponse: ...

    def stream(self, url: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[tuple[int, HttpContent]]: ...

    async def close(self) -> None: ...


class BlockingSession:
    """See `Session`. For all threads: each has a connection as long as it asks."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers
        self._idle: deque[tuple[str, http.client.HTTPConnection]] = deque(maxlen=MOST_IDLE)

    async def request(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str], bounds: Bounded
    ) -> HttpResponse:
        connection, path = self._connected(url, bounds)
        try:
            response = self._ask(connection, method, path, body, headers)
            answer = HttpResponse(response.status, response.read(), response.headers.get_content_type())
        except http.client.HTTPException as error:
            connection.close()
            raise OSError(str(error) or type(error).__name__) from error
        except BaseException:
            connection.close()
            raise
        if not response.will_close:
            self._idle.append((_origin(url), connection))
        return answer

    @asynccontextmanager
    async def stream(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[tuple[int, HttpContent]]:
        connection, path = self._connected(url, Bounded(SILENCE_S))
        try:
            response = self._ask(connection, "GET", path, b"", headers)
            yield response.status, _Content(response)
        except http.client.HTTPException as error:
            raise OSError(str(error) or type(error).__name__) from error
        finally:
            connection.close()

    async def close(self) -> None:
        while self._idle:
            self._idle.pop()[1].close()

    # -- parts ------------------------------------------------------------------------------------

    def _connected(self, url: str, bounds: Bounded) -> tuple[http.client.HTTPConnection, str]:
        """A connection to where `url` is, and the rest of it. Raises NotSent."""
        parts = urlsplit(url)
        connection = self._kept(_origin(url))
        if connection is None:
            kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
            try:
                connection = kind(parts.hostname or "", parts.port, timeout=min(bounds.connect_s, left_s()))
                connection.connect()
            except (OSError, http.client.HTTPException) as error:
                raise NotSent(str(error) or type(error).__name__) from error
        connection.sock.settimeout(min(bounds.answer_s, left_s()))
        return connection, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def _kept(self, origin: str) -> http.client.HTTPConnection | None:
        """One that was used before, and is still open."""
        for _ in range(len(self._idle)):
            try:
                known, connection = self._idle.pop()
            except IndexError:
                break
            with selectors.DefaultSelector() as selector:
                selector.register(connection.sock, selectors.EVENT_READ)
                is_open = known == origin and not selector.select(0)
            if is_open:
                return connection
            connection.close()
        return None

    def _ask(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        connection.request(method, path, body or None, {**self._headers, **headers})
        return connection.getresponse()


class _Content:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while line := self._response.readline():
            yield line

    async def iter_any(self) -> AsyncIterator[bytes]:
        while piece := self._response.read1(1 << 16):
            yield piece

    async def read(self) -> bytes:
        return self._response.read()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
