"""The client for asyncio."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from typing import TypeVar

import aiohttp

from jqmaster.client import asks
from jqmaster.client.aio_jobs import AsyncJobMethods
from jqmaster.client.aio_operation import AsyncOperationMethods
from jqmaster.client.asks import HEADERS, SILENCE_S, TIMEOUT_S, Ask, Document
from jqmaster.client.waits import poll_s
from jqmaster.errors import Unavailable

T = TypeVar("T")


class AsyncClient(AsyncJobMethods, AsyncOperationMethods):
    """The same as `Client` for asyncio, with as many connections as are needed. Use it as `async with`."""

    def __init__(self, url: str = "http://127.0.0.1:8400", *, timeout_s: float = TIMEOUT_S) -> None:
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def wait(self, job_id: str, timeout_s: float | None = None) -> Document:
        """As `Client.wait`."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            most_s = poll_s(deadline)
            status, body = await self._send("GET", asks.poll(job_id, most_s), timeout_s=most_s + 10)
            if status != 408:
                return dict(asks.content(status, body))
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"job {job_id} has not ended within {timeout_s} s")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- parts ------------------------------------------------------------------------------------

    async def _do(self, ask: Ask[T]) -> T:
        return ask.answer(*await self._send(ask.method, ask.path, ask.body, headers=ask.headers))

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=64, keepalive_timeout=60)
            self._session = aiohttp.ClientSession(connector=connector)
        return self._session

    async def _send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        timeout_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        timeout = aiohttp.ClientTimeout(total=self._timeout_s if timeout_s is None else timeout_s)
        try:
            async with self._connected().request(
                method, self._url + path, data=body, headers=headers or HEADERS, timeout=timeout
            ) as response:
                return response.status, await response.read()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise Unavailable(f"{self._url} does not answer: {error or type(error).__name__}") from error

    async def _stream(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout_s, sock_read=SILENCE_S)
        try:
            async with self._connected().get(self._url + path, headers=headers, timeout=timeout) as response:
                if response.status >= 400:
                    asks.content(response.status, await response.read())
                is_lines = response.content_type == "text/event-stream"
                pieces = response.content if is_lines else response.content.iter_any()
                async for piece in pieces:
                    yield piece
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise Unavailable(f"the stream was cut off: {error or type(error).__name__}") from error
