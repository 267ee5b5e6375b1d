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

from jqmaster.server.http_error import HttpError

_PORT = re.compile(r":\d*\Z")
Headers = Mapping[bytes, bytes]


def check(headers: Headers, hosts: frozenset[str] | None, *, reads: bool) -> None:
    """Raise 403 for a request that asks by another name than `hosts`, addresses and localhost (None: any), or for what
    a page of another site makes a browser send, unless it changes nothing."""
    host = headers.get(b"host", b"")
    if hosts is not None and not _is_own(host, hosts):
        why = f"this master does not answer to {host.decode('latin-1')!a}: start it with --allowed-hosts for that"
        raise HttpError("FORBIDDEN", why)
    if not reads and is_foreign(headers):
        raise HttpError("FORBIDDEN", "cross-origin request refused")


@lru_cache(maxsize=1024)
def _is_own(host: bytes, hosts: frozenset[str]) -> bool:
    """Whether a name cannot have been made to lead here by somebody else. No browser asks without one."""
    name = _PORT.sub("", host.decode("latin-1")).lower().removesuffix(".")
    if not name or name == "localhost" or name.endswith(".localhost") or name in hosts:
        return True
    return is_address(name.removeprefix("[").removesuffix("]"))


def is_address(text: str) -> bool:
    """Whether it is one of an IP."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_foreign(headers: Headers) -> bool:
    """Whether a browser says so. Only browsers send these headers; over plain HTTP, `origin` alone."""
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if site is not None:
        return site not in (b"same-origin", b"none")
    if origin is None:
        return False
    try:
        host = urlsplit(origin.decode("latin-1")).netloc.encode("latin-1")
    except ValueError:  # such as `http://[`
        return True
    return host not in (headers.get(b"host"), headers.get(b"x-forwarded-host"))


def is_loopback(host: str) -> bool:
    """Whether a server that listens there is asked by this machine alone."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)
