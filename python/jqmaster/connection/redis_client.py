"""A client of Redis: where a namespace lives, the connections that go there, and calls over them."""

from __future__ import annotations

import contextlib
import logging
import math
import ssl
import time
from typing import Any, NamedTuple, Protocol

import redis.asyncio
from redis.exceptions import ResponseError

from jqmaster.connection import plainly
from jqmaster.connection.redis_connection import RedisConnection
from jqmaster.connection.url import Address

# What blocks is sent away with UNBLOCKED when its server becomes a replica.
_WRONG_PLACE = frozenset({"MOVED", "READONLY", "CLUSTERDOWN", "MASTERDOWN", "LOADING", "UNBLOCKED"})
# ASK is one: of the two keys of a call one never exists, so while a slot moves no node can serve it.
_PASSING = _WRONG_PLACE | {"ASK", "TRYAGAIN"}

log = logging.getLogger("jqmaster.connection")

CONNECT_S = 2.0  # with TLS, password and all
REPLY_S = 5.0  # nothing heard for longer: the connection is dead
LEAVE_AGAIN_S = 0.5
PASSES_S = 3.0  # how long a refusal that passes is waited out
PASSING_S = 0.1


class Login(NamedTuple):
    """What a connection begins with."""

    commands: tuple[tuple[str, ...], ...] = ()
    context: ssl.SSLContext | None = None


class Finder(Protocol):
    """Knows where a namespace may live. `tries`: so many places of its are tried before connecting fails."""

    tries: int

    async def find(self) -> Address | str: ...


def refusal(problem: Any) -> str:
    """The code of an error reply."""
    return str(problem).partition(" ")[0] if isinstance(problem, ResponseError) else ""


class RedisClient(redis.asyncio.Redis):
    """Has redis-py's commands, each of them a `call`, for the tasks of an event loop or for the plain calls of all
    threads (`plainly`); one connection for each call at a time. In a cluster it is for one namespace.

    Calls go to one server, and leave it: `MOVED` tells the new address. After `READONLY`, `MASTERDOWN`, `CLUSTERDOWN`,
    `LOADING`, when nobody listens, or when a reply does not come in time, it is looked up again. Connections that block
    or listen are cut then, others connect anew when they are used next.
    """

    def __init__(
        self, finder: Finder, login: Login, *, connect_s: float = CONNECT_S, reply_s: float = REPLY_S, most: int = 1
    ) -> None:
        """`connect_s`, `reply_s`: how long connecting, and a reply, may take. `most`: so many calls at a time."""
        super().__init__(protocol=2)  # for the commands alone: what it has of connections stays empty
        self.finder, self.login = finder, login
        self.connect_s = connect_s
        self.reply_s = reply_s  # an engine may wait longer
        self.generation = 0  # how often the connections have left a server
        self.lines: set[RedisConnection] = set()  # those that block or listen, of an event loop
        self._place: Address | str | None = None
        self._left = -math.inf
        self._finding = plainly.Turns()
        self._idle: list[RedisConnection] = []  # the one that was used last is taken first
        self._all: list[RedisConnection] = []
        self._free = plainly.Turns(most)

    def __str__(self) -> str:
        """Where calls go now, or who is asked for that."""
        place = self._place or self.finder
        return ":".join(map(str, place)) if isinstance(place, tuple) else str(place)

    async def call(self, *command: Any) -> Any:
        """The reply to a command. What Redis refuses for a reason that passes has changed nothing, and is asked again.
        Raises RedisError, and TimeoutError when a `plainly.within` is over."""
        began, code = time.monotonic(), ""
        while True:
            await self._free.acquire()
            try:
                return await self.ask(*command)
            except ResponseError as problem:
                before, code = code, refusal(problem)
                is_told = code == "MOVED" != before  # who has it: who is asked at once, however late
                if code not in _PASSING or (not is_told and time.monotonic() > began + PASSES_S):
                    raise
            finally:
                self._free.release()
            if not is_told:
                await plainly.pause(PASSING_S)

    async def ask(self, *command: Any, block_s: float = 0.0) -> Any:
        """The same once, whatever is refused, for a command that blocks for so long."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = RedisConnection(self)
            self._all.append(connection)
        if block_s:
            self.lines.add(connection)
        try:
            await connection.ready()
            await connection.send(*command)
            return await connection.read(block_s)
        except ResponseError:
            raise
        except BaseException:
            connection.cut()  # whatever it was that came between: a reply that is still to come is nobody's
            raise
        finally:
            self.lines.discard(connection)
            self._idle.append(connection)

    async def execute_command(self, *command: Any, **options: Any) -> Any:
        """As redis-py's commands want it: some are named by two words, some replies become something else."""
        name, *arguments = command
        reply = await self.call(*name.split(), *arguments)
        options.pop("keys", None)
        return self.response_callbacks[name](reply, **options) if name in self.response_callbacks else reply

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Close all connections."""
        for connection in self._all:
            connection.cut()

    # -- for connections --------------------------------------------------------------------------

    async def place(self) -> Address | str:
        """Where to connect to. Raises RedisError."""
        if (place := self._place) is None:
            # Plain calls look beside each other: a signal handler may end one before it gives its turn back.
            async with contextlib.nullcontext() if plainly.is_plain() else self._finding:
                place = self._place = self._place or await self.finder.find()
        return place

    def unreachable(self, connection: RedisConnection, problem: Exception) -> None:
        """It could not connect."""
        if connection.generation == self.generation:
            log.info("no connection to %s: %s", self, problem)
            self._place = None

    def refused(self, connection: RedisConnection, problem: Exception) -> None:
        """Redis answered this."""
        code = refusal(problem)
        if code == "MOVED":
            host, _, port = str(problem).rpartition(" ")[2].rpartition(":")
            self.leave(connection, problem, (host or str(self._place and self._place[0]), int(port)))
        elif code in _WRONG_PLACE and time.monotonic() >= self._left + LEAVE_AGAIN_S:
            self.leave(connection, problem)

    def leave(self, connection: RedisConnection, problem: object, place: Address | None = None) -> None:
        """The server of this connection is none any more, or does not answer: others as old may be dead, too."""
        if connection.generation != self.generation:
            return  # it is of a server that has been left already
        log.info("leaving %s: %s", self, problem)
        self._left = time.monotonic()
        self._place = place
        self.generation += 1
        for line in list(self.lines):
            line.cut()
