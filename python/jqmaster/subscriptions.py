"""Messages on shard channels, for any number of listeners over one connection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import redis.asyncio as redis_asyncio
from redis.exceptions import RedisError

from jqmaster.wake import backoff_s, blocking_client

log = logging.getLogger("jqmaster.subscriptions")

MOST_WAITING = 1000
STOP_TIMEOUT_S = 2.0


class Messages:
    """What came for one listener. None stands for a gap: some may have been missed."""

    def __init__(self) -> None:
        self._waiting: list[bytes | None] = []
        self._came = asyncio.Event()

    async def get(self) -> bytes | None:
        while not self._waiting:
            self._came.clear()
            await self._came.wait()
        return self._waiting.pop(0)

    def put(self, message: bytes | None) -> None:
        if message is None or len(self._waiting) >= MOST_WAITING:
            # What came before is in what the listener will find when it looks for itself.
            self._waiting, message = [], None
        self._waiting.append(message)
        self._came.set()


class Subscriptions:
    """One connection to `redis`, made for the first listener and closed after the last."""

    def __init__(self, redis: redis_asyncio.Redis) -> None:
        self._redis = redis
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
            connection: Any = blocking_client(self._redis).connection_pool.make_connection()
            try:
                await connection.connect()
                # From here on who adds a channel subscribes to it; twice does no harm.
                self._connection = connection
                for channel in list(self._listeners):
                    await connection.send_command("SSUBSCRIBE", channel)
                while True:
                    kind, channel, payload = await connection.read_response(push_request=True)
                    failures = 0
                    listeners = self._listeners.get(channel)
                    if listeners is None or kind not in (b"ssubscribe", b"smessage"):
                        continue
                    if kind == b"ssubscribe":
                        self._ready.add(channel)
                    for messages in listeners:
                        messages.put(None if kind == b"ssubscribe" else payload)
            except (RedisError, OSError) as error:
                log.info("lost the subscriptions: %s", error)
            finally:
                if self._connection is connection:
                    self._connection = None
                    self._ready.clear()
                await connection.disconnect(nowait=True)
            await asyncio.sleep(backoff_s(failures))
            failures += 1
