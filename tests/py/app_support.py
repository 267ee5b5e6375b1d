"""Workers of a `JQ` in a thread, and its transports as test parameters."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from http_live import live_server
from jqmaster import JQ


@contextlib.contextmanager
def working(jq: JQ, **options: Any) -> Iterator[None]:
    """A worker that works meanwhile."""
    started, stops = threading.Event(), []

    async def main() -> None:
        stop = asyncio.Event()
        stops.append((asyncio.get_running_loop(), stop))
        started.set()
        await jq.worker(**options).serve(stop)

    errors: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert started.wait(20)
        yield
    finally:
        loop, stop = stops[0]
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


@contextlib.contextmanager
def transport(kind: str, redis_url: str, namespace: str, **options: Any) -> Iterator[JQ]:
    """A `JQ` by the scripts (`redis`), or by a master (`http`)."""
    if kind == "redis":
        jq = JQ(redis_url, namespace=namespace, **options)
        yield jq
        jq.close()
        return
    with live_server(redis_url, namespace) as server:
        jq = JQ(server.url, **options)
        yield jq
        jq.close()


@pytest.fixture(params=["redis", "http"])
def jq(request: pytest.FixtureRequest, redis_url: str, namespace: str) -> Iterator[JQ]:
    """The same calls on both transports."""
    with transport(request.param, redis_url, namespace) as it:
        yield it
