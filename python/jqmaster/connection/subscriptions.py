"""Messages on shard channels: for any number of listeners of an event loop over one connection, and for a plain call
over one of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import redis.asyncio as redis_asyncio
from redis.exceptions import RedisError

from jqmaster.connection import plainly
from jqmaster.connection.endpoint import Endpoint, endpoint_of
from jqmaster.connection.redis_connection import REPLY_S
from jqmaster.connection.wake import backoff_s

log = logging.getLogger("jqmaster.subscriptions")

MOST_WAITING = 1000
PING_EVERY_S = 2.5
STOP_TIMEOUT_S = 2.0


class Messages:
    """What came for one listener. None stands for a gap: some may have been missed."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_WAITING)

    async def get(self) -> bytes | None:
        return await self._waiting.get()

    def put(self, message: bytes | None) -> None:
        if message is None or self._waiting.full():
            # What came before is in what the listener will find when it looks for itself.
            while not self._waiting.empty():
                self._waiting.get_nowait()
            message = None
        self._waiting.put_nowait(message)


class Subscriptions:
    """One connection to `redis`, made for the first listener and closed after the last. `ping_every_s`: after so
    long in silence it is asked whether it is there still."""

    def __init__(self, redis: redis_asyncio.Redis, *, ping_every_s: float = PING_EVERY_S) -> None:
        self._ping_every_s = ping_every_s
        self._endpoint = endpoint_of(redis)
        self._listeners: dict[bytes, set[Messages]] = {}
        self._ready: set[bytes] = set()  # channels that are subscribed to
        self._connection: Any = None
        self._reader: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[Messages]:
        """The messages of `channel`, the first of which is a gap. Who looks for themselves at each gap misses
        nothing."""
        name, messages = channel.encode(), Messages()
        others = self._listeners.setdefault(name, set())
        is_first = not others
        others.add(messages)
        try:
            if self._reader is None or self._reader.done():
                self._reader = asyncio.create_task(self._read(), name="subscriptions")
            elif is_first:
                await self._send("SSUBSCRIBE", name)
            elif name in self._ready:
                messages.put(None)
            yield messages
        finally:
            others.discard(messages)
            if not others and self._listeners.get(name) is others:
                del self._listeners[name]
                self._ready.discard(name)
                await self._send("SUNSUBSCRIBE", name)
            if not self._listeners and self._reader is not None:
                self._reader.cancel()
                self._reader = None

    def is_ready(self, channel: str) -> bool:
        """Whether messages of a channel that somebody listens to are heard now."""
        return channel.encode() in self._ready

    async def stop(self) -> None:
        """Close the connection; everybody gets a gap. Bounded by `STOP_TIMEOUT_S`."""
        self.tell_all()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait({self._reader}, timeout=STOP_TIMEOUT_S)

    def tell_all(self) -> None:
        """A gap for everybody: have them look."""
        for listeners in self._listeners.values():
            for messages in listeners:
                messages.put(None)

    # -- parts ------------------------------------------------------------------------------------

    async def _send(self, *command: Any) -> None:
        """Without a connection the next one subscribes to all there is."""
        if self._connection is not None:
            with contextlib.suppress(RedisError, OSError):
                await self._connection.send_command(*command)

    async def _read(self) -> None:
        failures = 0
        while True:
            try:
                async with self._endpoint.line() as line:
                    # From here on who adds a channel subscribes to it; twice does no harm.
                    self._connection = line
                    for channel in list(self._listeners):
                        await line.send_command("SSUBSCRIBE", channel)
                    while True:
                        message = await line.heard(self._ping_every_s)
                        failures = 0
                        if isinstance(message, list):
                            await self._take(line, *message)
            except (RedisError, OSError) as error:
                log.info("lost the subscriptions: %s", error)
            finally:
                self._connection = None
                self._ready.clear()
            await asyncio.sleep(backoff_s(failures))
            failures += 1

    async def _take(self, line: Any, kind: bytes, channel: bytes, payload: Any = None) -> None:
        listeners = self._listeners.get(channel)
        if not listeners:
            return
        if kind == b"sunsubscribe":
            # Redis says so unasked when the slot goes elsewhere. It may have come back: try here first.
            self._ready.discard(channel)
            await line.send_command("SSUBSCRIBE", channel)
        elif kind in (b"ssubscribe", b"smessage"):
            if kind == b"ssubscribe":
                self._ready.add(channel)
            for messages in listeners:
                messages.put(None if kind == b"ssubscribe" else payload)


async def listened(endpoint: Endpoint, channel: str, until: float) -> AsyncGenerator[bytes | None]:
    """What comes on a shard channel up to a moment, over a connection of its own: for a plain call. None, the first of
    them at once, stands for a gap: some may have been missed, look for yourself."""

    async def within(work: Awaitable[Any]) -> Any:
        async with plainly.within(max(REPLY_S, until - time.monotonic())):
            return await work

    failures = 0
    while time.monotonic() < until:
        try:
            async with AsyncExitStack() as stack:
                line = await within(stack.enter_async_context(endpoint.line()))
                await line.send_command("SSUBSCRIBE", channel)
                await within(line.read_response())
                failures = 0
                yield None
                while (left_s := until - time.monotonic()) > 0:
                    message = await within(line.heard(min(left_s, PING_EVERY_S), pings=left_s > PING_EVERY_S))
                    if isinstance(message, list) and message[0] == b"smessage":
                        yield bytes(message[2])
                    elif isinstance(message, list) and message[0] == b"sunsubscribe":  # the slot went elsewhere
                        break
                    else:
                        yield None
        except (RedisError, OSError):
            await plainly.pause(min(backoff_s(failures), max(0.0, until - time.monotonic())))
            failures += 1
            yield None
