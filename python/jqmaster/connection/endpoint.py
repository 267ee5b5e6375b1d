"""Where a namespace lives: to which server a client's connections go, and when they leave it.

One `Endpoint` belongs to each client: it is the pool of its connections, for the tasks of an event loop or for the
plain calls of all threads. All connections, those of calls and those that block or listen (`line`), ask it for the
address when they connect, and tell it what Redis refuses:

- `MOVED` tells the new address. After `READONLY`, `MASTERDOWN`, `CLUSTERDOWN`, `LOADING`, when nobody
  listens at the address, or when a reply does not come in time, it is looked up again (`topology`); a fixed
  one is resolved again. All connections go there: lines are cut at once, those of calls connect anew when
  they are used next.
"""

from __future__ import annotations

import logging
import math
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

import hiredis
import redis.asyncio as redis_asyncio
from redis.exceptions import RedisError, ResponseError

from jqmaster.connection import plainly
from jqmaster.connection.redis_connection import RedisConnection
from jqmaster.connection.url import Address
from jqmaster.errors import JQError

T = TypeVar("T")

# What blocks is sent away with UNBLOCKED when its server becomes a replica.
_WRONG_PLACE = frozenset({"MOVED", "READONLY", "CLUSTERDOWN", "MASTERDOWN", "LOADING", "UNBLOCKED"})
# ASK is one: of the two keys of a call one never exists, so while a slot moves no node can serve it.
_PASSING = _WRONG_PLACE | {"ASK", "TRYAGAIN"}

log = logging.getLogger("jqmaster.connection")

CONNECT_S = 3.0  # with TLS, password and all
CONNECT_FOUND_S = 1.5  # the same where another address may be found instead
REPLY_S = 5.0  # nothing heard for longer: the connection is dead
LEAVE_AGAIN_S = 0.5
LOOK_UP_AGAIN_S = 0.2
PASSES_S = 3.0  # how long a refusal that passes is waited out
PASSING_S = 0.1


class Login(NamedTuple):
    """Who connects, and how."""

    username: str | None = None
    password: str | None = None
    name: str | None = None
    context: ssl.SSLContext | None = None


class Finder(Protocol):
    """Knows whom to ask where a namespace lives."""

    def serve(self, namespace: str) -> None: ...

    async def find(self) -> Address: ...


def refusal(problem: Any) -> str:
    """The code of an error reply."""
    return str(problem).partition(" ")[0] if isinstance(problem, ResponseError) else ""


def is_passing(problem: Any) -> bool:
    """Whether Redis refused a call, which has changed nothing, for a reason that passes: ask again."""
    return refusal(problem) in _PASSING


async def patiently(work: Callable[[], Awaitable[T]]) -> T:
    """The result of `work`, which may be done twice, once Redis does not refuse it in passing."""
    deadline = time.monotonic() + PASSES_S
    while True:
        try:
            return await work()
        except (RedisError, JQError) as problem:
            cause = problem.__cause__ if isinstance(problem, JQError) else problem
            if not is_passing(cause) or time.monotonic() > deadline:
                raise
        await plainly.pause(PASSING_S)


