"""Redis fails over, pauses, moves or falls silent: everybody finds their way back, and nobody has to be restarted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from jqmaster.engine import connect
from jqmaster.wake import Channel
from servers import RedisServer

SOON_S = 20.0


@pytest.fixture
async def redis(fresh_server: RedisServer) -> AsyncIterator[Redis]:
    async with connect(fresh_server.url) as redis:
        yield redis


async def test_sleepers_that_leave_during_a_pause_do_not_crash_redis(
    fresh_server: RedisServer, redis: Redis
) -> None:
    """Redis 7.0 panics at CLIENT UNBLOCK of a command that CLIENT PAUSE or FAILOVER holds back."""
    channels = [Channel(redis, f"{{t}}:wake:{number}") for number in range(4)]
    for _ in range(12):
        await redis.execute_command("CLIENT", "PAUSE", 250, "WRITE")
        # Their BZPOPMIN is held back, and the sleepers leave it.
        await asyncio.gather(*(channel.sleep(0.02) for channel in channels))
        await asyncio.sleep(0.15)
        await redis.execute_command("CLIENT", "UNPAUSE")
    leaving = Channel(redis, "{t}:wake:leaving")
    sleeping = asyncio.create_task(leaving.sleep(SOON_S))
    await redis.execute_command("CLIENT", "PAUSE", 3000, "WRITE")
    await asyncio.sleep(0.05)
    await leaving.stop()
    await sleeping
    for channel in channels:
        await channel.stop()
    with contextlib.closing(fresh_server.client()) as client:
        assert client.ping()
    assert fresh_server.process is not None and fresh_server.process.poll() is None
