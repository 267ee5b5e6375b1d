"""Which handler answers what, and how a request becomes a response: the same for every way in."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote_to_bytes

from jqmaster.errors import JQError
from jqmaster.master.http import (
    constraints,
    copying,
    done,
    edit,
    events,
    find,
    jobs,
    metrics,
    overview,
    queues,
    schedules,
    work,
)
from jqmaster.master.master import Master
from jqmaster.wire import access, jsonform, packform
from jqmaster.wire.errors import HttpError, from_engine, internal, invalid
from jqmaster.wire.message import JSON, MSGPACK, Reply, Request, body_type, reply_type

Headers = list[tuple[bytes, bytes]]
Handler = Callable[[Master, Request], Awaitable[Reply]]
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
# For servers in between, which should pass each piece on at once.
_UNBUFFERED = (b"cache-control", b"no-store")
logger = logging.getLogger("jqmaster.http")


@dataclass(frozen=True, slots=True)
class Route:
    """`takes_body`: its content type is checked and JSON is turned into MessagePack; else a body is ignored.
    `hot`: worth the short way around Quart (fast.py). `negotiates`: the client chooses the answer's type."""

    method: str
    path: str
    handler: Handler
    takes_body: bool = False
    hot: bool = False
    negotiates: bool = True


ROUTES = (
    Route("POST", "/job", jobs.enqueue_one, takes_body=True, hot=True),
    Route("POST", "/jobs", jobs.enqueue_many, takes_body=True, hot=True),
    Route("GET", "/job/{id}", jobs.get_job, hot=True),
    Route("DELETE", "/job/{id}", jobs.cancel_job),
    Route("PATCH", "/job/{id}", edit.change_job, takes_body=True),
    Route("GET", "/job/{id}/result", jobs.get_result, hot=True),
    Route("GET", "/job/{id}/polling", jobs.poll_job),
    Route("GET", "/job/{id}/explain", constraints.explain_job),
    Route("GET", "/job/{id}/history", edit.job_history),
    Route("GET", "/job/{id}/events", events.job_events, negotiates=False),
    Route("POST", "/job/{id}/track", edit.track_job, takes_body=True),
    Route("POST", "/job/{id}/depends", edit.depend_job, takes_body=True),
    Route("POST", "/job/{id}/kick", edit.kick_job, takes_body=True),
    Route("POST", "/job/{id}/retry", edit.retry_job),
    Route("DELETE", "/job/{id}/record", edit.discard_job),
    Route("GET", "/jobs", find.list_jobs),
    Route("POST", "/jobs/change", edit.change_many, takes_body=True),
    Route("POST", "/jobs/cancel", edit.cancel_many, takes_body=True),
    Route("POST", "/jobs/kick", edit.kick_many, takes_body=True),
    Route("POST", "/jobs/retry", edit.retry_many, takes_body=True),
    Route("POST", "/jobs/discard", edit.discard_many, takes_body=True),
    Route("GET", "/failures", find.list_failures),
    Route("GET", "/tags", find.list_tags),
    Route("POST", "/worker", work.register, takes_body=True),
    Route("DELETE", "/worker", work.unregister),
    Route("POST", "/worker/heartbeat", work.heartbeat, takes_body=True, hot=True),
    Route("POST", "/done", done.done, takes_body=True, hot=True),
    Route("POST", "/pick", work.pick, takes_body=True, hot=True),
    Route("POST", "/release", work.release, takes_body=True),
    Route("GET", "/workers", work.list_workers),
    Route("POST", "/worker/{id}/quiet", partial(work.ask_worker, what="quiet")),
    Route("POST", "/worker/{id}/stop", partial(work.ask_worker, what="stop")),
    Route("POST", "/worker/{id}/resume", partial(work.ask_worker, what="resume")),
    Route("GET", "/queues", queues.list_queues),
    Route("GET", "/queue/{name}", queues.get_queue),
    Route("POST", "/queue/{name}", queues.set_queue, takes_body=True),
    Route("PATCH", "/queue/{name}", queues.set_queue, takes_body=True),
    Route("POST", "/queue/{name}/pause", queues.pause_queue),
    Route("POST", "/queue/{name}/resume", queues.resume_queue),
    Route("DELETE", "/queue/{name}", queues.forget_queue),
    Route("GET", "/queue/{name}/jobs", find.list_queue_jobs),
    Route("DELETE", "/queue/{name}/jobs", queues.purge_queue),
    Route("POST", "/queue/{name}/kick", queues.kick_queue, takes_body=True),
    Route("GET", "/constraints", constraints.list_constraints),
    Route("PUT", "/constraint/{id}", constraints.set_constraint, takes_body=True),
    Route("GET", "/constraint/{id}", constraints.get_constraint),
    Route("DELETE", "/constraint/{id}", constraints.delete_constraint),
    Route("GET", "/constraint/{id}/usage", constraints.get_usage),
    Route("POST", "/constraint/{id}/hold", constraints.hold_constraint, takes_body=True),
    Route("GET", "/schedules", schedules.list_schedules),
    Route("PUT", "/schedule/{id}", schedules.set_schedule, takes_body=True),
    Route("GET", "/schedule/{id}", schedules.get_schedule),
    Route("DELETE", "/schedule/{id}", schedules.delete_schedule),
    Route("GET", "/events", events.all_events, negotiates=False),
    Route("GET", "/overview", overview.get_overview),
    Route("GET", "/overview/events", overview.overview_events, negotiates=False),
    Route("GET", "/stats", find.get_stats),
    Route("GET", "/stats/series", find.get_series),
    Route("GET", "/config", queues.get_config),
    Route("PATCH", "/config", queues.set_config, takes_body=True),
    Route("GET", "/export", copying.export, negotiates=False),
    Route("POST", "/import", copying.import_records),
    Route("GET", "/alive", queues.alive, hot=True),
    Route("GET", "/health", queues.health, hot=True),
    Route("GET", "/metrics", metrics.metrics, negotiates=False),
    Route("GET", "/openapi.yaml", queues.master_openapi, negotiates=False),
    Route("GET", "/worker/openapi.yaml", queues.worker_openapi, negotiates=False),
)


