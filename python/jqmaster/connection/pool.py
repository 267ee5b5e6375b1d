"""Pools of connections, for the tasks of an event loop, or for the plain calls of all threads."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import threading
from collections.abc import Mapping
from typing import Any

import redis.asyncio.connection
import redis.connection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from jqmaster.connection import plainly, topology
from jqmaster.connection.blocking import blocking_probed
from jqmaster.connection.endpoint import Endpoint
from jqmaster.connection.probed import probed
from jqmaster.connection.url import RedisUrl

_UNKNOWN_OPTION = re.compile(r"unexpected keyword argument '(\w+)'")
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
FREE_S = 20.0  # how long one is waited for where all are in use


class _ThreadRoom:
    """A semaphore for plain calls."""

    def __init__(self, most: int) -> None:
        self._free = threading.Semaphore(most)
        self.release = self._free.release

    async def acquire(self) -> None:
        if not self._free.acquire(timeout=min(FREE_S, plainly.left_s())):
            raise TimeoutError


class _TaskRoom(asyncio.Semaphore):
    async def acquire(self) -> Any:
        if not self.locked():
            return await super().acquire()
        async with asyncio.timeout(FREE_S):
            return await super().acquire()


class Pool:
    """At most `most` connections of a class of this room, each for one call at a time: what redis-py's client needs of
    a pool, with less in between."""

    def __init__(self, endpoint: Endpoint, connection_class: Any, most: int, settings: dict[str, Any]) -> None:
        self.connection_class = connection_class
        self.connection_kwargs = settings
        self._endpoint = endpoint
        self._all: list[Any] = []
        self._idle: list[Any] = []  # the one that was used last is taken first
        self._room = _ThreadRoom(most) if plainly.is_plain() else _TaskRoom(most)
        endpoint.join(self)

    def get_encoder(self) -> Any:
        """That of its connections."""
        return self.connection_class(endpoint=self._endpoint, **self.connection_kwargs).encoder

    async def get_connection(self) -> Any:
        """One that is connected. Raises RedisError."""
        try:
            await self._room.acquire()
        except TimeoutError as problem:
            raise RedisConnectionError("all connections are in use") from problem
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self.connection_class(endpoint=self._endpoint, **self.connection_kwargs)
            self._all.append(connection)
        try:
            await connection.ready()
        except BaseException:
            await self.release(connection)
            raise
        return connection

    async def release(self, connection: Any) -> None:
        """Give one back."""
        self._idle.append(connection)
        self._room.release()

    async def disconnect(self, *_more: Any) -> None:
        """Close all."""
        for connection in self._all:
            await connection.disconnect(nowait=True)

    aclose = disconnect


def pool_at(url: RedisUrl, *, max_connections: int, **settings: Any) -> Pool:
    """That of a client whose connections ask an endpoint; for plain calls in one. Raises ValueError for a URL that
    cannot be."""
    endpoint = Endpoint()
    parsed: dict[str, Any] = {**redis.asyncio.connection.parse_url(url.url)}
    endpoint.told_connect_s = parsed.get("socket_connect_timeout")
    kind = parsed.pop("connection_class", redis.asyncio.connection.Connection)
    most = parsed.pop("max_connections", max_connections)
    options = {**settings, **parsed}
    _check_options(kind, options)
    if url.kind != "server":
        endpoint.topology = topology.make(url, kind, options)
    connection_class = probed(kind)
    if plainly.is_plain():
        kind = redis.connection.parse_url(url.url).get("connection_class", redis.connection.Connection)
        connection_class = blocking_probed(kind)
    return Pool(endpoint, connection_class, most, options)


def _check_options(kind: Any, options: Mapping[str, Any]) -> None:
    """Raise ValueError for an option of the URL that cannot work. redis-py looks at it when it connects, and then not
    by name."""
    for name in _FILES:
        if (path := options.get(name)) is not None:
            _check_file(name, path)
    if (path := options.get("ssl_ca_path")) is not None and not os.path.isdir(path):
        raise ValueError(f"{path} (ssl_ca_path of the Redis URL): no such directory")
    try:
        connection = kind(**options)
        if (context := getattr(connection, "ssl_context", None)) is not None:
            context.get()
    except TypeError as problem:
        if (unknown := _UNKNOWN_OPTION.search(str(problem))) is None:
            raise
        hint = "; options of TLS need rediss://" if unknown[1].startswith("ssl_") else ""
        raise ValueError(f"the Redis URL has an unknown option: {unknown[1]}{hint}") from None
    except ssl.SSLError as problem:
        named = ", ".join(str(options[name]) for name in _FILES if options.get(name))
        raise ValueError(f"no certificates or keys for TLS: {named}: {problem}") from None
    except RedisError as problem:
        raise ValueError(f"the Redis URL has an option that cannot be used: {problem}") from None


def _check_file(name: str, path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as problem:
        raise ValueError(f"{path} ({name} of the Redis URL): {problem.strerror}") from None
