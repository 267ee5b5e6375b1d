"""Requests that a page of another site makes a browser send are refused, unless they change nothing."""

from __future__ import annotations

from collections.abc import Collection

from jqmaster.master.http.routes import Asgi, Receive, Scope, Send, find, refuse
from jqmaster.master.master import Master
from jqmaster.wire.errors import HttpError
from jqmaster.wire.foreign import OwnNames, is_foreign
from jqmaster.wire.foreign import may_change as may_change_by_method


def own_pages_only(app: Asgi, master: Master, hosts: Collection[str] | None = None) -> Asgi:
    """`app`, for programs and for pages of the same origin.

    `hosts` are the names it may be asked by, beside addresses and localhost; None: any.
    """
    names = OwnNames(hosts)

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        why = None
        if scope["type"] == "http":
            if (name := names.unknown(scope["headers"])) is not None:
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
    route, _ = find(method, path)
    return may_change_by_method(method) or (route is not None and not route.reads)
