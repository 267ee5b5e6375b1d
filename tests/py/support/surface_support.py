"""A `JQ` straight on Redis and by a master, and its methods called plain and in coroutines."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from jqmaster import JQ
from jqmaster.engine.engine import Engine, connect
from jqmaster.server.server import ServeOptions, Server


@pytest.fixture
async def server(redis_url: str, namespace: str) -> AsyncIterator[Server]:
    async with Server(ServeOptions(redis_url=redis_url, namespace=namespace, port=0)) as server:
        yield server


@pytest.fixture
async def own(redis_url: str, namespace: str, server: Server) -> AsyncIterator[Engine]:
    async with connect(redis_url) as redis:
        yield Engine(redis, namespace)


Call = Callable[..., Awaitable[Any]]


@pytest.fixture(params=["redis", "http"])
def jq(request: pytest.FixtureRequest, redis_url: str, namespace: str, server: Server) -> JQ:
    return JQ(redis_url, namespace=namespace) if request.param == "redis" else JQ(server.url)


@pytest.fixture(params=["plain", "async"])
def call(request: pytest.FixtureRequest, jq: JQ) -> Call:
    """Calls a method of `jq` or of a job by name, plain or its twin. What it gives one by one comes as a list."""

    async def ask(method: str, *args: Any, of: Any = jq, **more: Any) -> Any:
        if request.param == "plain":
            answer = await asyncio.to_thread(getattr(of, method), *args, **more)
            return await asyncio.to_thread(list, answer) if inspect.isgenerator(answer) else answer
        answer = getattr(of, f"a{method}")(*args, **more)
        return [one async for one in answer] if inspect.isasyncgen(answer) else await answer

    return ask


async def put(jq: JQ, count: int = 1, **options: Any) -> list[Any]:
    """So many jobs named `a`, their numbers as arguments."""
    return await jq.aenqueue_many(jq.new_job("a", number, **options) for number in range(count))
