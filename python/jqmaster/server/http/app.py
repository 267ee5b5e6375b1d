"""The HTTP API, an ASGI application: whose page sends a request, who it comes from, and how much it brings, by itself
and beside all others. Bodies are read here, whole, once it is known whose they are and before a handler sees them.

The pages of the user interface are Quart's, which costs about as much per request as everything else together.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Awaitable
from typing import Any, TypeVar

from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, HTTPScope, Scope
from msgspec.msgpack import encode

from jqmaster.engine.packform import MSGPACK
from jqmaster.errors import JQError
from jqmaster.server import jsonform, logs
from jqmaster.server.http import routes, ui
from jqmaster.server.http.access import admit, check_origin
from jqmaster.server.http.calls import refuse_draining
from jqmaster.server.http_error import HttpError, from_engine
from jqmaster.server.keyring import ANONYMOUS
from jqmaster.server.master import Master
from jqmaster.server.message import JSON, Reply, Request, media_type, no_such_job, read_query, reply_type

T = TypeVar("T")

MAX_CONTENT_LENGTH = 16 * 1024 * 1024
# So much of each body is not counted: outcomes and signs of life come through, whoever sends how much else.
SMALL = 16 * 1024
REST_S = 2.0
"""How long what is left of a refused request is read: a connection that is closed while more comes takes its answer
from the client (RFC 9112, 9.6)."""
_ORIGIN = re.compile(r"\A\w+://[^/]*")
# Of what a browser may show, or keep. Programs that take MessagePack do neither.
_FOR_BROWSERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
_START = {"type": "http.response.start"}
_END = {"type": "http.response.body", "body": b"", "more_body": False}
logger = logging.getLogger("jqmaster.http")


class App:
    """It neither starts nor stops any of the server's parts.

    Bodies over `longest` bytes are refused with 413, and all together over `most_bytes`, from their coming until their
    requests are answered, with 503. `body_s`: how long one may take to come. `hosts` are the names it may be asked by,
    beside addresses and localhost; None: any. `root_path`: a proxy serves it there, and may pass that on or not.
    """

    def __init__(self, master: Master, *, hosts: frozenset[str] | None = None, root_path: str = "") -> None:
        self.master = master
        self.longest = MAX_CONTENT_LENGTH
        self.most_bytes = 128 * 1024 * 1024
        self.body_s = 60.0
        self.bytes = 0  # that are here
        self.pages = ui.pages(root_path)
        self.hosts = hosts
        self._root_path = root_path
        self._coming: set[asyncio.Timeout] = set()

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        """Serve one connection's request."""
        if scope["type"] != "http":
            await self.pages(scope, receive, send)
            return
        # The path as it was sent: in a decoded one, a queue named `a/b` looks like two segments. Of a whole URL, as
        # proxies are asked for, the path counts.
        scope["path"] = _ORIGIN.sub("", scope["raw_path"].decode("latin-1")) or "/"
        if self._root_path and f"{scope['path']}/".startswith(f"{self._root_path}/"):
            scope["path"] = scope["path"][len(self._root_path) :] or "/"
        exchange = _Exchange(self, scope, receive, send)
        try:
            await exchange.serve()
        finally:
            exchange.let_go()

    def hurry(self, within_s: float) -> None:
        """The server stops: of bodies, what is not here by then is refused."""
        self.body_s = within_s
        for limit in self._coming:
            limit.reschedule(asyncio.get_running_loop().time() + within_s)

    async def within(self, most_s: float, part: Awaitable[T]) -> T:
        """A part of a request that may take so long to come. Raises TimeoutError."""
        self._coming.add(limit := asyncio.timeout(most_s))
        try:
            async with limit:
                return await part
        finally:
            self._coming.discard(limit)


