"""Messages on shard channels: one connection for all who listen, gaps told, nothing left behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from jqmaster.connection.subscriptions import MOST_WAITING, Messages, Subscriptions
from jqmaster.engine.engine import connect
from parts import eventually
from servers import RedisServer


@pytest.fixture
async def redis(fresh_server: RedisServer) -> AsyncIterator[Redis]:
    async with connect(fresh_server.url) as redis:
        yield redis


@pytest.fixture
async def subscriptions(redis: Redis) -> AsyncIterator[Subscriptions]:
    subscriptions = Subscriptions(redis)
    yield subscriptions
    await subscriptions.stop()


async def shard_clients(redis: Redis) -> list[str]:
    clients = (await redis.execute_command("CLIENT", "LIST", "TYPE", "pubsub")) or b""
    text = clients.decode() if isinstance(clients, bytes) else str(clients)
    return [line for line in text.splitlines() if line]


async def test_the_first_message_is_a_gap(redis: Redis, subscriptions: Subscriptions) -> None:
    async with subscriptions.listen("{t}:a") as messages:
        assert await messages.get() is None
        await redis.execute_command("SPUBLISH", "{t}:a", "one")
        assert await messages.get() == b"one"


async def word(messages: Messages) -> bytes:
    """The next message that is no gap."""
    while (message := await messages.get()) is None:
        pass
    return message


async def test_the_connection_goes_with_the_last_listener(redis: Redis, subscriptions: Subscriptions) -> None:
    async with subscriptions.listen("{t}:a") as messages:
        await messages.get()
    await eventually(lambda: _gone(redis))


async def _gone(redis: Redis) -> bool:
    return not await shard_clients(redis)


async def test_a_lost_connection_is_a_gap_and_comes_back(redis: Redis, subscriptions: Subscriptions) -> None:
    async with subscriptions.listen("{t}:a") as messages:
        for _ in range(3):
            assert await messages.get() is None
            await redis.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        assert await messages.get() is None
        await redis.execute_command("SPUBLISH", "{t}:a", "one")
        assert await word(messages) == b"one"


async def test_silence_is_no_loss_also_for_who_may_not_ping(
    redis: Redis, fresh_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jqmaster.connection.subscriptions.PING_EVERY_S", 0.05)
    await redis.execute_command("ACL", "SETUSER", "deaf", "on", ">secret", "~*", "&*", "+@all", "-ping")
    for user in ("", "deaf:secret@"):
        async with connect(f"unix://{user}{fresh_server.socket}") as client:
            subscriptions = Subscriptions(client)
            async with subscriptions.listen("{t}:a") as messages:
                assert await messages.get() is None
                await asyncio.sleep(0.5)
                await redis.execute_command("SPUBLISH", "{t}:a", "one")
                assert await messages.get() == b"one"
            await subscriptions.stop()


async def test_who_is_far_behind_gets_a_gap(redis: Redis, subscriptions: Subscriptions) -> None:
    async with subscriptions.listen("{t}:a") as messages:
        assert await messages.get() is None
        for number in range(MOST_WAITING + 5):
            await redis.execute_command("SPUBLISH", "{t}:a", str(number))
        await eventually(lambda: list(messages._waiting._queue)[-1:] == [str(MOST_WAITING + 4).encode()])
        assert await messages.get() is None


async def test_listeners_come_and_go(redis: Redis, subscriptions: Subscriptions) -> None:
    rolls = random.Random(7)

    async def come_and_go(number: int) -> None:
        for _ in range(20):
            channel = f"{{t}}:{rolls.randrange(3)}"
            async with subscriptions.listen(channel) as messages:
                own = f"{number}".encode()
                while (message := await messages.get()) != own:
                    if message is None:
                        await redis.execute_command("SPUBLISH", channel, own)

    await asyncio.gather(*(come_and_go(number) for number in range(20)))
    await eventually(lambda: _gone(redis))
    assert subscriptions._listeners == {}
