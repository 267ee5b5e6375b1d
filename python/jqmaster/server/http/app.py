"""The Quart application of a JQ master."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import cast

from quart import Quart, request
from quart import Response as QuartResponse
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from jqmaster.server.http.entrance import MAX_CONTENT_LENGTH, Entrance, RequestBounds
from jqmaster.server.http.routes import ROUTE, ROUTES, Response, Scope, answered, refusal, respond
from jqmaster.server.http.ui import add_ui
from jqmaster.server.http_error import HttpError, internal
from jqmaster.server.master import Master

logger = logging.getLogger("jqmaster.http")


def create_app(
    master: Master,
    *,
    max_content_length: int = MAX_CONTENT_LENGTH,
    fast: bool = True,
    hosts: Collection[str] | None = None,
    bounds: RequestBounds | None = None,
    root_path: str = "",
) -> Quart:
    """The HTTP API over `master`, an ASGI application. It neither starts nor stops any of the master's parts.

    Bodies over `max_content_length` bytes are refused with 413. `fast=False` sends every request through
    Quart, which answers the same and more slowly. `hosts` are the names it may be asked by, beside addresses
    and localhost; None: any. `bounds`: of what all requests may take together. `root_path`: a proxy serves it there,
    and may pass that on or not.
    """
    app = Quart("jqmaster", static_folder=None)
    # Bodies have been read, within bounds, before Quart sees them.
    app.config["MAX_CONTENT_LENGTH"] = app.config["BODY_TIMEOUT"] = None
    # A slow reader on a bad line is not an error of the server's.
    app.config["RESPONSE_TIMEOUT"] = None
    # Names in paths stay as they are: no redirect for `//` or a missing slash.
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = True
    view = _view(master)
    for route in ROUTES:
        app.add_url_rule(
            route.path.replace("{", "<").replace("}", ">"),
            endpoint=f"{route.method} {route.path}",
            view_func=view,
            methods=[route.method],
            provide_automatic_options=False,
        )
    add_ui(app, root_path)
    app.after_request(_of_others(master))
    app.register_error_handler(Exception, _on_error(master))
    entrance = Entrance(app.asgi_app, master, bounds or RequestBounds(), max_content_length, hosts, fast, root_path)
    app.asgi_app = entrance  # type: ignore[method-assign, assignment]
    return app


def _view(master: Master) -> Callable[..., Awaitable[QuartResponse]]:
    async def view(**_: str) -> QuartResponse:
        scope = cast(Scope, request.scope)
        if scope[ROUTE][0] is None:
            raise NotFound  # `//job`, which Quart takes for `/job`: nobody has looked whether they may
        return _quart(await respond(master, scope, cast(bytes, await request.get_data(cache=False))))

    return view


def _quart(response: Response) -> QuartResponse:
    result = QuartResponse(response.stream or response.body, status=response.status)
    del result.headers["content-type"]
    for name, value in response.headers:
        result.headers[name.decode("ascii")] = value.decode("ascii")
    if response.status == 204:
        del result.headers["content-length"]
    return result


def _on_error(master: Master) -> Callable[[Exception], Awaitable[QuartResponse]]:
    async def on_error(error: Exception) -> QuartResponse:
        response = _quart(refusal(master, request.scope, _translated(error)))
        if isinstance(error, MethodNotAllowed) and error.valid_methods:
            response.headers["allow"] = ", ".join(sorted(error.valid_methods))
        return response

    return on_error


def _of_others(master: Master) -> Callable[[QuartResponse], Awaitable[QuartResponse]]:
    """Counts and logs what is no part of the API, such as the pages of the user interface."""

    async def after(response: QuartResponse) -> QuartResponse:
        if "x-request-id" not in response.headers:
            noted = Response(response.status_code, [], b"")
            answered(master, request.scope, noted)
            response.headers.update({name.decode("ascii"): value.decode("ascii") for name, value in noted.headers})
        return response

    return after


def _translated(error: Exception) -> HttpError:
    match error:
        case NotFound():
            return HttpError(404, "NOTFOUND", "no such path; GET /openapi.yaml lists what there is")
        case MethodNotAllowed():
            return HttpError(405, "METHOD", f"{request.method} is not a method of this path")
        case HTTPException() if error.code is not None and 400 <= error.code < 500:
            return HttpError(error.code, "INVALID", error.description or error.name)
    logger.error("a request failed", exc_info=error)
    return internal()
