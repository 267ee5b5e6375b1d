"""Messages on a shard channel: gaps are told, nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator

import pytest
from redis.asyncio import Redis

from jqmaster.connection.subscriptions import listened
from jqmaster.engine.engine import connect
from parts import eventually
from servers import RedisServer
from topologies import Proxy

CHANNEL = "{t}:a"


@pytest.fixture
async def redis(fresh_server: RedisServer) -> AsyncIterator[Redis]:
    async with connect(fresh_server.url) as redis:
        yield redis


@pytest.fixture
async def messages(redis: Redis) -> AsyncIterator[AsyncGenerator[bytes | None]]:
    async with contextlib.aclosing(listened(redis, CHANNEL)) as messages:
        assert await anext(messages) is None
        yield messages


async def say(redis: Redis, text: str) -> int:
    """How many hear it."""
    return int(await redis.execute_command("SPUBLISH", CHANNEL, text))


async def test_the_first_message_is_a_gap(redis: Redis, messages: AsyncGenerator[bytes | None]) -> None:
    await say(redis, "one")
    assert await anext(messages) == b"one"
    await messages.aclose()
    await eventually(lambda: _unheard(redis))


async def _unheard(redis: Redis) -> bool:
    return await say(redis, "x") == 0


async def test_a_lost_connection_is_a_gap_and_comes_back(redis: Redis, messages: AsyncGenerator[bytes | None]) -> None:
    for _ in range(3):
        await redis.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        assert await anext(messages) == b""
        assert await anext(messages) is None
    await say(redis, "one")
    assert await anext(messages) == b"one"


async def test_silence_is_no_loss_and_has_the_listener_look(redis: Redis) -> None:
    async with contextlib.aclosing(listened(redis, CHANNEL, quiet_s=0.05)) as messages:
        assert [await anext(messages) for _ in range(5)] == [None] * 5
        await say(redis, "one")
        assert await anext(messages) == b"one"


async def test_a_connection_that_fell_silent_is_left(fresh_server: RedisServer) -> None:
    async with Proxy(fresh_server) as proxy, connect(proxy.url) as redis, asyncio.timeout(20):
        messages = listened(redis, CHANNEL, quiet_s=0.1)
        assert await anext(messages) is None
        proxy.silence()
        proxy.heal()
        while await anext(messages) is None:
            pass
        assert await anext(messages) is None
        await messages.aclose()


async def test_it_ends_in_time(redis: Redis) -> None:
    until = time.monotonic() + 0.5
    heard = [message async for message in listened(redis, CHANNEL, until)]
    assert heard and heard[0] is None
    assert until <= time.monotonic() < until + 5
