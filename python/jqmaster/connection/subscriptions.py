"""Messages on shard channels, for any number of listeners over one connection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import redis.asyncio as redis_asyncio
from redis.exceptions import NoPermissionError, RedisError

from jqmaster.connection.endpoint import endpoint_of
from jqmaster.connection.probed import REPLY_S
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
                async with self._endpoint.line(math.inf) as line:
                    # From here on who adds a channel subscribes to it; twice does no harm.
                    self._connection = line
                    for channel in list(self._listeners):
                        await line.send_command("SSUBSCRIBE", channel)
                    while True:
                        message = await self._next(line)
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

    async def _next(self, line: Any) -> Any:
        """What comes next. When nothing does for a while, Redis is asked for a sign of life, and probed
        as for any other reply."""
        line.reply_s = math.inf
        try:
            message = await line.read_response(timeout=self._ping_every_s, push_request=True)
            if message is None:
                line.reply_s = REPLY_S
                await line.send_command("PING", check_health=False)
                message = await line.read_response(push_request=True)
            return message
        except NoPermissionError as problem:
            if "'ping'" not in str(problem):
                raise
            return None  # a sign of life, too

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