class _Exchange(Request):
    """One request, and its answer, which is counted, logged, and has an id. `counted`: bytes of its body so far, beside
    what is small."""

    def __init__(self, app: App, scope: HTTPScope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        self._route, params = routes.find(scope["method"], scope["path"])
        super().__init__(scope, dict(scope["headers"]), receive, params)
        self._app, self._master, self._pass_on = app, app.master, send
        has_body = b"transfer-encoding" in self.headers or self.headers.get(b"content-length", b"0") != b"0"
        self._comes = has_body  # whether there is more of it to read
        self._kind = reply_type(self.headers.get(b"accept"), self.headers.get(b"content-type"), has_body)
        self._started = time.perf_counter()
        self.counted = 0

    async def serve(self) -> None:
        try:
            reply = await self._reply()
        except HttpError as error:
            reply = self._refusal(error)
        except JQError as error:
            reply = self._refusal(self._from_engine(error))
        except Exception:
            logger.exception("%s failed", self._name)
            reply = self._refusal(HttpError("INTERNAL", "a fault of this server; its log has the details"))
        if reply is not None:
            await self._answer(reply)

    async def _reply(self) -> Reply | None:
        """None where the client has left, or a page is the answer. Raises HttpError, and what handlers raise."""
        app, master, route = self._app, self._master, self._route
        method, path = self.scope["method"], self.scope["path"]
        reads = route.reads if route is not None else method in ("GET", "HEAD", "OPTIONS")
        check_origin(self.headers, app.hosts, reads=reads)
        if route is None and method in ("GET", "HEAD") and ui.is_page(path):
            await app.pages(self.scope, self.receive, self._send)
            return None
        if route is None:
            raise routes.nowhere(method, path)
        self.who = await admit(master, route.operation, route.path, self)
        # Where keys are asked for, what anybody may send (a key to log in with) is small.
        is_strange = master.keyring.is_required and self.who is ANONYMOUS
        body = await self._read(min(app.longest, SMALL) if is_strange else app.longest)
        if body is None:
            return None
        self._started = time.perf_counter()  # not how long a client took to send it
        self.body = _msgpack(body, self.headers.get(b"content-type")) if body and route.takes_body else body
        if query := self.scope["query_string"]:
            self.query = read_query(query, route.query)
        self.params = {name: routes.name_of(segment) for name, segment in self.params.items()}
        return await route.answer(master, self)

    @property
    def _name(self) -> str:
        """Of the request, for the log."""
        return f"{self._route.method} {self._route.path}" if self._route else self.scope["method"]

    def _from_engine(self, error: JQError) -> HttpError:
        if self._route and self._route.path.startswith("/job/{id}") and error.code == "INVALID":
            if error.path in ("id", "ids[0]"):  # what is no id is of no job
                return no_such_job(self.params["id"])
        return from_engine(error, self.rename(error.path) if error.path else None)

    def _refusal(self, error: HttpError) -> Reply:
        if error.status == 503:
            level = logging.INFO if error.code == "DRAINING" else logging.WARNING
            logger.log(level, "%s: %s", self._name, error.message)
        return Reply(error.status, encode(error.body()), headers=error.headers())

    # -- the body ---------------------------------------------------------------------------------

    def let_go(self) -> None:
        """Nothing is kept any more of what came of it."""
        self._app.bytes -= self.counted
        self.counted = 0

    async def _read(self, longest: int) -> bytes | None:
        """All of it; None when the client left before the end. Raises 408, 413 and 503."""
        if int(self.headers.get(b"content-length", 0)) > longest:
            raise _too_large(longest)
        try:
            return await self._app.within(self._app.body_s, self._read_chunks(longest))
        except TimeoutError:
            refuse_draining(self._master)
            raise HttpError("TIMEOUT", f"the request's body did not arrive within {self._app.body_s:g} s") from None

    async def _read_chunks(self, longest: int) -> bytes | None:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                return None
            self._comes = message.get("more_body", False)
            if chunk := message.get("body", b""):
                size += len(chunk)
                chunks.append(chunk)
                if size > longest:
                    raise _too_large(longest)
                if (more := size - SMALL - self.counted) > 0:
                    if self._app.bytes + more > self._app.most_bytes:
                        raise HttpError("BUSY", "this server has as many bytes of requests as it takes")
                    self._app.bytes += more
                    self.counted += more
            if not self._comes:
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def _read_rest(self) -> None:
        while self._comes:
            self._comes = (await self.receive()).get("more_body", False)

    # -- the answer -------------------------------------------------------------------------------

    async def _answer(self, reply: Reply) -> None:
        """Where the request's body was not read, as much of it is as comes soon, and the connection closed."""
        kind, body, headers = reply.content_type or self._kind, reply.body, [*reply.headers]
        if reply.status != 204:
            body = jsonform.to_json(body) if kind == JSON else body
            headers += [(b"content-type", kind.encode("ascii")), (b"content-length", b"%d" % len(body))]
            headers += _FOR_BROWSERS if kind != MSGPACK else ()
        if self.scope["method"] == "HEAD":
            body = b""
        if not self._comes:
            await self._send({**_START, "status": reply.status, "headers": headers})
            await self._send({**_END, "body": body})
            return
        self.let_go()
        # It goes on reading to the very end: the server waits for room for what comes, also while this sends.
        rest = asyncio.create_task(self._read_rest())
        try:
            await self._send({**_START, "status": reply.status, "headers": [*headers, (b"connection", b"close")]})
            await self._send({**_END, "body": body, "more_body": True})
            with contextlib.suppress(TimeoutError):
                await self._app.within(min(REST_S, self._app.body_s), asyncio.wait((rest,)))
            await self._send(_END)
        finally:
            rest.cancel()

    async def _send(self, message: Any) -> None:
        """The head of an answer, also of a page's, gets the request's id."""
        if message["type"] == "http.response.start":
            request_id = (b"x-request-id", self._note(message["status"]))
            message = {**message, "headers": [*message["headers"], request_id]}
        await self._pass_on(message)

    def _note(self, status: int) -> bytes:
        """Count and log the answer; the request's id."""
        route, scope = self._route, self.scope
        seconds = time.perf_counter() - self._started
        # Anything can be sent as a method and a path, and each would be a series of its own.
        method, path = (route.method, route.path) if route else ("", "")
        self._master.meters.request(method, path, str(status), seconds)
        request_id = logs.request_id(self.headers.get(b"x-request-id"))
        if logs.request_log.isEnabledFor(logging.INFO):
            facts = {
                "id": request_id.decode("ascii"), "method": scope["method"], "path": scope["path"], "status": status,
                "ms": round(seconds * 1000, 3), "worker": self.header("worker-id"),
                "key": self.who.key_id, "who": self.who.name if self.who.key_id else None,
            }  # fmt: skip
            # What may hold anything, such as a line of its own, is told by JSON alone.
            logs.request_log.info("%(id)s %(method)s %(path)s %(status)d %(ms)g ms", facts, extra=facts)
        return request_id


def _msgpack(body: bytes, content_type: bytes | None) -> bytes:
    """A body in MessagePack. Raises 400, and 415 for what is of another type."""
    kind = media_type(content_type)
    if kind is None:
        why = f"content-type: expected {MSGPACK} or {JSON} (UTF-8)"
        raise HttpError("UNSUPPORTED", why, "content-type")
    return jsonform.to_msgpack(body) if kind == JSON else body


def _too_large(longest: int) -> HttpError:
    return HttpError("TOOLARGE", f"the body is larger than this server takes ({longest} bytes)")
