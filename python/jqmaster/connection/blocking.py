"""Connections for plain calls (`plainly`). They have the methods of redis-py's asynchronous ones, but block while they
read and write; so they serve redis-py's asynchronous client, the engine, and `Endpoint`.

There is no loop that could watch them: who waits for a reply longer than one should take probes the endpoint itself.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import hiredis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.connection import Connection
from redis.exceptions import BusyLoadingError, NoPermissionError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from jqmaster.connection import plainly
from jqmaster.connection.endpoint import GRACE_S, Endpoint
from jqmaster.connection.probed import OFTEN, REPLY_S, SLOWEST_BYTES_PER_S
from jqmaster.connection.wake import backoff_s

FRESH_S = 0.5  # one that was heard since is not asked whether it is still open
PING_EVERY_S = 2.5
_LARGE = 32_768  # bytes that a socket takes at once, or nearly


class ProbedBlocking:
    """A connection of redis-py's blocking kind that asks its endpoint where to connect to, and tells what it met."""

    kind: type[Connection]
    retry = AsyncRetry(NoBackoff(), 0)

    def __init__(self, *, endpoint: Endpoint, **settings: Any) -> None:
        self.endpoint = endpoint
        self.generation = endpoint.generation
        self.reply_s = REPLY_S
        self.is_line = False
        self.heard_at = -math.inf
        self._most_s: float = settings.get("socket_timeout") or math.inf  # as the URL says
        self._wait_s = settings["socket_timeout"] = min(REPLY_S, self._most_s)
        settings["retry"] = Retry(NoBackoff(), 0)
        self.connection: Any = self.kind(**settings)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def pack_command(self, *arguments: Any) -> list[bytes]:
        if arguments[0] in OFTEN:
            return [hiredis.pack_command(arguments)]
        packed: list[bytes] = self.connection.pack_command(*arguments)
        return packed

    def cut(self) -> None:
        """Close it; nothing is sent any more."""
        self.connection.disconnect()

    async def ready(self) -> None:
        """Connect it, if it is not connected to where its endpoint is; and anew when Redis has closed it."""
        await self.connect()
        if time.monotonic() - self.heard_at > FRESH_S:
            try:
                is_usable = not self.connection.can_read()
            except (RedisError, OSError):
                is_usable = False
            if not is_usable:
                self.cut()
                await self.connect()

    async def connect(self) -> None:
        connection, endpoint = self.connection, self.endpoint
        if connection.is_connected:
            if self.generation == endpoint.generation:
                return
            self.cut()
        address = await endpoint.address()
        self.generation = endpoint.generation
        if address is not None:
            connection.host, connection.port = address
        connection.socket_timeout = connection.socket_connect_timeout = min(endpoint.connect_s, plainly.left_s())
        try:
            connection.connect()
        except RedisError as problem:
            told = str(endpoint)
            endpoint.unreachable(self, problem)
            if isinstance(problem, RedisTimeoutError):
                raise RedisTimeoutError(f"timeout connecting to {told}") from problem
            raise
        connection.socket_timeout = self._wait_s
        connection.update_current_socket_timeout(self._wait_s)
        self.heard_at = time.monotonic()

    async def disconnect(self, *_reason: Any, **_more: Any) -> None:
        self.connection.disconnect()

    async def send_command(self, *command: Any, **_more: Any) -> None:
        await self.send_packed_command(self.pack_command(*command))

    async def send_packed_command(self, packed: Any, *_more: Any, **_more_yet: Any) -> None:
        size = len(packed) if isinstance(packed, bytes | str) else sum(map(len, packed))
        if size <= _LARGE:
            self.connection.send_packed_command(packed, check_health=False)
            return
        self.connection.update_current_socket_timeout(min(REPLY_S + size / SLOWEST_BYTES_PER_S, plainly.left_s()))
        self.connection.send_packed_command(packed, check_health=False)
        self.connection.update_current_socket_timeout(self._wait_s)

    async def read_response(self, *_more: Any, most_s: float | None = None, **_more_yet: Any) -> Any:
        """The next reply. With `most_s` None stands for none within so long."""
        try:
            return self._read(most_s)
        except RedisTimeoutError:
            return None if most_s is not None else await self._read_late()

    def _read(self, most_s: float | None) -> Any:
        """Raises RedisTimeoutError when none comes within so long, or what is usual."""
        try:
            if most_s is None:
                reply = self.connection.read_response(disconnect_on_error=False)
            else:
                reply = self.connection.read_response(timeout=most_s, disconnect_on_error=False)
        except RedisTimeoutError:
            raise
        except ResponseError as problem:
            self.endpoint.refused(self, problem)
            raise
        except BusyLoadingError as problem:
            self.endpoint.refused(self, problem)
            raise ResponseError(f"LOADING {problem}") from problem
        except BaseException:
            self.cut()
            raise
        self.heard_at = time.monotonic()
        return reply

    async def _read_late(self) -> Any:
        """A reply that has not come yet, and need not come."""
        since, is_dead = time.monotonic() - self._wait_s, False
        while True:
            try:
                silent_s = time.monotonic() - since
                if silent_s >= self.reply_s:
                    is_dead = await self.endpoint.is_served()
                if silent_s >= self._most_s or (self.is_line and self.generation != self.endpoint.generation):
                    raise RedisConnectionError("the connection was abandoned")
                left_s = plainly.left_s()
            except BaseException:
                self.cut()
                raise
            try:
                return self._read(min(GRACE_S if is_dead else self._wait_s, left_s))
            except RedisTimeoutError as problem:
                if is_dead:
                    self.cut()
                    raise RedisConnectionError("no answer on this connection") from problem


