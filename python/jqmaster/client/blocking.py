"""The blocking client."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator, Mapping
from typing import TypeVar
from urllib.parse import urlsplit

from jqmaster.client import asks
from jqmaster.client.asks import HEADERS, SILENCE_S, TIMEOUT_S, Ask, Document
from jqmaster.client.blocking_jobs import JobMethods
from jqmaster.client.blocking_operation import OperationMethods
from jqmaster.client.waits import poll_s
from jqmaster.errors import Unavailable

T = TypeVar("T")


class Client(JobMethods, OperationMethods):
    """Blocking client on one connection; not for several threads at once.

    All methods raise the classes of `jqmaster.errors`, Unavailable when the master cannot be reached.
    """

    def __init__(self, url: str = "http://127.0.0.1:8400", *, timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        self._kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._address = (parts.hostname or "127.0.0.1", parts.port)
        self._connection = self._kind(*self._address, timeout=timeout_s)
        self._timeout_s = timeout_s
        self._prefix = parts.path.rstrip("/")

    def wait(self, job_id: str, timeout_s: float | None = None) -> Document:
        """The job's document once it is done, failed for good or cancelled. Raises TimeoutError, NotFound."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            most_s = poll_s(deadline)
            status, body = self._send("GET", asks.poll(job_id, most_s), timeout_s=most_s + 10)
            if status != 408:
                return dict(asks.content(status, body))
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"job {job_id} has not ended within {timeout_s} s")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- parts ------------------------------------------------------------------------------------

    def _do(self, ask: Ask[T]) -> T:
        return ask.answer(*self._send(ask.method, ask.path, ask.body, headers=ask.headers))

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        timeout_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        connection = self._connection
        fresh = connection.sock is None
        try:
            if connection.sock is not None:
                connection.sock.settimeout(self._timeout_s if timeout_s is None else timeout_s)
            connection.request(method, self._prefix + path, body, headers or HEADERS)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            # A kept connection that the server closed meanwhile: reading again is harmless, writing might
            # not be.
            if not fresh and method == "GET" and not isinstance(error, TimeoutError):
                return self._send(method, path, body, timeout_s, headers)
            raise Unavailable(f"the master does not answer: {error or type(error).__name__}") from error

    def _stream(self, path: str, headers: Mapping[str, str]) -> Iterator[bytes]:
        # On a connection of its own, which is closed when the caller has enough.
        connection = self._kind(*self._address, timeout=SILENCE_S)
        try:
            connection.request("GET", self._prefix + path, None, dict(headers))
            response = connection.getresponse()
            if response.status >= 400:
                asks.content(response.status, response.read())
            is_lines = response.headers.get_content_type() == "text/event-stream"
            while piece := response.readline() if is_lines else response.read1(1 << 16):
                yield piece
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"the stream was cut off: {error or type(error).__name__}") from error
        finally:
            connection.close()