@dataclass(slots=True)
class Response:
    """What goes over the packform."""

    status: int
    headers: Headers
    body: bytes
    stream: AsyncGenerator[bytes, None] | None = None


async def respond(
    master: Master, route: Route, scope: Mapping[str, Any], params: Mapping[str, str], body: bytes
) -> Response:
    """Answer one request. `params` are the path's, still percent-encoded. Raises nothing but cancellation."""
    started = time.perf_counter()
    request = Request(params, scope["query_string"], dict(scope["headers"]), body)
    response = await _respond(master, route, request)
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
    request_id = access.request_id(headers.get(b"x-request-id"))
    response.headers.append((b"x-request-id", request_id))
    if access.request_log.isEnabledFor(logging.INFO):
        _log(scope, response, request, request_id, seconds)


def _known(method: str) -> str:
    # Anything can be sent as a method, and each would be a series of its own.
    return method if method in _METHODS else "OTHER"


def _log(
    scope: Mapping[str, Any],
    response: Response,
    request: Request | None,
    request_id: bytes,
    seconds: float | None,
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
    access.request_log.info(access.Fields("request", pairs))


async def _respond(master: Master, route: Route, request: Request) -> Response:
    headers, body = request.headers, request.body
    content_type = MSGPACK
    json_body = False
    try:
        # The content types come first: a request that cannot be read or answered must not change anything.
        if route.takes_body and body:
            json_body = body_type(headers.get(b"content-type")) == JSON
        if route.negotiates:
            content_type = reply_type(headers.get(b"accept"), json_body)
        if json_body:
            request.body = jsonform.to_msgpack(body)
        if request.params:
            request.params = {name: _decoded(name, value) for name, value in request.params.items()}
        try:
            reply = await route.handler(master, request)
        except JQError as error:
            raise from_engine(error, request.rename(error.path) if error.path else None) from error
        return _response(reply, content_type)
    except HttpError as error:
        if error.status >= 500:
            logger.warning("%s %s: %s", route.method, route.path, error.__cause__ or error.message)
        return failure(error, content_type)
    except asyncio.CancelledError:
        raise
    except Exception:
        logger.exception("%s %s failed", route.method, route.path)
        return failure(internal(), content_type)


def _decoded(name: str, value: str) -> str:
    try:
        return unquote_to_bytes(value).decode("utf-8")
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
    return [(b"content-type", content_type.encode("ascii")), (b"content-length", b"%d" % len(body))]


def failure(error: HttpError, content_type: str) -> Response:
    """The response for an error."""
    body = packform.pack(error.body())
    if content_type == JSON:
        body = jsonform.to_json(body)
    return Response(error.status, _headers(content_type, body) + error.headers(), body)


def failure_for(error: HttpError, headers: Headers) -> Response:
    """The response for an error met before the request was read, in the client's content type if possible."""
    known = dict(headers)
    try:
        json_body = body_type(known.get(b"content-type")) == JSON
    except HttpError:
        json_body = False
    try:
        return failure(error, reply_type(known.get(b"accept"), json_body))
    except HttpError:
        return failure(error, MSGPACK)
