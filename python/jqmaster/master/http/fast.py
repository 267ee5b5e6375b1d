"""The short way for the requests that are sent most: the same handlers, without Quart in between.

Quart costs about as much per request as everything else together (contexts, request and response objects,
signals). Here a request goes from ASGI straight to its handler; whatever is not hot falls through to Quart.
"""

from __future__ import annotations

import asyncio

from jqmaster.master.http.routes import ROUTE, Asgi, Receive, Response, Route, Scope, Send, respond, send_response
from jqmaster.master.master import Master


class FastPath:
    """ASGI application: hot verbs here, the rest through `app`."""

    def __init__(self, app: Asgi, master: Master) -> None:
        self._app = app
        self._master = master

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's request."""
        if scope["type"] == "http":
            route, params = scope[ROUTE]
            if route is not None and route.hot and route.method == scope["method"]:
                await self._serve(route, params, scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _serve(self, route: Route, params: dict[str, str], scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body = message["body"]  # all of it, as bounds.py gives it
        if route.path == "/pick" and b"timeout" in body:
            # Only this one may wait long; nobody must be given jobs who has gone away in the meantime.
            response = await self._while_connected(route, scope, body, receive)
            if response is None:
                return
        else:
            response = await respond(self._master, route, scope, params, body)
        await send_response(send, response)

    async def _while_connected(self, route: Route, scope: Scope, body: bytes, receive: Receive) -> Response | None:
        answer = asyncio.ensure_future(respond(self._master, route, scope, {}, body))
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else None
        finally:
            answer.cancel()
            gone.cancel()
