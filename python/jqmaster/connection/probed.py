"""A connection that asks its endpoint where to connect to, and tells it what it met."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import time
from collections.abc import Callable
from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import BusyLoadingError, NoPermissionError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

REPLY_S = 1.0  # nothing heard for longer: the connection is probed
OFTEN = frozenset(["FCALL", "EVALSHA"])
SLOWEST_BYTES_PER_S = 100_000  # a command that is sent so slowly is still under way


class ProbedConnection(AbstractConnection):
    """What each class of connections has in addition."""

    def __init__(self, *, endpoint: Any, **settings: Any) -> None:
        """`endpoint`: an `Endpoint`."""
        self.endpoint = endpoint
        self.generation = endpoint.generation
        self.heard_at = -math.inf
        self.reply_s = REPLY_S
        self.sending_s = 0.0  # how long what was sent last may take on its way
        self.is_line = False
        self.transport: asyncio.WriteTransport | None = None
        self.is_at_end: Callable[[], bool] = lambda: False
        super().__init__(**settings)

    def pack_command(self, *arguments: Any) -> list[bytes]:
        """As redis-py's, in C for what is called all the time."""
        if arguments[0] in OFTEN:
            return [hiredis.pack_command(arguments)]
        packed: list[bytes] = super().pack_command(*arguments)
        return packed

    def cut(self) -> None:
        """Break it: who uses it gets an error at once. Unsent data would keep it from closing."""
        if self.transport is not None:
            self.transport.abort()

    def is_late(self, now: float) -> bool:
        """Whether a reply should have come."""
        return self.heard_at + self.reply_s + self.sending_s < now

    def to_send(self) -> int:
        """How many bytes wait for the network."""
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    async def blocking(self, block_s: float, *command: Any) -> Any:
        """The reply to a command that may block for so long. A small one goes ahead: it is held back as the
        other would be, and else answered at once, so that the time of the other begins when Redis begins
        with it, however long a pause was."""
        self.reply_s = REPLY_S
        await self.send_packed_command(self.pack_commands([self.endpoint.small, command]))
        with contextlib.suppress(NoPermissionError):
            await self.read_response()
        self.reply_s = block_s + REPLY_S
        return await self.read_response()

    async def ready(self) -> None:
        """Connect it, if it is not connected to where its endpoint is; and anew when Redis has closed it."""
        await self.connect()
        if self.is_at_end():
            await self.disconnect(nowait=True)
            await self.connect()

    async def connect(self) -> None:
        if self.is_connected:
            if self.generation == self.endpoint.generation:
                return
            self.cut()
            await self.disconnect(nowait=True)
        kind: Any = super()
        await self.endpoint.address()  # which has a limit of its own
        try:
            async with asyncio.timeout(self.endpoint.connect_s):
                await kind.connect()
        except RedisError as problem:
            self.endpoint.unreachable(self, problem)
            raise
        except TimeoutError as problem:
            self.cut()
            await self.disconnect(nowait=True)
            self.endpoint.unreachable(self, problem)
            raise RedisTimeoutError(f"timeout connecting to {self.endpoint}") from problem

    async def _connect(self) -> None:
        address = await self.endpoint.address()
        self.generation = self.endpoint.generation
        if address is not None:
            self.host, self.port = address
        # Private names of redis-py, which has no hook for a socket that is new: where to connect to is only known then,
        # and whether Redis is alive tells each byte that comes, not only a whole reply.
        kind: Any = super()
        await kind._connect()
        connection: Any = self
        reader, self.transport = connection._reader, connection._writer.transport
        feed = reader.feed_data

        def heard(data: bytes) -> None:
            self.heard_at = time.monotonic()
            feed(data)

        reader.feed_data = heard
        self.is_at_end = reader.at_eof

    async def send_packed_command(self, command: Any, *arguments: Any, **more: Any) -> None:
        size = len(command) if isinstance(command, bytes | str) else sum(map(len, command))
        self.sending_s = size / SLOWEST_BYTES_PER_S
        self.endpoint.awaits(self)
        try:
            await super().send_packed_command(command, *arguments, **more)
        finally:
            self.endpoint.got(self)

    async def read_response(self, *arguments: Any, **more: Any) -> Any:
        self.endpoint.awaits(self)
        try:
            return await super().read_response(*arguments, **more)
        except RedisError as problem:
            self.endpoint.refused(self, problem)
            if isinstance(problem, BusyLoadingError):
                # An answer like any other. redis-py takes it for a lost connection: a pipeline would end here.
                raise ResponseError(f"LOADING {problem}") from problem
            raise
        finally:
            self.endpoint.got(self)


@functools.cache
def probed(kind: type[AbstractConnection]) -> Any:
    """A class of connections, with that; or one that has the like already."""
    if issubclass(kind, ProbedConnection) or not issubclass(kind, AbstractConnection):
        return kind
    return type(f"Probed{kind.__name__}", (ProbedConnection, kind), {})
