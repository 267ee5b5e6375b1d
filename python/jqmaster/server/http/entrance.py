"""The way in: whose page sends a request, who it comes from, and how much it brings, by itself and beside all others.
Bodies are read here, whole, once it is known whose they are and before a handler sees them.

All requests of the API are answered here; what is none, the pages of the user interface, is for the application around
which this stands. Quart costs about as much per request as everything else together.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from jqmaster.server import logs, origin
from jqmaster.server.http import routes, ui
from jqmaster.server.http.access import admit, is_closed
from jqmaster.server.http.calls import unless
from jqmaster.server.http.routes import Route
from jqmaster.server.http_error import HttpError, busy, draining
from jqmaster.server.keyring import ANYBODY
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request

# What the server and its applications give each other (ASGI 3.0).
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Asgi = Callable[[Any, Any, Any], Awaitable[None]]

MAX_CONTENT_LENGTH = 16 * 1024 * 1024
# So much of each body is not counted: outcomes and signs of life come through, whoever sends how much else.
SMALL = 16 * 1024
REST_S = 2.0
"""How long what is left of a refused request is read: a connection that is closed while more comes takes its answer
from the client (RFC 9112, 9.6)."""
_ORIGIN = re.compile(r"\A\w+://[^/]*")
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_ONLY_HTTPS = (b"strict-transport-security", b"max-age=31536000")
log = logging.getLogger("jqmaster.http")


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
    """ASGI application around `pages`. `longest`: bytes of a body. `hosts`, `root_path`: as `create_app` has them."""

    def __init__(
        self, pages: Asgi, master: Master, bounds: RequestBounds, longest: int, hosts: Collection[str] | None,
        root_path: str,
    ) -> None:  # fmt: skip
        self._pages = pages
        self._master = master
        self._bounds = bounds
        self._longest = longest
        self._hosts = None if hosts is None else frozenset(hosts)
        self._root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's request."""
        if scope["type"] != "http":
            await self._pages(scope, receive, send)
            return
        if raw := scope.get("raw_path"):
            # The path as it was sent: in a decoded one, a queue named `a/b` looks like two segments. Of a whole URL, as
            # proxies are asked for, the path counts.
            scope["path"] = _ORIGIN.sub("", raw.decode("latin-1")) or "/"
        if self._root_path and f"{scope['path']}/".startswith(f"{self._root_path}/"):
            scope["path"] = scope["path"][len(self._root_path) :] or "/"
        route, params = routes.find(scope["method"], scope["path"])
        answering = _Answering(self._master, route, Request(scope, dict(scope["headers"]), params), send)
        body = _RequestBody(self._bounds)
        try:
            await self._serve(answering, body, receive)
        finally:
            body.release()

    async def _serve(self, answering: _Answering, body: _RequestBody, receive: Receive) -> None:
        route, request = answering.route, answering.request
        scope = request.scope
        try:
            self._refuse_foreign(route, request)
            if route is None and scope["method"] in ("GET", "HEAD") and ui.is_page(scope["path"]):
                await self._pages(scope, receive, answering.pass_on)
                return
            if route is None:
                raise routes.nowhere(scope["method"], scope["path"])
            request.who = admit(self._master, route.operation, scope)
            # Where keys are asked for, what anybody may send (a key to log in with) is small.
            is_strange = is_closed(self._master) and request.who is ANYBODY
            longest = min(self._longest, SMALL) if is_strange else self._longest
            message = await body.read(request.headers, receive, longest)
        except HttpError as error:
            reply = routes.refusal(request, error)
            if routes.has_body(scope["headers"]):
                await self._send_and_close(answering, reply, receive)
            else:
                await answering.answer(reply)
            return
        if message["type"] == "http.disconnect":
            return
        request.body = message["body"]
        answering.started = time.perf_counter()
        if route.may_wait and b"timeout" in (request.body if "/call" not in route.path else scope["query_string"]):
            reply = await unless(receive(), routes.respond(self._master, route, request))
        else:
            reply = await routes.respond(self._master, route, request)
        if reply is not None:  # or the client has left
            await answering.answer(reply, receive)

    async def _send_and_close(self, answering: _Answering, reply: Reply, receive: Receive) -> None:
        """Answer a request whose body has not been read to its end."""
        # It goes on reading to the very end: the server waits for room for what comes, also while this sends.
        rest = asyncio.create_task(_read_rest(receive))
        limit = asyncio.timeout(0 if self._bounds.is_stopping else REST_S)
        self._bounds.coming.add(limit)
        try:
            await answering.begin(reply, (b"connection", b"close"))
            await answering.send({"type": "http.response.body", "body": reply.body, "more_body": True})
            with contextlib.suppress(TimeoutError):
                async with limit:
                    await asyncio.wait((rest,))
            await answering.send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._bounds.coming.discard(limit)
            rest.cancel()

    def _refuse_foreign(self, route: Route | None, request: Request) -> None:
        """Raise 403 for what a page of another site makes a browser send, unless it changes nothing."""
        if (name := origin.unknown_name(request.headers, self._hosts)) is not None:
            why = f"this master does not answer to {name!a}: start it with --allowed-hosts for that"
            raise HttpError(403, "FORBIDDEN", why)
        reads = route.reads if route is not None else request.scope["method"] in ("GET", "HEAD", "OPTIONS")
        if not reads and origin.is_foreign(request.headers):
            raise HttpError(403, "FORBIDDEN", "cross-origin request refused")


