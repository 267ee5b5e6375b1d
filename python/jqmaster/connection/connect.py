"""A client for a URL."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import redis.asyncio.connection
from redis.exceptions import RedisError

from jqmaster.connection.endpoint import Endpoint, Finder, Login
from jqmaster.connection.topology import ClusterNodes, Sentinels
from jqmaster.connection.url import parse

_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")


def connect(url: str) -> redis.asyncio.Redis:
    """A Redis client for a URL (`url`), with replies as bytes; in a plain call its connections block (`plainly`).

    More calls at a time than its option ``max_connections``, 64 by default, wait for each other. Connects on first use.
    There is no limit on how long a reply may take while Redis is there: ``Engine`` has one. Raises ValueError for a URL
    that cannot work.
    """
    target = parse(url)
    options: dict[str, Any] = {**redis.asyncio.connection.parse_url(target.url)}
    kind = options.pop("connection_class", redis.asyncio.connection.Connection)
    most = options.pop("max_connections", 64)
    login = Login(options.get("username"), options.get("password"), options.get("client_name"), _tls(kind, options))
    topology: Finder | None = None
    if target.kind == "cluster":
        topology = ClusterNodes(target.hosts, login)
    elif target.kind == "sentinel":
        own = target.sentinel
        login_there = login._replace(username=own.get("username"), password=own.get("password"))
        topology = Sentinels(target.hosts, target.service, login_there)
    place = options.get("path") or (options.get("host", "localhost"), options.get("port", 6379))
    pool: Any = Endpoint(place, login, topology, options.get("socket_connect_timeout"), most)
    return redis.asyncio.Redis.from_pool(pool)


def _tls(kind: Any, options: Mapping[str, Any]) -> ssl.SSLContext | None:
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
