"""A connection to Redis that asks its client where to connect to, and tells it what it met."""

from __future__ import annotations

import time
from typing import Any

import hiredis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, RedisError, ResponseError

from jqmaster.connection import plainly
from jqmaster.connection.stream import Stream, opened

_SILENT_S = 1.0  # a shorter silence says nothing of the connection, however little time its caller had
_NUMBERS = (int, float)  # named here: to make `int | float` for each argument takes longer than all else of a send


class RedisConnection:
    """For one call at a time. All raise RedisError, and TimeoutError when a `plainly.within` is over."""

    def __init__(self, client: Any) -> None:
        """`client`: a `RedisClient`."""
        self.client = client
        self.generation = client.generation
        self._sent = 0.0  # when the last command was
        self._stream: Stream | None = None
        self._reader: Any = None

    async def ready(self) -> None:
        """Connect it, if it is not connected to where its client is; and anew when Redis has closed it."""
        if self._stream is not None and self.generation == self.client.generation and self._stream.is_open():
            return
        self.cut()
        tries = self.client.finder.tries
        while True:
            tries -= 1
            place = await self.client.place()  # which has a limit of its own
            self.generation = self.client.generation
            try:
                async with plainly.within(self.client.connect_s):
                    self._stream = await opened(place, self.client.login.context)
                    self._reader = hiredis.Reader(protocolError=InvalidResponse, replyError=ResponseError)
                    for command in self.client.login.commands:
                        await self.send(*command)
                        await self.read()
                return
            except (RedisError, OSError) as problem:
                self.cut()  # what calls by it would do so as the default user
                self.client.unreachable(self, problem)
                if tries:
                    continue
                if isinstance(problem, OSError):
                    why = problem.strerror or str(problem) or "timeout"
                    raise RedisConnectionError(f"no connection to {self.client}: {why}") from problem
                raise
            except BaseException:
                self.cut()
                raise

    def cut(self) -> None:
        """Close it: who uses it gets an error at once."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    async def send(self, *command: Any) -> None:
        """Raises RedisError when the server was left meanwhile."""
        self._sent = time.monotonic()
        try:
            if self._stream is None:
                raise ConnectionError("the server was left")
            # hiredis dies when a signal handler raises while it makes text of a number.
            texts: Any = tuple(str(one) if isinstance(one, _NUMBERS) else one for one in command)
            await self._stream.send(hiredis.pack_command(texts), self.client.reply_s)
        except BaseException as problem:
            self._failed(problem)
            raise

    async def read(self, block_s: float = 0.0, *, within_s: float | None = None) -> Any:
        """The next reply, of a command that blocks for so long. With `within_s` None stands for none within so long."""
        try:
            while (reply := self._reader.gets()) is False:
                if self._stream is None:
                    raise ConnectionError("the server was left")
                piece = await self._stream.receive(self.client.reply_s + block_s if within_s is None else within_s)
                if not piece:
                    raise ConnectionError("closed by the server")
                self._reader.feed(piece)
        except BaseException as problem:
            if within_s is not None and isinstance(problem, TimeoutError):
                return None
            self._failed(problem)
            raise
        if isinstance(reply, ResponseError):
            self.client.refused(self, reply)
            raise reply
        return reply

    def _failed(self, problem: BaseException) -> None:
        """It cannot be used any more. Raises what stands for an OSError."""
        self.cut()
        if isinstance(problem, TimeoutError):
            if time.monotonic() > self._sent + _SILENT_S:
                self.client.leave(self, "no answer")
            plainly.left_s()
            raise RedisConnectionError("no answer in time") from problem
        if isinstance(problem, OSError):
            raise RedisConnectionError(f"the connection was lost: {problem}") from problem
