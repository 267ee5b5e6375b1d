"""Where a namespace lives: to which server a client's connections go, and when they leave it.

One `Endpoint` belongs to each pool of connections. All connections, those of calls and those that block or
listen (`line`), ask it for the address when they connect, and tell it what Redis refuses and for how long
they have heard nothing:

- `MOVED` tells the new address. After `READONLY`, `MASTERDOWN`, `CLUSTERDOWN`, `LOADING`, or when nobody
  listens at the address, it is looked up again (`topology`); a fixed one is resolved again. All connections
  go there: lines are cut at once, those of calls connect anew when they are used next.
- When a reply is late, the connection is probed: a new one asks Redis something small.
  When that is answered, those that asked before and still hear nothing are dead, and are cut: so a slow Redis
  is never taken for a dead connection. When it is not answered, the address is looked up again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import redis.asyncio as redis_asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    BusyLoadingError,
    ClusterDownError,
    MovedError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)

from jqmaster.connection import plainly
from jqmaster.connection.probed import REPLY_S, probed
from jqmaster.connection.topology import Topology
from jqmaster.connection.url import Address
from jqmaster.errors import JQError

T = TypeVar("T")

_CODES: dict[type, str] = {
    MovedError: "MOVED",
    AskError: "ASK",
    TryAgainError: "TRYAGAIN",
    ReadOnlyError: "READONLY",
    ClusterDownError: "CLUSTERDOWN",
    BusyLoadingError: "LOADING",
}
# What blocks is sent away with UNBLOCKED when its server becomes a replica.
_WRONG_PLACE = frozenset({"MOVED", "READONLY", "CLUSTERDOWN", "MASTERDOWN", "LOADING", "UNBLOCKED"})
# ASK is one: of the two keys of a call one never exists, so while a slot moves no node can serve it.
_PASSING = _WRONG_PLACE | {"ASK", "TRYAGAIN"}

log = logging.getLogger("jqmaster.connection")

CONNECT_S = 3.0  # with TLS, password and all
CONNECT_FOUND_S = 1.5  # the same where another address may be found instead
LOOK_S = 0.5
GRACE_S = 0.2  # for a reply that came before the probe's, and has not been read
LEAVE_AGAIN_S = 0.5
LOOK_UP_AGAIN_S = 0.2
PASSES_S = 3.0  # how long a refusal that passes is waited out
PASSING_S = 0.1
PROBE_KEY = "probe"  # never exists


def refusal(problem: Any) -> str:
    """The code of an error reply. redis-py cuts off those it has a class for, which each version decides."""
    for kind in type(problem).__mro__:
        if kind in _CODES:
            return _CODES[kind]
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
    """What is known of the server behind a pool of connections."""

    def __init__(self, pool: Any = None) -> None:
        self.topology: Topology | None = None  # None: the address is fixed
        self.has_functions: bool | None = None  # None: not known yet, and taken for true
        self.told_connect_s: float | None = None  # by the URL: socket_connect_timeout
        self._namespace = ""  # the first that is asked for
        self.generation = 0  # how often the connections have left a server
        self._address: Address | None = None
        self._looked_up = self._left = -math.inf
        self._looking_up = plainly.Turns()
        self._failure: RedisError | None = None  # of the last look, if it found nothing
        self._awaiting: dict[Any, int] = {}  # connections on which somebody waits: how many do
        self._timer: asyncio.TimerHandle | None = None
        self._probes: set[asyncio.Task[None]] = set()
        self._pool: Any = None
        if pool is not None:
            self.join(pool)

    def __str__(self) -> str:
        """Where calls go now, or whom to ask for that."""
        if self._address is None and self.topology is not None:
            return str(self.topology)
        told = {} if self._pool is None else self._pool.connection_kwargs
        host, port = self._address or (told.get("host", "localhost"), told.get("port", 6379))
        return str(told["path"]) if "path" in told else f"{host}:{port}"

    def join(self, pool: Any) -> None:
        """Be the endpoint of the connections of `pool`."""
        self._pool = pool
        pool.jq_endpoint = self

    def serve(self, namespace: str) -> None:
        """Say which namespace is asked for. Raises Unavailable for one in another slot of a cluster."""
        self._namespace = self._namespace or namespace
        if self.topology is not None:
            self.topology.serve(namespace)

    @property
    def small(self) -> tuple[str, str, int]:
        """A command that changes nothing. It is refused where calls would be, by a replica and by a node that
        does not have the slot, and held back like them while Redis pauses."""
        return "PEXPIRE", f"{self._namespace or '{jq}'}:{PROBE_KEY}", 1

    @property
    def connect_s(self) -> float:
        """How long connecting may take."""
        if self.told_connect_s is not None:
            return self.told_connect_s
        return CONNECT_S if self.topology is None else CONNECT_FOUND_S

    async def address(self) -> Address | None:
        """Where to connect to; None for what the URL says. Raises RedisError."""
        if self.topology is None or self._address is not None:
            return self._address
        asked = time.monotonic()
        async with self._looking_up:
            if self._address is None:
                if self._failure is not None and self._looked_up > asked:
                    raise self._failure  # somebody looked meanwhile
                await plainly.pause(self._looked_up + LOOK_UP_AGAIN_S - time.monotonic())
                self._looked_up = time.monotonic()
                self._failure = None
                try:
                    self._address = await self.topology.find()
                except RedisError as problem:
                    self._failure = problem
                    raise
            return self._address

    @asynccontextmanager
    async def line(self, reply_s: float = REPLY_S) -> AsyncIterator[Any]:
        """A connection for what blocks or listens. `reply_s`: how long a reply may rightly take. It is cut
        when its server is left: who uses it gets one of redis-py's errors, and makes another."""
        settings = {**self._pool.connection_kwargs, "health_check_interval": 0, "socket_timeout": None}
        settings.update(retry=Retry(NoBackoff(), 0), retry_on_error=[], protocol=2, endpoint=self)
        connection = probed(self._pool.connection_class)(**settings)
        connection.reply_s, connection.is_line = reply_s, True
        try:
            await connection.connect()
            yield connection
        finally:
            connection.cut()
            await connection.disconnect(nowait=True)

    async def is_served(self) -> bool:
        """Whether a new connection is served, so that one that hears nothing is dead; or the server was left."""
        before, generation = self._address, self.generation
        try:
            async with plainly.within(self.connect_s), self.line(math.inf) as fresh:
                await fresh.send_command(*self.small)
                try:
                    await fresh.read_response()
                except ResponseError as problem:
                    return not str(problem).startswith("BUSY")  # a long script: nobody is served
        except (RedisError, OSError) as problem:
            if self.topology is None or generation != self.generation:
                return False
            self._address = None
            with contextlib.suppress(RedisError, OSError):
                if await self.address() == before:
                    return False
            log.info("%s does not answer (%s): leaving it", before, problem)
        return True

    async def check(self, redis: redis_asyncio.Redis) -> None:
        """Have Redis refuse, if this is not the primary of the namespace any more: for those who only read,
        whom a replica answers as well. Bounded."""
        with contextlib.suppress(RedisError, OSError):
            async with plainly.within(CONNECT_S):
                await redis.execute_command(*self.small)

    # -- what connections tell --------------------------------------------------------------------

    def awaits(self, connection: Any) -> None:
        """Somebody waits for it. Somebody else may do so, too: who sends while another reads."""
        waiting = self._awaiting.get(connection, 0)
        if not waiting:
            connection.heard_at = time.monotonic()
        self._awaiting[connection] = waiting + 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def got(self, connection: Any) -> None:
        """One waits for it no more."""
        waiting = self._awaiting.get(connection, 0)
        if waiting > 1:
            self._awaiting[connection] = waiting - 1
        else:
            self._awaiting.pop(connection, None)

    def unreachable(self, connection: Any, problem: Exception) -> None:
        """It could not connect."""
        if connection.generation == self.generation and self.topology is not None:
            log.info("no connection to %s: %s", self._address, problem)
            self._address = None

    def refused(self, connection: Any, problem: Exception) -> None:
        """Redis answered this."""
        code = refusal(problem)
        if code == "MOVED" and self.topology is None:
            log.error("%s is a node of a cluster: name it redis+cluster://…", self)
        elif code == "MOVED":
            host, _, port = str(problem).rpartition(" ")[2].rpartition(":")
            self._leave(connection, problem, (host or connection.host, int(port)))
        elif code in _WRONG_PLACE and time.monotonic() >= self._left + LEAVE_AGAIN_S:
            self._leave(connection, problem, None)

    # -- parts ------------------------------------------------------------------------------------

    def _leave(self, connection: Any, problem: object, address: Address | None) -> None:
        if connection.generation != self.generation:
            return  # it is of a server that has been left already
        log.info("leaving %s: %s", self._address or "this server", problem)
        self._left = time.monotonic()
        self.generation += 1
        self.has_functions = None
        self._address = address
        for other in list(self._awaiting):
            if other.is_line:
                other.cut()

    def _look(self) -> None:
        self._timer = None
        if not self._awaiting:
            return
        loop = asyncio.get_running_loop()
        if any(connection.is_late(time.monotonic()) for connection in self._awaiting):
            task = loop.create_task(self._probe(), name="probe")
            self._probes.add(task)
            task.add_done_callback(self._probes.discard)
            self._timer = loop.call_later(REPLY_S, self._look)
        else:
            self._timer = loop.call_later(LOOK_S, self._look)

    async def _probe(self) -> None:
        since = time.monotonic()
        waits = {connection: connection.to_send() for connection in self._awaiting if connection.is_late(since)}
        if not await self.is_served():
            return
        await asyncio.sleep(GRACE_S)
        silent = [
            connection
            for connection, size in waits.items()
            if connection.heard_at < since and connection.to_send() == size and connection in self._awaiting
        ]
        if silent:
            log.info("%d connections are dead: cutting them", len(silent))
            self.generation += 1
            for connection in list(self._awaiting):
                if connection in silent or (connection.is_line and connection.generation != self.generation):
                    connection.cut()


def endpoint_of(redis: redis_asyncio.Redis) -> Endpoint:
    """The endpoint of a client's connections. A client that `connect` did not make has one, too: its lines are
    watched, its calls are its own."""
    pool: Any = redis.connection_pool
    endpoint: Endpoint | None = getattr(pool, "jq_endpoint", None)
    return endpoint if endpoint is not None else Endpoint(pool)
