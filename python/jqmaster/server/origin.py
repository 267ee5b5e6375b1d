"""Requests that a page of another site makes a browser send, told apart by their headers.

Who can reach a server here needs no password, and a browser on the same host can. Another site's page cannot read
the answers, as nothing here allows it to; but without this it could pause a queue or run a job. And where the
site has its own name lead to this host (DNS rebinding), its page counts as the server's own and could read: so
it is also looked by which name the server is asked.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

_PORT = re.compile(r":\d*\Z")


def unknown_name(headers: Mapping[bytes, bytes], hosts: frozenset[str] | None) -> str | None:
    """The name of a request that asks by another than those that a server has, beside addresses and localhost. None:
    any."""
    name = _PORT.sub("", headers.get(b"host", b"").decode("latin-1"))
    return None if hosts is None or is_own_name(name, hosts) else name


@lru_cache(maxsize=1024)
def is_own_name(host: str, hosts: frozenset[str]) -> bool:
    """Whether a name, without port, cannot have been made to lead here by somebody else. No browser asks
    without one."""
    name = host.lower().removesuffix(".")
    if not name or name == "localhost" or name.endswith(".localhost") or name in hosts:
        return True
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def is_foreign(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a browser says so. Only browsers send these headers; over plain HTTP, `origin` alone."""
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if site is not None:
        return site not in (b"same-origin", b"none")
    if origin is None:
        return False
    host = urlsplit(origin.decode("latin-1")).netloc.encode("latin-1")
    return host not in (headers.get(b"host"), headers.get(b"x-forwarded-host"))


def is_loopback(host: str) -> bool:
    """Whether a server that listens there is asked by this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
