"""What a request meets first: whose page sends it, who it comes from, and how much it brings, by itself and beside all
others. Bodies are read here, whole, once it is known whose they are and before a handler sees them.

Then there are two ways to the same handlers. Quart costs about as much per request as everything else together
(contexts, request and response objects, signals), so the operations that are called most go without.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from jqmaster.server import origin
from jqmaster.server.http import routes
from jqmaster.server.http.access import admit, is_closed
from jqmaster.server.http.routes import ROUTE, STREAM, WHO, Asgi, Receive, Response, Route, Scope, Send, respond
from jqmaster.server.http_error import HttpError, busy, draining
from jqmaster.server.master import Master
from jqmaster.server.message import ANYBODY

MAX_CONTENT_LENGTH = 16 * 1024 * 1024
# So much of each body is not counted: outcomes and signs of life come through, whoever sends how much else.
SMALL = 16 * 1024
REST_S = 2.0
"""How long what is left of a refused request is read: a connection that is closed while more comes takes its answer
from the client (RFC 9112, 9.6)."""
_PICKS = ("/pick", "/call/pick")
_ORIGIN = re.compile(r"\A\w+://[^/]*")


@dataclass
class RequestBounds:
    """What all requests of one master together may take. Who comes when there is no more is told so at once.
    `most_bytes`: of all bodies, from their coming until their requests are answered. `body_s`: how long one may take
    to come."""

    most_bytes: int = 128 * 1024 * 1024
    body_s: float = 60.0
    bytes: int = 0
    coming: set[asyncio.Timeout] = field(default_factory=set)
    is_stopping: bool = False

    def hurry(self, within_s: float) -> None:
        """The server stops: what is not here by then is refused."""
        self.is_stopping = True
        self.body_s = within_s
        for limit in self.coming:
            limit.reschedule(asyncio.get_running_loop().time() + within_s)


class Entrance:
    """ASGI application around `app`, which is Quart's. `longest`: bytes of a body. `hosts`, `fast`, `root_path`: as
    `create_app` has them."""

    def __init__(
        self, app: Asgi, master: Master, bounds: RequestBounds, longest: int, hosts: Collection[str] | None, fast: bool,
        root_path: str,
    ) -> None:  # fmt: skip
        self._app = app
        self._master = master
        self._bounds = bounds
        self._longest = longest
        self._names = origin.OwnNames(hosts)
        self._fast = fast
        self._root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if raw := scope.get("raw_path"):
            # The path as it was sent: in a decoded one, a queue named `a/b` looks like two segments. Of a whole URL, as
            # proxies are asked for, the path counts.
            scope["path"] = _ORIGIN.sub("", raw.decode("latin-1")) or "/"
        if self._root_path and f"{scope['path']}/".startswith(f"{self._root_path}/"):
            scope["path"] = scope["path"][len(self._root_path) :] or "/"
        route, _ = scope[ROUTE] = routes.find(scope["method"], scope["path"])
        body = _RequestBody(self._bounds)
        try:
            message = await self._let_in(route, body, scope, receive, send)
            if message is None:
                return
            if self._fast and route is not None and route.hot and route.method == scope["method"]:
                response = await self._respond(route, scope, message["body"], receive)
                if response is not None:
                    await routes.send_response(send, response)
                return
            coming = [message]

            async def once() -> Any:
                return coming.pop() if coming else await receive()

            await self._app(scope, once, send)
        finally:
            body.release()
            self._master.streams -= scope.get(STREAM, 0)

    async def _let_in(self, route: Route | None, body: _RequestBody, scope: Scope, receive: Receive, send: Send) -> Any:
        """The message with the whole body; None where the request was refused, or its client has left."""
        refused_at = None
        try:
            self._refuse_foreign(route, scope)
            if route is not None:
                refused_at = route
                scope[WHO] = admit(self._master, route.operation, scope, route.given)
                refused_at = None
            # Where keys are asked for, what anybody may send (a key to log in with) is small.
            is_strange = is_closed(self._master) and scope.get(WHO, ANYBODY) is ANYBODY
            longest = min(self._longest, SMALL) if is_strange else self._longest
            message = await body.read(scope["headers"], receive, longest)
            return None if message["type"] == "http.disconnect" else message
        except HttpError as error:
            response = routes.refusal(self._master, scope, error, refused_at)
            if routes.has_body(scope["headers"]):
                await self._send_and_close(response, receive, send)
            else:
                await routes.send_response(send, response)
            return None

    async def _send_and_close(self, response: Response, receive: Receive, send: Send) -> None:
        """Answer a request whose body has not been read to its end."""
        response.headers.append((b"connection", b"close"))
        # It goes on reading to the very end: the server waits for room for what comes, also while this sends.
        rest = asyncio.create_task(_read_rest(receive))
        limit = asyncio.timeout(0 if self._bounds.is_stopping else REST_S)
        self._bounds.coming.add(limit)
        try:
            await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
            await send({"type": "http.response.body", "body": response.body, "more_body": True})
            with contextlib.suppress(TimeoutError):
                async with limit:
                    await asyncio.wait((rest,))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._bounds.coming.discard(limit)
            rest.cancel()

    def _refuse_foreign(self, route: Route | None, scope: Scope) -> None:
        """Raise 403 for what a page of another site makes a browser send, unless it changes nothing."""
        if (name := self._names.unknown(scope["headers"])) is not None:
            why = f"this master does not answer to {name!a}: start it with --allowed-hosts for that"
            raise HttpError(403, "FORBIDDEN", why)
        if may_change(scope["method"], route) and origin.is_foreign(scope["headers"]):
            raise HttpError(403, "FORBIDDEN", "cross-origin request refused")

    async def _respond(self, route: Route, scope: Scope, body: bytes, receive: Receive) -> Response | None:
        """None where the client has left meanwhile."""
        waits = b"timeout" in (body if route.path == "/pick" else scope["query_string"])
        if route.path not in _PICKS or not waits:
            return await respond(self._master, scope, body)
        # Only these may wait long; nobody must be given jobs who has gone away in the meantime.
        answer = asyncio.ensure_future(respond(self._master, scope, body))
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else None
        finally:
            answer.cancel()
            gone.cancel()


async def _read_rest(receive: Receive) -> None:
    while (await receive()).get("more_body"):
        pass


def may_change(method: str, route: Route | None) -> bool:
    """Whether a request is more than a look."""
    return origin.may_change(method) or (route is not None and not route.reads)


class _RequestBody:
    """One that comes, of `counted` bytes so far beside what is small."""

    def __init__(self, bounds: RequestBounds) -> None:
        self._bounds = bounds
        self._counted = 0

    async def read(self, headers: Iterable[tuple[bytes, bytes]], receive: Receive, longest: int) -> Any:
        """One message instead of many; that the client has left when it left before the end. Raises 408, 413 and
        503."""
        if not routes.has_body(headers):
            return await self._read(receive, longest)
        for name, value in headers:
            if name == b"content-length" and value.isdigit() and int(value) > longest:
                raise _too_large(longest)
        self._bounds.coming.add(limit := asyncio.timeout(self._bounds.body_s))
        try:
            async with limit:
                return await self._read(receive, longest)
        except TimeoutError:
            if self._bounds.is_stopping:
                raise draining() from None
            message = f"the request's body did not arrive within {self._bounds.body_s:g} s"
            raise HttpError(408, "TIMEOUT", message) from None
        finally:
            self._bounds.coming.discard(limit)

    def release(self) -> None:
        """It is needed no more."""
        self._bounds.bytes -= self._counted

    async def _read(self, receive: Receive, longest: int) -> Any:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return message
            if chunk := message.get("body", b""):
                size += len(chunk)
                chunks.append(chunk)
                if size > longest:
                    raise _too_large(longest)
                self._count(size)
            if not message.get("more_body", False):
                return message | {"body": chunks[0] if len(chunks) == 1 else b"".join(chunks)}

    def _count(self, size: int) -> None:
        more = max(0, size - SMALL) - self._counted
        if more and self._bounds.bytes + more > self._bounds.most_bytes:
            raise busy("as many bytes of requests as it takes")
        self._bounds.bytes += more
        self._counted += more


def _too_large(longest: int) -> HttpError:
    return HttpError(413, "TOOLARGE", f"the body is larger than this server takes ({longest} bytes)")
