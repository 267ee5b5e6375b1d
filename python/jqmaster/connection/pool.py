"""Pools of connections, for the tasks of an event loop, or for the plain calls of all threads."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import hiredis
import redis.asyncio.connection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from jqmaster.connection import plainly
from jqmaster.connection.endpoint import Endpoint, Finder, Login
from jqmaster.connection.redis_connection import RedisConnection
from jqmaster.connection.topology import ClusterNodes, Sentinels
from jqmaster.connection.url import RedisUrl

_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")
FREE_S = 20.0  # how long one is waited for where all are in use


class Pool:
    """At most `most` connections, each for one call at a time: what redis-py's client needs of a pool, with less in
    between."""

    connection_kwargs: Mapping[str, Any] = {"protocol": 2}

    def __init__(self, endpoint: Endpoint, most: int) -> None:
        self.endpoint = endpoint
        self._all: list[RedisConnection] = []
        self._idle: list[RedisConnection] = []  # the one that was used last is taken first
        self._free = plainly.Turns(most)

    async def call(self, *command: Any) -> Any:
        """The reply to a command, the short way: redis-py's takes twice the time. Raises RedisError."""
        connection = await self.get_connection()
        try:
            await connection.send_packed_command(hiredis.pack_command(command))
            return await connection.read_response()
        finally:
            await self.release(connection)

    async def get_connection(self) -> RedisConnection:
        """One that is connected. Raises RedisError."""
        try:
            await self._free.acquire(FREE_S)
        except TimeoutError as problem:
            raise RedisConnectionError("all connections are in use") from problem
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = RedisConnection(self.endpoint)
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


def pool_at(url: RedisUrl, max_connections: int) -> Pool:
    """That of a client; for plain calls in one. Raises ValueError for a URL that cannot be."""
    options: dict[str, Any] = {**redis.asyncio.connection.parse_url(url.url)}
    kind = options.pop("connection_class", redis.asyncio.connection.Connection)
    most = options.pop("max_connections", max_connections)
    context = _checked(kind, options)
    login = Login(options.get("username"), options.get("password"), options.get("client_name"), context)
    find: Finder | None = None
    if url.kind == "cluster":
        find = ClusterNodes(url.hosts, login)
    elif url.kind == "sentinel":
        own = url.sentinel
        find = Sentinels(
            url.hosts, url.service, login._replace(username=own.get("username"), password=own.get("password"))
        )
    place = options.get("path") or (options.get("host", "localhost"), options.get("port", 6379))
    return Pool(Endpoint(place, login, find, options.get("socket_connect_timeout")), most)


def _checked(kind: Any, options: Mapping[str, Any]) -> ssl.SSLContext | None:
    """What TLS needs. Raises ValueError for an option that redis-py does not know, or that cannot work."""
    try:
        made = getattr(kind(**options), "ssl_context", None)
        context: ssl.SSLContext | None = made and made.get()
    except (TypeError, OSError, RedisError) as problem:
        files = [str(options[name]) for name in _FILES if options.get(name)]
        raise ValueError(
            f"the Redis URL has an option that cannot be used: {': '.join([*files, str(problem)])}"
        ) from None
    return context
