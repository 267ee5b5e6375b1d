"""Requests that a page of another site makes a browser send are refused, unless they only read.

Who can reach a master needs no password, and a browser on the same host can. Another site's page cannot read
the answers, as nothing here allows it to; but without this it could pause a queue or enqueue a job.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from jqmaster.http.errors import HttpError
from jqmaster.http.fast import Asgi, Receive, Scope, Send, send_response
from jqmaster.http.routes import failure_for

_READING = frozenset(("GET", "HEAD", "OPTIONS"))
_ASKED = frozenset((b"origin", b"sec-fetch-site", b"host", b"x-forwarded-host"))


def own_pages_only(app: Asgi) -> Asgi:
    """`app`, for programs and for pages of the same origin."""

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in _READING and is_foreign(scope["headers"]):
            refused = HttpError(403, "FORBIDDEN", "pages of other sites may not change anything here")
            await send_response(send, failure_for(refused, scope["headers"]))
            return
        await app(scope, receive, send)

    return asgi


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
