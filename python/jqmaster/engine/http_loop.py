"""Requests to a master on an event loop, by aiohttp."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp

from jqmaster.engine.http_blocking import CONNECT_S, SILENCE_S, Bounded, HttpContent, HttpResponse, NotSent

_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


class LoopSession:
    """See `Session`."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
        self._session = aiohttp.ClientSession(connector=connector, headers=headers)
        self._session._retry_connection = False  # `send` must know of each repeat

    async def request(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str], bounds: Bounded
    ) -> HttpResponse:
        timeout = aiohttp.ClientTimeout(total=bounds.answer_s, sock_connect=bounds.connect_s)
        try:
            async with self._session.request(
                method, url, data=body or None, headers=headers, timeout=timeout
            ) as response:
                return HttpResponse(response.status, await response.read(), response.content_type)
        except _UNSENT as error:
            raise NotSent(str(error)) from error
        except TimeoutError:
            raise
        except aiohttp.ClientError as error:
            raise OSError(str(error) or type(error).__name__) from error

    @asynccontextmanager
    async def stream(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[tuple[int, HttpContent]]:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S)
        try:
            async with self._session.get(url, headers=headers, timeout=timeout) as response:
                yield response.status, response.content
        except (aiohttp.ClientError, TimeoutError) as error:
            raise OSError(str(error) or type(error).__name__) from error

    async def close(self) -> None:
        await self._session.close()
