"""Requests that a page of another site makes a browser send are refused, unless they only read."""

from __future__ import annotations

from collections.abc import Collection

from jqmaster.master.http.fast import Asgi, Receive, Scope, Send, send_response
from jqmaster.master.http.routes import failure_for
from jqmaster.wire.errors import HttpError
from jqmaster.wire.foreign import OwnNames, is_foreign, may_change


def own_pages_only(app: Asgi, hosts: Collection[str] | None = None) -> Asgi:
    """`app`, for programs and for pages of the same origin.

    `hosts` are the names it may be asked by, beside addresses and localhost; None: any.
    """
    names = OwnNames(hosts)

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        why = None
        if scope["type"] == "http":
            if (name := names.unknown(scope["headers"])) is not None:
                why = f"this master does not answer to {name!a}: start it with --allowed-hosts for that"
            elif may_change(scope["method"]) and is_foreign(scope["headers"]):
                why = "pages of other sites may not change anything here"
        if why is None:
            await app(scope, receive, send)
        else:
            await send_response(send, failure_for(HttpError(403, "FORBIDDEN", why), scope["headers"]))

    return asgi
