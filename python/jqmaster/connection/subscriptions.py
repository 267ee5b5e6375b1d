"""Messages on a shard channel, for plain calls and for tasks of an event loop."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import AsyncGenerator

from redis.exceptions import RedisError

from jqmaster.connection import plainly
from jqmaster.connection.redis_client import RedisClient
from jqmaster.connection.redis_connection import RedisConnection
from jqmaster.connection.wake import backoff_s

log = logging.getLogger("jqmaster.subscriptions")

QUIET_S = 2.5


async def listened(
    redis: RedisClient, channel: str, until: float = math.inf, *, quiet_s: float = QUIET_S
) -> AsyncGenerator[bytes | None]:
    """What comes on a channel up to a moment, over a connection of its own.

    None says to look for yourself: from now on everything is heard, what came before may have been missed. It is the
    first of all, and comes again when nothing was said for `quiet_s`, in which time a dead connection is found out.
    While nothing can be heard, empty messages come instead.
    """
    failures, line = 0, RedisConnection(redis)
    if not plainly.is_plain():  # else its own thread sees that the server was left, when it asks the next time
        redis.lines.add(line)
    try:
        while (left_s := until - time.monotonic()) > 0:
            try:
                async with plainly.within(left_s):
                    await line.ready()
                    await line.send("SSUBSCRIBE", channel)  # any number of times: it is answered
                    message = await line.read()
                failures = 0
                while message is not None and message[0] != b"sunsubscribe":  # then the slot went elsewhere
                    yield bytes(message[2]) if message[0] == b"smessage" else None
                    message = await line.read(within_s=min(max(0.0, until - time.monotonic()), quiet_s))
                if message is None:
                    continue
            except (RedisError, OSError) as error:
                log.info("lost a subscription: %s", error)
            await plainly.pause(min(backoff_s(failures), max(0.0, until - time.monotonic())))
            failures += 1
            yield b""
    finally:
        redis.lines.discard(line)
        line.cut()
