"""Which handler answers what, and how a request becomes an answer."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote_to_bytes

from jqmaster.engine import packform
from jqmaster.engine.packform import MSGPACK
from jqmaster.errors import JQError
from jqmaster.manifest import contract
from jqmaster.manifest.contract import Operation
from jqmaster.manifest.manifest import operations
from jqmaster.server import jsonform
from jqmaster.server.http import access, handlers, metrics
from jqmaster.server.http.calls import Call
from jqmaster.server.http.own import Handler
from jqmaster.server.http.translate import Translation, no_such_job
from jqmaster.server.http_error import HttpError, from_engine, invalid
from jqmaster.server.master import Master
from jqmaster.server.message import JSON, Reply, Request, media_type, read_query

# The first read begins a result's time; of a job that is waited for more is published.
_WRITING = ("result", "poll_job")
# Of what a browser may show, or keep. Programs that take MessagePack do neither.
_FOR_BROWSERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
logger = logging.getLogger("jqmaster.http")

OWN = (
    access.session, access.log_in, access.log_out, access.create_key, handlers.enqueue_one, handlers.job,
    handlers.poll_job, handlers.alive, handlers.health, handlers.openapi, handlers.worker_openapi, metrics.metrics,
)  # fmt: skip
"""Requests that are more than one call of a script, or none."""


class Route:
    """Who answers a request."""

    def __init__(self, operation: Operation, route: contract.Route, handler: Handler | None = None) -> None:
        self.operation = operation
        self.method, self.path = route.method, route.path
        translation = Translation(operation, route)
        self.handler: Handler = handler or translation
        is_call = isinstance(handler, Call)
        _, body = operation.stand(route)
        # Whether its content type is checked and JSON is turned into MessagePack; else a body is ignored.
        self.takes_body = is_call or bool(body)
        # Nobody must be given jobs who has gone away while they waited.
        self.may_wait = operation.name == "pick"
        # Whether a browser may send it for a page of another site.
        self.reads = route.method == "GET" and operation.name not in _WRITING
        self.is_free = operation.is_free or operation.roles == (contract.ANYBODY,) or operation.name in operations()
        self.query: tuple[str, ...] = Call.query if is_call else tuple(translation.query)


def _routes() -> Iterator[Route]:
    for operation in operations().values():
        for route in operation.routes:
            yield Route(operation, route)
        if operation.roles != (contract.SERVER,):
            called = contract.Route(method="POST", path=f"/call/{operation.name}")
            yield Route(operation, called, Call(operation))
    for operation, handler in OWN:
        yield Route(operation, operation.routes[0], handler)


ROUTES = tuple(_routes())
# Those with a parameter have one, between two slashes or at the end: what is before it, its name, what is behind it.
_BY_PARTS = {
    (route.method, before, after): (route, name)
    for route in ROUTES
    for before, name, after in [[*re.split("[{}]", route.path), "", ""][:3]]
}
_METHODS = sorted({"HEAD", *(route.method for route in ROUTES)})
# A name is one segment of a path, whatever is in it. Browsers and many clients take `.` and `..`, percent-encoded or
# not, for steps within the path. So these have a `~` in front there, and what would be mistaken for them one more.
_DOTS = re.compile(r"~*\.\.?")


def name_of(text: str) -> str:
    """The name that a segment, percent-decoded already, stands for."""
    return text[1:] if text.startswith("~") and _DOTS.fullmatch(text) else text


def find(method: str, path: str) -> tuple[Route | None, dict[str, str]]:
    """Which route a request takes, and the parameter in its path, still percent-encoded. HEAD is GET here."""
    if method == "HEAD":
        method = "GET"
    if fixed := _BY_PARTS.get((method, path, "")):
        return (None, {}) if fixed[1] else (fixed[0], {})
    at = path.find("/", 1) + 1
    value, slash, rest = path[at:].partition("/")
    route, name = _BY_PARTS.get((method, path[:at], slash + rest), (None, ""))
    return (route, {name: value}) if value else (None, {})


def nowhere(method: str, path: str) -> HttpError:
    """404 or 405 for what no route is for."""
    if others := [other for other in _METHODS if find(other, path)[0]]:
        allow = ((b"allow", ", ".join(others).encode("ascii")),)
        return HttpError(405, "METHOD", f"{method} is not a method of this path", more=allow)
    return HttpError(404, "NOTFOUND", "no such path; GET /openapi.yaml lists what there is")


async def respond(master: Master, route: Route, request: Request, kind: str) -> Reply:
    """Answer a request of somebody who may ask for what it asks for, in this content type. Raises nothing but
    cancellation."""
    try:
        if route.takes_body and request.body:
            sent = media_type(request.headers.get(b"content-type"))
            if sent is None:
                why = f"content-type: expected {MSGPACK} or {JSON} (UTF-8)"
                raise HttpError(415, "UNSUPPORTED", why, "content-type")
            if sent == JSON:
                request.body = jsonform.to_msgpack(request.body)
        if query := request.scope["query_string"]:
            request.query = read_query(query, route.query)
        request.params = {name: _decoded(name, value) for name, value in request.params.items()}
        if request.who.queues is not None and not route.is_free:
            raise HttpError(403, "FORBIDDEN", "this key is bound to queues: this concerns all of them")
        return on_wire(await route.handler(master, request), kind)
    except HttpError as error:
        refused = error
    except JQError as error:
        if route.path.startswith("/job/{id}") and error.code == "INVALID" and error.path in ("id", "ids[0]"):
            refused = no_such_job(request.params["id"])  # what is no id is of no job
        else:
            refused = from_engine(error, request.rename(error.path) if error.path else None)
    except Exception:
        logger.exception("%s %s failed", route.method, route.path)
        refused = HttpError(500, "INTERNAL", "a fault of this server; its log has the details")
    if refused.status == 503:
        logger.warning("%s %s: %s", route.method, route.path, refused.message)
    return failure(refused, kind)


def _decoded(name: str, value: str) -> str:
    try:
        return name_of(unquote_to_bytes(value).decode("utf-8"))
    except UnicodeDecodeError:
        raise invalid(name, "expected valid UTF-8") from None


def on_wire(reply: Reply, content_type: str) -> Reply:
    """A reply as it goes out, with all that its headers say of it."""
    headers: list[tuple[bytes, bytes]] = []
    if reply.status != 204:
        if not reply.content_type and content_type == JSON:
            reply.body = jsonform.to_json(reply.body)
        kind = reply.content_type or content_type
        headers = [(b"content-type", kind.encode("ascii")), (b"content-length", b"%d" % len(reply.body))]
        if kind != MSGPACK:
            headers += _FOR_BROWSERS
    reply.headers = [*headers, *reply.headers]
    return reply


def failure(error: HttpError, content_type: str) -> Reply:
    """The answer for an error."""
    return on_wire(Reply(error.status, packform.pack(error.body()), headers=error.headers()), content_type)


def has_body(headers: Mapping[bytes, bytes]) -> bool:
    """Whether something is to come behind a request's head."""
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"
