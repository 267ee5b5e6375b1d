"""The Quart application of a JQ master."""

from __future__ import annotations

from collections.abc import Collection

from quart import Quart

from jqmaster.server.http.entrance import MAX_CONTENT_LENGTH, Entrance, RequestBounds
from jqmaster.server.http.ui import add_ui
from jqmaster.server.master import Master


def create_app(
    master: Master,
    *,
    max_content_length: int = MAX_CONTENT_LENGTH,
    hosts: Collection[str] | None = None,
    bounds: RequestBounds | None = None,
    root_path: str = "",
) -> Quart:
    """The HTTP API over `master`, an ASGI application. It neither starts nor stops any of the master's parts.

    Bodies over `max_content_length` bytes are refused with 413. `hosts` are the names it may be asked by, beside
    addresses and localhost; None: any. `bounds`: of what all requests may take together. `root_path`: a proxy serves it
    there, and may pass that on or not.
    """
    app = Quart("jqmaster", static_folder=None)
    add_ui(app, root_path)
    entrance = Entrance(app.asgi_app, master, bounds or RequestBounds(), max_content_length, hosts, root_path)
    app.asgi_app = entrance  # type: ignore[method-assign, assignment]
    return app