class _Answering:
    """One request, and its answer on the way out: counted, logged, and with its id."""

    def __init__(self, master: Master, route: Route | None, request: Request, send: Send) -> None:
        self.route = route
        self.request = request
        self.send = send
        self.started: float | None = None
        self._master = master

    async def answer(self, reply: Reply, receive: Receive | None = None) -> None:
        """Send a reply; of a stream what comes, until the client has left."""
        await self.begin(reply)
        if reply.stream is None:
            body = b"" if self.request.scope["method"] == "HEAD" else reply.body
            await self.send({"type": "http.response.body", "body": body, "more_body": False})
            return
        assert receive is not None
        self._master.streams += 1
        try:
            await unless(receive(), self._pump(reply.stream))
        finally:
            self._master.streams -= 1
            await reply.stream.aclose()

    async def _pump(self, stream: Any) -> None:
        try:
            async for piece in stream:
                await self.send({"type": "http.response.body", "body": piece, "more_body": True})
        except Exception as error:
            # The answer has no end then, by which the client knows.
            log.warning("%s broke off: %s", self.request.scope["path"], error)
            return
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def begin(self, reply: Reply, *more: tuple[bytes, bytes]) -> None:
        """Send the head of an answer."""
        headers = [*reply.headers, *more]
        self._note(reply.status, headers)
        await self.send({"type": "http.response.start", "status": reply.status, "headers": headers})

    async def pass_on(self, message: Any) -> None:
        """What another application answers."""
        if message["type"] == "http.response.start":
            headers = list(message["headers"])
            self._note(message["status"], headers)
            message = {**message, "headers": headers}
        await self.send(message)

    def _note(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        request, scope = self.request, self.request.scope
        seconds = None if self.started is None else time.perf_counter() - self.started
        # Anything can be sent as a method, and each would be a series of its own.
        method = self.route.method if self.route else scope["method"] if scope["method"] in _METHODS else "OTHER"
        self._master.meters.request(method, self.route.path if self.route else "", status, seconds)
        request_id = logs.request_id(request.headers.get(b"x-request-id"))
        headers.append((b"x-request-id", request_id))
        if scope["scheme"] == "https" or request.headers.get(b"x-forwarded-proto") == b"https":
            headers.append(_ONLY_HTTPS)
        if logs.request_log.isEnabledFor(logging.INFO):
            worker = request.headers.get(b"worker-id")
            pairs = {
                "id": request_id.decode("ascii"), "method": scope["method"], "path": scope["path"], "status": status,
                "ms": None if seconds is None else round(seconds * 1000, 3),
                "worker": None if worker is None else worker.decode("utf-8", "replace"),
                "key": request.who.key_id, "who": request.who.name if request.who.key_id else None,
            }  # fmt: skip
            logs.request_log.info(logs.Fields("request", pairs))


async def _read_rest(receive: Receive) -> None:
    while (await receive()).get("more_body"):
        pass


class _RequestBody:
    """One that comes, of `counted` bytes so far beside what is small."""

    def __init__(self, bounds: RequestBounds) -> None:
        self._bounds = bounds
        self._counted = 0

    async def read(self, headers: Any, receive: Receive, longest: int) -> Any:
        """One message instead of many; that the client has left when it left before the end. Raises 408, 413 and
        503."""
        if not routes.has_body(headers.items()):
            return await self._read(receive, longest)
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > longest:
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
