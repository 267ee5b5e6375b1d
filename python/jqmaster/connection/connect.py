"""A client for a URL."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from redis.asyncio.connection import SSLConnection, parse_url
from redis.exceptions import RedisError

from jqmaster.connection.redis_client import CONNECT_S, REPLY_S, Finder, Login, RedisClient
from jqmaster.connection.topology import Named, Sentinels
from jqmaster.connection.url import parse

_PLACE = {"connection_class", "host", "port", "path", "db", "username", "password"}
_NUMBERS = {"max_connections": 64, "socket_timeout": REPLY_S, "socket_connect_timeout": CONNECT_S}
_OPTIONS = ("client_name", *_NUMBERS)
_SENTINEL = ("sentinel_username", "sentinel_password")
_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")
_TLS = (*_FILES, "ssl_ca_data", "ssl_cert_reqs", "ssl_check_hostname", "ssl_ciphers", "ssl_min_version", "ssl_password")


def connect(url: str) -> RedisClient:
    """A Redis client for a URL (`url`), with replies as bytes; in a plain call its connections block (`plainly`).

    More calls at a time than its option ``max_connections``, 64 by default, wait for each other. Connects on first use.
    Raises ValueError for a URL that cannot work.
    """
    target = parse(url)
    options: dict[str, Any] = {**parse_url(target.url)}
    is_tls = options.get("connection_class") is SSLConnection
    known = (*_OPTIONS, *(_TLS if is_tls else ()), *(_SENTINEL if target.service else ()))
    for name in options.keys() - _PLACE - {*known}:
        raise ValueError(f"the Redis URL has an unknown option: {name}; there are: {', '.join(known)}")
    most, reply_s, connect_s = (options.get(name, default) for name, default in _NUMBERS.items())
    for name in _NUMBERS:
        if options.get(name, 1) <= 0:
            raise ValueError(f"the Redis URL has an option that cannot be used: {name}={options[name]:g}")
    context = _tls(options) if is_tls else None
    naming = (("CLIENT", "SETNAME", options["client_name"]),) if options.get("client_name") else ()
    login = Login((*_auth(options.get("username"), options.get("password")), *naming), context)
    finder: Finder = Named(*target.places)
    if target.service:
        theirs = Login((*_auth(*map(options.get, _SENTINEL)), *naming), context)
        finder = Sentinels(target.places, target.service, theirs)
    return RedisClient(finder, login, connect_s=connect_s, reply_s=reply_s, most=most)


def _auth(username: str | None, password: str | None) -> tuple[tuple[str, ...], ...]:
    return (("AUTH", *filter(None, [username]), password or ""),) if username or password else ()


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
