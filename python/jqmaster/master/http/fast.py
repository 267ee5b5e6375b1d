"""The short way for the requests that are sent most: the same handlers, without Quart in between.

Quart costs about as much per request as everything else together (contexts, request and response objects,
signals). Here a request goes from ASGI straight to its handler; whatever is not hot falls through to Quart.
"""

from __future__ import annotations

import asyncio

from jqmaster.master.http.gate import admit
from jqmaster.master.http.routes import (
    ROUTES,
    Asgi,
    Receive,
    Response,
    Route,
    Scope,
    Send,
    refuse,
    respond,
    send_response,
)
from jqmaster.master.master import Master
from jqmaster.wire.errors import HttpError
from jqmaster.wire.identity import Identity

_JOB = "/job/{id}"


class FastPath:
    """ASGI application: hot verbs here, the rest through `app`."""

    def __init__(self, app: Asgi, master: Master) -> None:
        self._app = app
        self._master = master
        hot = [route for route in ROUTES if route.hot]
        self._fixed = {(route.method, route.path): route for route in hot}
        # What may follow `/job/{id}` in a hot path.
        self._of_job = {route.path.removeprefix(_JOB): route for route in hot if route.path.startswith(_JOB)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's request."""
        if scope["type"] == "http" and not scope.get("root_path"):
            route, params = self._route(scope["method"], scope["path"])
            if route is not None:
                await self._serve(route, params, scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _route(self, method: str, path: str) -> tuple[Route | None, dict[str, str]]:
        route = self._fixed.get((method, path))
        if route is not None:
            return route, {}
        if method == "GET" and path.startswith("/job/"):
            job_id, slash, rest = path[len("/job/") :].partition("/")
            if job_id:
                return self._of_job.get(slash + rest), {"id": job_id}
        return None, {}

    async def _serve(self, route: Route, params: dict[str, str], scope: Scope, receive: Receive, send: Send) -> None:
        try:
            who = admit(self._master, route.operation, scope)
        except HttpError as error:
            await refuse(self._master, scope, send, error, route)
            return
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body = message["body"]  # all of it, as bounds.py gives it
        if route.path == "/pick" and b"timeout" in body:
            # Only this one may wait long; nobody must be given jobs who has gone away in the meantime.
            response = await self._while_connected(route, scope, body, who, receive)
            if response is None:
                return
        else:
            response = await respond(self._master, route, scope, params, body, who)
        await send_response(send, response)

    async def _while_connected(
        self, route: Route, scope: Scope, body: bytes, who: Identity, receive: Receive
    ) -> Response | None:
        answer = asyncio.ensure_future(respond(self._master, route, scope, {}, body, who))
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else None
        finally:
            answer.cancel()
            gone.cancel()
