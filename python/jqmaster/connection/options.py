"""What a Redis URL says beside the address. redis-py looks at it when it connects, and then not by name."""

from __future__ import annotations

import os
import re
import ssl
from typing import Any

from redis.exceptions import RedisError

_UNKNOWN = re.compile(r"unexpected keyword argument '(\w+)'")
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


def check(pool: Any) -> None:
    """Raise ValueError for an option of the URL, as a pool of connections has it, that cannot work."""
    options = pool.connection_kwargs
    for name in _FILES:
        if (path := options.get(name)) is not None:
            _check_file(name, path)
    if (path := options.get("ssl_ca_path")) is not None and not os.path.isdir(path):
        raise ValueError(f"{path} (ssl_ca_path of the Redis URL): no such directory")
    try:
        connection = pool.make_connection()
        if (context := getattr(connection, "ssl_context", None)) is not None:
            context.get()
    except TypeError as problem:
        if (unknown := _UNKNOWN.search(str(problem))) is None:
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
