"""Requests that a page of another site makes a browser send are refused, unless they change nothing.

Who can reach a master needs no password, and a browser on the same host can. Another site's page cannot read
the answers, as nothing here allows it to; but without this it could pause a queue or enqueue a job. And where
the site has its own name lead to this host (DNS rebinding), its page counts as the master's own and could
read: so a master also looks by which name it is asked.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from jqmaster.master.http.routes import ROUTES, Asgi, Receive, Scope, Send, refuse
from jqmaster.master.master import Master
from jqmaster.wire.errors import HttpError

_READING = frozenset(("GET", "HEAD", "OPTIONS"))
_CHANGING = re.compile("|".join(
    re.escape(route.path).replace(r"\{id\}", "[^/]+") for route in ROUTES if route.method == "GET" and not route.reads
))  # fmt: skip
_ASKED = frozenset((b"origin", b"sec-fetch-site", b"host", b"x-forwarded-host"))
_MOST_KNOWN = 100
_PORT = re.compile(r":\d*\Z")


def own_pages_only(app: Asgi, master: Master, hosts: Collection[str] | None = None) -> Asgi:
    """`app`, for programs and for pages of the same origin.

    `hosts` are the names it may be asked by, beside addresses and localhost; None: any.
    """
    known: set[bytes] = set()

    def unknown_name(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        host = next((value for name, value in headers if name == b"host"), b"")
        if hosts is None or host in known:
            return None
        name = _PORT.sub("", host.decode("latin-1"))
        if not is_own_name(name, hosts):
            return name
        if len(known) < _MOST_KNOWN:
            known.add(host)
        return None

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        why = None
        if scope["type"] == "http":
            if (name := unknown_name(scope["headers"])) is not None:
                why = f"this master does not answer to {name!a}: start it with --allowed-hosts for that"
            elif may_change(scope["method"], scope["path"]) and is_foreign(scope["headers"]):
                why = "pages of other sites may not change anything here"
        if why is None:
            await app(scope, receive, send)
        else:
            await refuse(master, scope, send, HttpError(403, "FORBIDDEN", why))

    return asgi


def may_change(method: str, path: str) -> bool:
    """Whether a request is more than a look."""
    return method not in _READING or _CHANGING.fullmatch(path) is not None


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


def is_foreign(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a browser says so. Only browsers send these headers; over plain HTTP, `origin` alone."""
    found = {name: value for name, value in headers if name in _ASKED}
    site, origin = found.get(b"sec-fetch-site"), found.get(b"origin")
    if site is not None:
        return site not in (b"same-origin", b"none")
    if origin is None:
        return False
    host = urlsplit(origin.decode("latin-1")).netloc.encode("latin-1")
    return host not in (found.get(b"host"), found.get(b"x-forwarded-host"))
