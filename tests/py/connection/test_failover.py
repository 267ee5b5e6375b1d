"""Redis fails over, pauses, moves or falls silent: all find their way back, and nobody is restarted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest
from redis.asyncio import Redis

from failovers import NAMESPACE, SOON_S, Client
from jqmaster import JQ
from jqmaster.connection.wake import Channel, sleep
from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import Unavailable
from parts import enqueue, eventually
from servers import RedisServer
from topologies import Node, Proxy, Sentinels, until

pytestmark = pytest.mark.faults


@pytest.fixture
async def redis(fresh_server: RedisServer) -> AsyncIterator[Redis]:
    async with connect(fresh_server.url) as redis:
        yield redis


async def test_sleepers_that_leave_during_a_pause_do_not_crash_redis(fresh_server: RedisServer, redis: Redis) -> None:
    """Redis 7.0 panics at CLIENT UNBLOCK of a command that CLIENT PAUSE or FAILOVER holds back."""
    channels = [Channel(redis, f"{{t}}:wake:{number}") for number in range(4)]
    for _ in range(12):
        await redis.execute_command("CLIENT", "PAUSE", 250, "WRITE")
        # Their BZPOPMIN is held back, and the sleepers leave it.
        await asyncio.gather(*(sleep([channel], 0.02) for channel in channels))
        await asyncio.sleep(0.15)
        await redis.execute_command("CLIENT", "UNPAUSE")
    leaving = Channel(redis, "{t}:wake:leaving")
    sleeping = asyncio.create_task(sleep([leaving], SOON_S))
    await redis.execute_command("CLIENT", "PAUSE", 3000, "WRITE")
    await asyncio.sleep(0.05)
    await leaving.stop()
    await sleeping
    for channel in channels:
        await channel.stop()
    with contextlib.closing(fresh_server.client()) as client:
        assert client.ping()
    assert fresh_server.process is not None and fresh_server.process.poll() is None


async def test_a_primary_that_became_a_replica_is_left(pair: list[Node]) -> None:
    """Behind an address that goes to the new primary, with all connections to the old one kept open."""
    async with Proxy(pair[0]) as proxy, Client(proxy.url) as client:

        async def swap() -> None:
            await asyncio.to_thread(pair[1].follow, None)
            proxy.target = pair[1]
            await asyncio.to_thread(pair[0].follow, pair[1])
            await asyncio.to_thread(until, pair[0].has_caught_up)

        await client.goes_on(swap, 1.5)


async def test_calls_leave_a_primary_that_became_a_replica(pair: list[Node]) -> None:
    async with Proxy(pair[0]) as proxy, connect(proxy.url) as redis:
        engine = Engine(redis, NAMESPACE)
        await enqueue(engine)
        await asyncio.to_thread(until, lambda: pair[0].offset() == pair[1].offset())
        await asyncio.to_thread(pair[1].follow, None)
        proxy.target = pair[1]
        await asyncio.to_thread(pair[0].follow, pair[1])
        await enqueue(engine)


async def test_links_that_fell_silent_are_found_out(fresh_server: RedisServer) -> None:
    async with Proxy(fresh_server) as proxy, Client(proxy.url) as client:

        async def cut() -> None:
            proxy.silence()
            await asyncio.sleep(6)
            proxy.heal()

        await client.goes_on(cut, 5)


async def test_no_end_is_denied_while_redis_cannot_be_heard(fresh_server: RedisServer) -> None:
    async with Proxy(fresh_server) as proxy, Client(proxy.url) as client:
        job = await enqueue(client.engine)
        handle = JQ(proxy.url, namespace=NAMESPACE).handle(job)
        with pytest.raises(TimeoutError):
            await handle.ajoin(0.05)
        wait = asyncio.create_task(client.ended.wait(job.encode(), 1))
        await asyncio.sleep(0.3)
        proxy.silence()
        with pytest.raises(Unavailable):
            await asyncio.wait_for(wait, 60)
        with pytest.raises(Unavailable):  # and no TimeoutError, which says that it goes on
            await asyncio.wait_for(handle.ajoin(0.2), 60)


@pytest.fixture
def sentinels(pair: list[Node]) -> Iterator[Sentinels]:
    with Sentinels(pair[0]) as sentinels:
        yield sentinels


async def test_sentinels_are_followed_to_the_next_primary(sentinels: Sentinels, pair: list[Node]) -> None:
    async with Client(sentinels.url) as client:

        async def fail_over() -> None:
            await asyncio.to_thread(sentinels.failover)
            await eventually(pair[1].is_primary)

        await client.goes_on(fail_over, 3)
