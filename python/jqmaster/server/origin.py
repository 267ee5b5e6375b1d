"""Requests that a page of another site makes a browser send, told apart by their headers.

Who can reach a server here needs no password, and a browser on the same host can. Another site's page cannot read
the answers, as nothing here allows it to; but without this it could pause a queue or run a job. And where the
site has its own name lead to this host (DNS rebinding), its page counts as the server's own and could read: so
it is also looked by which name the server is asked.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

_READING = frozenset(("GET", "HEAD", "OPTIONS"))
_ASKED = frozenset((b"origin", b"sec-fetch-site", b"host", b"x-forwarded-host"))
_MOST_KNOWN = 100
_PORT = re.compile(r":\d*\Z")


class OwnNames:
    """The names by which a server may be asked, beside addresses and localhost. None: any."""

    def __init__(self, hosts: Collection[str] | None) -> None:
        self._hosts = hosts
        self._known: set[bytes] = set()

    def unknown(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """The name of a request that asks by another."""
        host = next((value for name, value in headers if name == b"host"), b"")
        if self._hosts is None or host in self._known:
            return None
        name = _PORT.sub("", host.decode("latin-1"))
        if not is_own_name(name, self._hosts):
            return name
        if len(self._known) < _MOST_KNOWN:
            self._known.add(host)
        return None


def is_own_name(host: str, hosts: Collection[str]) -> bool:
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


def may_change(method: str) -> bool:
    """Whether a request of this method may change anything."""
    return method not in _READING


def is_foreign(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a browser says so. Only browsers send these headers; over plain HTTP, `origin` alone."""
    wanted = {name: value for name, value in headers if name in _ASKED}
    site, origin = wanted.get(b"sec-fetch-site"), wanted.get(b"origin")
    if site is not None:
        return site not in (b"same-origin", b"none")
    if origin is None:
        return False
    host = urlsplit(origin.decode("latin-1")).netloc.encode("latin-1")
    return host not in (wanted.get(b"host"), wanted.get(b"x-forwarded-host"))


def is_loopback(host: str) -> bool:
    """Whether a server that listens there is asked by this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
