"""A connection to Redis that asks its endpoint where to connect to, and tells it what it met. It has the methods that
redis-py's asynchronous client wants of one."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import hiredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import (
    InvalidResponse,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    RedisError,
    ResponseError,
)

from jqmaster.connection import plainly
from jqmaster.connection.stream import Stream, opened

_SILENT_S = 1.0  # a shorter silence says nothing of the connection, however little time its caller had
_KINDS: dict[str, type[ResponseError]] = {
    "NOPERM": NoPermissionError,
    "NOSCRIPT": NoScriptError,
    "OOM": OutOfMemoryError,
}


def _problem(text: str) -> ResponseError:
    """What an error reply stands for. Its text is that of Redis, with the code."""
    return _KINDS.get(text.partition(" ")[0], ResponseError)(text.removeprefix("ERR "))


class RedisConnection:
    """For one call at a time. All raise RedisError, and TimeoutError when a `plainly.within` is over."""

    retry = Retry(NoBackoff(), 0)
    db = 0

    def __init__(self, endpoint: Any, block_s: float = 0.0) -> None:
        """`endpoint`: an `Endpoint`. `block_s`: how long its commands block."""
        self.endpoint = endpoint
        self.generation = endpoint.generation
        self.is_line = False  # for what blocks or listens
        self._reply_s = endpoint.reply_s + block_s  # how long a reply may take
        self._sent = 0.0  # when the last command was
        self._stream: Stream | None = None
        self._reader: Any = None

    async def ready(self) -> None:
        """Connect it, if it is not connected to where its endpoint is; and anew when Redis has closed it."""
        endpoint = self.endpoint
        if self._stream is not None and self.generation == endpoint.generation and self._stream.is_open():
            return
        self.cut()
        place = await endpoint.address()  # which has a limit of its own
        self.generation = endpoint.generation
        try:
            async with plainly.within(endpoint.connect_s):
                self._stream = await opened(place, endpoint.login.context)
                self._reader = hiredis.Reader(protocolError=InvalidResponse, replyError=_problem)
                await self._greet()
        except BaseException as problem:
            self.cut()
            if isinstance(problem, RedisError | OSError):
                endpoint.unreachable(self, problem)
            if isinstance(problem, OSError):
                why = problem.strerror or str(problem) or "timeout"
                raise RedisConnectionError(f"no connection to {endpoint}: {why}") from problem
            raise

    async def _greet(self) -> None:
        login = self.endpoint.login
        commands: list[tuple[str, ...]] = []
        if login.username or login.password:
            commands.append(("AUTH", *filter(None, [login.username]), login.password or ""))
        if login.name:
            commands.append(("CLIENT", "SETNAME", login.name))
        if commands:
            await self.send_packed_command(self.pack_commands(commands))
        for _ in commands:
            await self.read_response()

    def cut(self) -> None:
        """Close it: who uses it gets an error at once."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    async def disconnect(self, *_: Any, **_more: Any) -> None:
        self.cut()

    # -- commands ---------------------------------------------------------------------------------

    def pack_commands(self, commands: Iterable[Any]) -> bytes:
        """Of redis-py's commands some are named by two words."""
        packed = (hiredis.pack_command((*str(name).split(" "), *rest)) for name, *rest in commands)
        return b"".join(packed)

    async def send_command(self, *command: Any) -> None:
        await self.send_packed_command(self.pack_commands([command]))

    async def send_packed_command(self, packed: bytes) -> None:
        if self._stream is None or (self.is_line and self.generation != self.endpoint.generation):
            raise RedisConnectionError("the server was left")
        self._sent = time.monotonic()
        try:
            await self._stream.send(packed, self._reply_s)
        except BaseException as problem:
            self._failed(problem)
            raise

    async def read_response(self, *, within_s: float | None = None, **_: Any) -> Any:
        """The next reply. With `within_s` None stands for none within so long."""
        try:
            reply = self._reader.gets()
            while reply is False:
                if self._stream is None:
                    raise RedisConnectionError("the server was left")
                piece = await self._stream.receive(self._reply_s if within_s is None else within_s)
                if piece is None and within_s is not None:
                    return None
                if piece is None:
                    raise TimeoutError
                if not piece:
                    raise RedisConnectionError("the connection was closed by the server")
                self._reader.feed(piece)
                reply = self._reader.gets()
        except BaseException as problem:
            self._failed(problem)
            raise
        if isinstance(reply, ResponseError):
            self.endpoint.refused(self, reply)
            raise reply
        return reply

    def _failed(self, problem: BaseException) -> None:
        """It cannot be used any more. Raises what stands for an OSError."""
        self.cut()
        if isinstance(problem, TimeoutError):
            if time.monotonic() > self._sent + _SILENT_S:
                self.endpoint.silent(self)
            plainly.left_s()
            raise RedisConnectionError(f"no answer within {self._reply_s:g} s") from problem
        if isinstance(problem, OSError):
            raise RedisConnectionError(f"the connection was lost: {problem}") from problem