@functools.cache
def blocking_probed(kind: type[Connection]) -> Any:
    """A class of blocking connections, of redis-py's `kind`."""
    return type(f"ProbedBlocking{kind.__name__}", (ProbedBlocking,), {"kind": kind})


class Listener:
    """What comes on a shard channel, over a connection of its own."""

    def __init__(self, endpoint: Endpoint, channel: str) -> None:
        self._endpoint, self._channel = endpoint, channel
        self._stack = AsyncExitStack()
        self._line: Any = None
        self._failures = 0

    async def get(self, timeout_s: float) -> bytes | None:
        """The next message. None when none came within so long, or some may have been missed: look for yourself. The
        first is one."""
        until = time.monotonic() + timeout_s
        try:
            async with plainly.within(max(timeout_s, REPLY_S)):
                return await self._message(until)
        except (RedisError, OSError):
            await self.close()
            await plainly.pause(min(backoff_s(self._failures), max(0.0, until - time.monotonic())))
            self._failures += 1
        return None

    async def _message(self, until: float) -> bytes | None:
        if self._line is None:
            self._line = await self._stack.enter_async_context(self._endpoint.line())
            await self._line.send_command("SSUBSCRIBE", self._channel)
            await self._line.read_response()
            self._line.reply_s = math.inf
            self._failures = 0
            return None
        while (left_s := until - time.monotonic()) > 0:
            message = await self._next(min(left_s, PING_EVERY_S), left_s > PING_EVERY_S)
            if message is not None and message[0] == b"smessage":
                return bytes(message[2])
            if message is not None and message[0] == b"sunsubscribe":  # the slot went elsewhere
                await self.close()
                break
        return None

    async def _next(self, wait_s: float, pings: bool) -> Any:
        message = await self._line.read_response(most_s=wait_s)
        if message is None and pings:
            self._line.reply_s = REPLY_S
            await self._line.send_command("PING")
            with contextlib.suppress(NoPermissionError):  # a sign of life, too
                message = await self._line.read_response()
            self._line.reply_s = math.inf
        return message

    async def close(self) -> None:
        self._line = None
        await self._stack.aclose()


@asynccontextmanager
async def listening(endpoint: Endpoint, channel: str) -> AsyncIterator[Listener]:
    """Within it: the messages of `channel`."""
    messages = Listener(endpoint, channel)
    try:
        yield messages
    finally:
        await messages.close()