class Endpoint:
    """What is known of the server behind a client, and the connections to it: what redis-py's client needs of a pool,
    with less in between."""

    connection_kwargs: Mapping[str, Any] = {"protocol": 2}

    def __init__(
        self, place: Address | str, login: Login, topology: Finder | None = None, *, connect_s: float | None = None,
        reply_s: float | None = None, most: int = 1,
    ) -> None:  # fmt: skip
        """`place`: where it is, if no `topology` knows better. `connect_s`, `reply_s`: how long connecting, and a
        reply, may take. `most`: so many connections for calls, each for one at a time."""
        self.login = login
        self.topology = topology
        self.has_functions = True  # as far as is known
        self.connect_s = connect_s or (CONNECT_S if topology is None else CONNECT_FOUND_S)
        self.reply_s = reply_s or REPLY_S  # an engine may wait longer
        self.generation = 0  # how often the connections have left a server
        self._address: Address | str | None = None if topology else place
        self._looked_up = self._left = -math.inf
        self._looking_up = plainly.Turns()
        self._failure: RedisError | None = None  # of the last look, if it found nothing
        self._lines: set[RedisConnection] = set()
        self._all: list[RedisConnection] = []  # those for calls
        self._idle: list[RedisConnection] = []  # the one that was used last is taken first
        self._free = plainly.Turns(most)

    def __str__(self) -> str:
        """Where calls go now, or whom to ask for that."""
        place = self._address or self.topology
        return ":".join(map(str, place)) if isinstance(place, tuple) else str(place)

    def serve(self, namespace: str) -> None:
        """Say which namespace is asked for. Raises Unavailable for one in another slot of a cluster."""
        if self.topology is not None:
            self.topology.serve(namespace)

    async def address(self) -> Address | str:
        """Where to connect to. Raises RedisError."""
        if self.topology is None or self._address is not None:
            assert self._address is not None
            return self._address
        async with self._looking_up:
            if self._address is None:
                if self._failure is not None and time.monotonic() < self._looked_up + LOOK_UP_AGAIN_S:
                    raise self._failure  # somebody looked just now
                try:
                    self._address, self._failure = await self.topology.find(), None
                except RedisError as problem:
                    self._failure = problem
                    raise
                finally:
                    self._looked_up = time.monotonic()
            return self._address

    @asynccontextmanager
    async def line(self, block_s: float = 0.0) -> AsyncIterator[RedisConnection]:
        """A connection for what listens, or blocks for so long. It is cut when its server is left: who uses it gets
        one of redis-py's errors, and makes another."""
        connection = RedisConnection(self, block_s)
        connection.is_line = True
        try:
            await connection.ready()
            if not plainly.is_plain():  # else its own thread sees it, when it sends the next time
                self._lines.add(connection)
            yield connection
        finally:
            self._lines.discard(connection)
            connection.cut()

    async def call(self, *command: Any) -> Any:
        """The reply to a command, the short way: redis-py's takes twice the time. Raises RedisError."""
        connection = await self.get_connection()
        try:
            await connection.send_packed_command(hiredis.pack_command(command))
            return await connection.read_response()
        finally:
            await self.release(connection)

    async def get_connection(self) -> RedisConnection:
        """One that is connected. Raises RedisError, and TimeoutError when a `plainly.within` is over."""
        await self._free.acquire()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = RedisConnection(self)
            self._all.append(connection)
        try:
            await connection.ready()
        except BaseException:
            await self.release(connection)
            raise
        return connection

    async def release(self, connection: RedisConnection) -> None:
        """Give one back."""
        self._idle.append(connection)
        self._free.release()

    async def disconnect(self, *_more: Any) -> None:
        """Close all."""
        for connection in self._all:
            connection.cut()

    aclose = disconnect

    # -- what connections tell --------------------------------------------------------------------

    def silent(self, connection: RedisConnection) -> None:
        """A reply did not come in time. Others that are as old may be dead, too."""
        self._leave(connection, "no answer", None)

    def unreachable(self, connection: RedisConnection, problem: Exception) -> None:
        """It could not connect."""
        if connection.generation == self.generation and self.topology is not None:
            log.info("no connection to %s: %s", self._address, problem)
            self._address = None

    def refused(self, connection: RedisConnection, problem: Exception) -> None:
        """Redis answered this."""
        code = refusal(problem)
        if code == "MOVED" and self.topology is None:
            log.error("%s is a node of a cluster: name it redis+cluster://…", self)
        elif code == "MOVED":
            host, _, port = str(problem).rpartition(" ")[2].rpartition(":")
            self._leave(connection, problem, (host or str(self._address and self._address[0]), int(port)))
        elif code in _WRONG_PLACE and time.monotonic() >= self._left + LEAVE_AGAIN_S:
            self._leave(connection, problem, None)

    # -- parts ------------------------------------------------------------------------------------

    def _leave(self, connection: RedisConnection, problem: object, address: Address | None) -> None:
        if connection.generation != self.generation:
            return  # it is of a server that has been left already
        log.info("leaving %s: %s", self, problem)
        self._left = time.monotonic()
        self.has_functions = True
        if self.topology is not None:
            self._address = address
        self.generation += 1
        for line in list(self._lines):
            line.cut()


def endpoint_of(redis: redis_asyncio.Redis) -> Endpoint:
    """That of a client. Raises ValueError for one that `connect` did not make."""
    endpoint: Any = redis.connection_pool
    if not isinstance(endpoint, Endpoint):
        raise ValueError("expected a Redis client that `connect` made")
    return endpoint
