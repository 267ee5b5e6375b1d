"""Which handler answers what, and how a request becomes a response: the same for every way in."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from jqmaster.engine import packform
from jqmaster.engine.packform import MSGPACK
from jqmaster.errors import JQError
from jqmaster.manifest import contract
from jqmaster.manifest.contract import Operation
from jqmaster.manifest.manifest import operations
from jqmaster.server import jsonform, logs
from jqmaster.server.http import about, copying, events, jobs, metrics, overview
from jqmaster.server.http import access as keys
from jqmaster.server.http.call import Call
from jqmaster.server.http.own import Handler
from jqmaster.server.http.translate import Translation
from jqmaster.server.http_error import HttpError, busy, from_engine, internal, invalid
from jqmaster.server.master import Master
from jqmaster.server.message import JSON, Reply, Request, body_type, reply_type, sent_type

Headers = list[tuple[bytes, bytes]]
# What the server and its applications give each other (ASGI 3.0).
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Asgi = Callable[[Any, Any, Any], Awaitable[None]]
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
# In the scope of a request: what `find` gives, who sends it, and whether it is counted as a stream (entrance.py).
ROUTE, WHO, STREAM = "jq.route", "jq.who", "jq.stream"
# The first read begins a result's time; of a job that is followed or waited for more is published.
_WRITING = ("result", "job_events", "watch")
# For servers in between, which should pass each piece on at once.
_UNBUFFERED = (b"cache-control", b"no-store")
# Of what a browser may show, or keep. Programs that take MessagePack do neither.
_FOR_BROWSERS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
_ONLY_HTTPS = (b"strict-transport-security", b"max-age=31536000")
logger = logging.getLogger("jqmaster.http")


BY_HAND: dict[str, Handler] = {
    "GET /job/{ids[0]}/polling": jobs.poll_job,
    "POST /keys": keys.grant,
    "GET /export": copying.export,
    "POST /import": copying.import_records,
}
"""Handlers of requests that are more than one call of a script, or another one."""
OWN = (
    keys.who, keys.log_in, keys.log_out, events.all_events, events.job_events, overview.get_overview, about.alive,
    about.health, metrics.metrics, about.openapi, about.worker_openapi,
)  # fmt: skip
# Worth the short way around Quart (entrance.py), beside all calls.
_HOT = frozenset((
    "POST /job", "POST /jobs", "GET /job/{ids[0]}", "GET /job/{id}/result", "POST /worker/heartbeat", "POST /done",
    "POST /pick", "GET /alive", "GET /health",
))  # fmt: skip


class Route:
    """Who answers a request."""

    def __init__(self, operation: Operation, route: contract.Route, handler: Handler | None = None) -> None:
        self.operation = operation
        self.method, self.path = route.method, route.shown
        name = f"{route.method} {route.path}"
        self.given = (*route.fixed, *(one.partition("[")[0] for one in route.whole))
        translation = Translation(operation, route)
        self.handler: Handler = handler or BY_HAND.get(name) or translation
        is_call = isinstance(handler, Call)
        self.hot = is_call or name in _HOT
        # Whether its content type is checked and JSON is turned into MessagePack; else a body is ignored.
        self.takes_body = is_call or (route.has_body and operation.name != "import")
        # Whether the client chooses the answer's type.
        self.negotiates = route.answer not in ("events", "records", "yaml", "metrics")
        self.goes_on = route.answer in ("events", "records")
        # Whether a browser may send it for a page of another site.
        self.reads = route.method == "GET" and operation.name not in _WRITING
        self.is_free = operation.is_free or operation.roles == (contract.ANYBODY,) or operation.name in operations()
        self.parameters = ("timeout",) if is_call else translation.query


def _routes() -> Iterator[Route]:
    for operation in operations().values():
        for route in operation.routes:
            yield Route(operation, route)
        if operation.roles != (contract.SERVER,):
            called = contract.Route(method="POST", path=f"/call/{operation.name}")
            yield Route(operation, called, Call(operation))
    for operation, handler in OWN:
        for route in operation.routes:
            yield Route(operation, route, handler)


ROUTES = tuple(_routes())
_FIXED = {(route.method, route.path): route for route in ROUTES if "{" not in route.path}
# Others have one parameter, between two slashes or at the end: what is before it, its name, what is behind it.
_PARTS = [(route, re.split("[{}]", route.path)) for route in ROUTES if "{" in route.path]
_AROUND = {(route.method, before, after): (route, name) for route, (before, name, after) in _PARTS}
# A name is one segment of a path, whatever is in it. Browsers and many clients take `.` and `..`, percent-encoded or
# not, for steps within the path. So these have a `~` in front there, and what would be mistaken for them one more.
_DOTS = re.compile(r"~*\.\.?")


def segment(name: str) -> str:
    """A name as it stands in a path: `a/b` is `a%2Fb`, `..` is `~..`, `~.` is `~~.`."""
    return quote(f"~{name}" if _DOTS.fullmatch(name) else name, safe="")


def name_of(text: str) -> str:
    """The name that a segment, percent-decoded already, stands for."""
    return text[1:] if text.startswith("~") and _DOTS.fullmatch(text) else text


def find(method: str, path: str) -> tuple[Route | None, dict[str, str]]:
    """Which route a request takes, and the parameter in its path, still percent-encoded. HEAD is GET here."""
    if method == "HEAD":
        method = "GET"
    if fixed := _FIXED.get((method, path)):
        return fixed, {}
    at = path.find("/", 1) + 1
    value, slash, rest = path[at:].partition("/")
    route, name = _AROUND.get((method, path[:at], slash + rest), (None, ""))
    return (route, {name: value}) if value else (None, {})


@dataclass(slots=True)
class Response:
    """What goes over the wire."""

    status: int
    headers: Headers
    body: bytes
    stream: AsyncGenerator[bytes, None] | None = None


async def respond(master: Master, scope: Scope, body: bytes) -> Response:
    """Answer one request of somebody who may ask for what it asks for. Raises nothing but cancellation."""
    started = time.perf_counter()
    route, params = scope[ROUTE]
    request = Request(params, scope["query_string"], dict(scope["headers"]), body, scope[WHO], scope)
    response = await _respond(master, route, scope, request)
    answered(master, scope, response, route=route, request=request, started=started)
    return response


def answered(
    master: Master,
    scope: Mapping[str, Any],
    response: Response,
    *,
    route: Route | None = None,
    request: Request | None = None,
    started: float | None = None,
) -> None:
    """Count a request, log it, and put its id into the response. Without a route: one that was refused
    before it came to a handler."""
    seconds = None if started is None else time.perf_counter() - started
    method = route.method if route is not None else _known(scope["method"])
    master.meters.request(method, "" if route is None else route.path, response.status, seconds)
    headers = dict(scope["headers"]) if request is None else request.headers
    request_id = logs.request_id(headers.get(b"x-request-id"))
    response.headers.append((b"x-request-id", request_id))
    if scope["scheme"] == "https" or headers.get(b"x-forwarded-proto") == b"https":
        response.headers.append(_ONLY_HTTPS)
    if logs.request_log.isEnabledFor(logging.INFO):
        _log(scope, response, request, request_id, seconds)


def _known(method: str) -> str:
    # Anything can be sent as a method, and each would be a series of its own.
    return method if method in _METHODS else "OTHER"


def _log(
    scope: Mapping[str, Any], response: Response, request: Request | None, request_id: bytes, seconds: float | None
) -> None:
    pairs: dict[str, Any] = {
        "id": request_id.decode("ascii"), "method": scope["method"], "path": scope["path"],
        "status": response.status, "ms": None if seconds is None else round(seconds * 1000, 3),
    }  # fmt: skip
    if request is not None:
        if scope["path"].startswith("/job/"):
            pairs["job"] = request.params["id"]
        worker = request.headers.get(b"worker-id")
        pairs["worker"] = None if worker is None else worker.decode("utf-8", "replace")
        if request.told is not None:
            pairs |= request.told()
        if request.who.key_id:
            pairs |= {"key": request.who.key_id, "who": request.who.name}
    logs.request_log.info(logs.Fields("request", pairs))


async def _respond(master: Master, route: Route, scope: Scope, request: Request) -> Response:
    headers, body = request.headers, request.body
    accept, of_body = headers.get(b"accept"), headers.get(b"content-type")
    sent = sent_type(of_body, bool(body))
    content_type = sent or JSON
    try:
        # The content types come first: a request that cannot be read or answered must not change anything.
        if route.takes_body and body:
            sent = body_type(of_body)
        content_type = (reply_type if route.negotiates else error_type)(accept, sent)
        if route.takes_body and body and sent == JSON:
            request.body = jsonform.to_msgpack(body)
        if request.query:
            request.read_query(route.parameters)
        if request.params:
            request.params = {name: _decoded(name, value) for name, value in request.params.items()}
        if route.goes_on:
            _begin_stream(master, scope)
        try:
            if request.who.queues is not None and not route.is_free:
                raise HttpError(403, "FORBIDDEN", "this key is bound to queues: this concerns all of them")
            reply = await route.handler(master, request)
        except JQError as error:
            raise from_engine(error, request.rename(error.path) if error.path else None) from error
        if reply.stream is not None and request.who.key_id:
            reply.stream = keys.while_known(master, request.who, reply.stream)
        response = _response(reply, content_type)
        response.headers += reply.headers
    except HttpError as error:
        if error.status >= 500:
            logger.warning("%s %s: %s", route.method, route.path, error.__cause__ or error.message)
        response = failure(error, content_type)
    except Exception:
        logger.exception("%s %s failed", route.method, route.path)
        response = failure(internal(), content_type)
    return response


def _begin_stream(master: Master, scope: Scope) -> None:
    if master.streams >= master.most_streams:
        raise busy(f"{master.streams} streams")
    master.streams += 1
    scope[STREAM] = 1


def _decoded(name: str, value: str) -> str:
    try:
        return name_of(unquote_to_bytes(value).decode("utf-8"))
    except UnicodeDecodeError:
        raise invalid(name, "expected valid UTF-8") from None


def _response(reply: Reply, content_type: str) -> Response:
    if reply.status == 204:
        return Response(204, [], b"")
    if reply.stream is not None:
        kind = (reply.content_type or MSGPACK).encode("ascii")
        return Response(reply.status, [(b"content-type", kind), _UNBUFFERED], b"", reply.stream)
    body = reply.body
    if reply.content_type is not None:
        content_type = reply.content_type
    elif content_type == JSON:
        body = jsonform.to_json(body)
    return Response(reply.status, _headers(content_type, body), body)


def _headers(content_type: str, body: bytes) -> Headers:
    headers = [(b"content-type", content_type.encode("ascii")), (b"content-length", b"%d" % len(body))]
    return headers if content_type == MSGPACK else headers + _FOR_BROWSERS


def failure(error: HttpError, content_type: str) -> Response:
    """The response for an error."""
    body = packform.pack(error.body())
    if content_type == JSON:
        body = jsonform.to_json(body)
    return Response(error.status, _headers(content_type, body) + error.headers(), body)


def error_type(accept: bytes | None, sent: str | None) -> str:
    """In which type to tell of an error, whatever else the client takes."""
    try:
        return reply_type(accept, sent)
    except HttpError:
        return sent or JSON


def refusal(master: Master, scope: Mapping[str, Any], error: HttpError, route: Route | None = None) -> Response:
    """The response for an error met before the request was read, counted and logged."""
    known = dict(scope["headers"])
    sent = sent_type(known.get(b"content-type"), has_body(known.items()))
    response = failure(error, error_type(known.get(b"accept"), sent))
    answered(master, scope, response, route=route)
    return response


def has_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether something is to come behind a request's head."""
    return any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in headers)


async def send_response(send: Send, response: Response) -> None:
    """A response that is no stream."""
    await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": False})
