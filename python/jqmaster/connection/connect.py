"""A client for a URL."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import redis.asyncio
from redis.asyncio.connection import SSLConnection, parse_url
from redis.exceptions import RedisError

from jqmaster.connection.endpoint import Endpoint, Finder, Login
from jqmaster.connection.topology import ClusterNodes, Sentinels
from jqmaster.connection.url import parse

_PLACE = {"connection_class", "host", "port", "path", "db", "username", "password"}
_OPTIONS = ("client_name", "max_connections", "socket_timeout", "socket_connect_timeout")
_SENTINEL = ("sentinel_username", "sentinel_password")
_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")
_TLS = (*_FILES, "ssl_ca_data", "ssl_cert_reqs", "ssl_check_hostname", "ssl_ciphers", "ssl_min_version", "ssl_password")


def connect(url: str) -> redis.asyncio.Redis:
    """A Redis client for a URL (`url`), with replies as bytes; in a plain call its connections block (`plainly`).

    More calls at a time than its option ``max_connections``, 64 by default, wait for each other. Connects on first use.
    Raises ValueError for a URL that cannot work.
    """
    target = parse(url)
    options: dict[str, Any] = {**parse_url(target.url)}
    is_tls = options.get("connection_class") is SSLConnection
    known = (*_OPTIONS, *(_TLS if is_tls else ()), *(_SENTINEL if target.kind == "sentinel" else ()))
    for name in options.keys() - _PLACE - {*known}:
        raise ValueError(f"the Redis URL has an unknown option: {name}; there are: {', '.join(known)}")
    context = _tls(options) if is_tls else None
    login = Login(options.get("username"), options.get("password"), options.get("client_name"), context)
    topology: Finder | None = None
    if target.kind == "cluster":
        topology = ClusterNodes(target.hosts, login)
    elif target.kind == "sentinel":
        username, password = map(options.get, _SENTINEL)
        topology = Sentinels(target.hosts, target.service, login._replace(username=username, password=password))
    place = options.get("path") or (options.get("host", "localhost"), options.get("port", 6379))
    pool: Any = Endpoint(
        place, login, topology, connect_s=options.get("socket_connect_timeout"),
        reply_s=options.get("socket_timeout"), most=options.get("max_connections", 64),
    )  # fmt: skip
    return redis.asyncio.Redis.from_pool(pool)


def _tls(options: Mapping[str, Any]) -> ssl.SSLContext:
    """What TLS needs. Raises ValueError for an option that cannot work."""
    given = {name: value for name, value in options.items() if name in _TLS}
    try:
        context: ssl.SSLContext = SSLConnection(**given).ssl_context.get()
    except (TypeError, OSError, RedisError) as problem:
        files = [str(given[name]) for name in _FILES if given.get(name)]
        raise ValueError(
            f"the Redis URL has an option that cannot be used: {': '.join([*files, str(problem)])}"
        ) from None
    return context
