"""One delivery of a job to a worker's HTTP API, and what its answer means (contract: the worker's own
API)."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import errno
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Literal

import aiohttp
import msgpack

from jqmaster.master.http.jobs import follow_of
from jqmaster.wire import packform
from jqmaster.wire.errors import HttpError, invalid
from jqmaster.wire.jsonform import to_msgpack
from jqmaster.wire.message import MSGPACK, unknown_field

CONNECT_TIMEOUT_S = 5.0
# Before it is said that there is no way to a worker. Somebody who starts again, or a proxy in between that
# loads its settings, is back within that time.
PAUSES_S = (0.1, 0.9)
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL)  # of this machine
STALE_WITHIN_S = 0.25  # a worker that closed an idle connection shows it at once; later it is the job that broke it
MAX_ANSWER_BYTES = 16 * 1024 * 1024
MAX_RETRY_AFTER_S = 3600.0
MAX_MESSAGE_BYTES = 65536
REFUSAL_S = 2.0
_OUTCOME_FIELDS = (
    "type", "result", "error", "message", "reason", "should_retry", "group", "finished_at", "move", "enqueue",
)  # fmt: skip

Why = Literal["unknown", "busy", "unreachable", "gone"]


@dataclass(frozen=True, slots=True)
class Assigned:
    """A job that `assign` started on a worker. `document` and `argument` as the engine gave them, unread."""

    worker: str
    url: str
    document: bytes
    argument: bytes
    id: str
    token: str
    name: str
    attempt: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Accepted:
    """The worker has it; its outcome comes by `POST /done`."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The worker did not take it: the job goes back and loses nothing."""

    why: Why
    retry_after_s: float | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The outcome came as the answer; `spec` without id and token. `follow`: specs and arguments of jobs
    to enqueue."""

    spec: dict[str, Any]
    blob: bytes = packform.NIL
    follow: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Lapses:
    """No answer within the lease, which runs out by itself."""


@dataclass(frozen=True, slots=True)
class NoRoom:
    """This process can make no connection now, to whomever: the job goes back, and the worker is not at fault."""


Answer = Accepted | Refused | Finished | Lapses | NoRoom


def outcome_of(answer: Answer) -> str:
    """In a word: `accepted`, `done`, `moved`, `failed`, `lapsed`, `no_room`, or why it was refused: `unknown`,
    `busy`, `unreachable`, `gone`."""
    match answer:
        case Refused():
            return answer.why
        case Accepted():
            return "accepted"
        case Finished():
            if answer.spec.get("type") == "failure":
                return "failed"
            return "moved" if "move" in answer.spec else "done"
        case NoRoom():
            return "no_room"
    return "lapsed"


def assigned(parts: list[Any]) -> list[Assigned]:
    """What `assign` replies behind `next_ms`."""
    found = []
    for worker, url, document, argument in zip(*(parts[at::4] for at in range(4)), strict=True):
        fields = msgpack.unpackb(document)
        job = Assigned(
            bytes(worker).decode(), bytes(url).decode(), document, argument,
            fields["id"], fields["token"], fields["name"], fields["attempt"], fields["timeout"],
        )  # fmt: skip
        found.append(job)
    return found


def failure(message: str, *, should_retry: bool = True, blob: bytes = packform.NIL) -> Finished:
    """An outcome that the master states for the worker."""
    return Finished({"type": "failure", "should_retry": should_retry, "message": _short(message)}, blob)


def _short(message: str) -> str:
    return message.encode()[:MAX_MESSAGE_BYTES].decode(errors="ignore")


@dataclass(slots=True)
class Exchange:
    """What is noted about one request. A job that was not `sent` as a whole cannot have been read."""

    reused: bool = False
    begun: bool = False
    sent: bool = False


class _Body(aiohttp.BytesPayload):
    """A request's body that notes when the last byte of it has left this process."""

    def __init__(self, body: bytes, exchange: Exchange) -> None:
        super().__init__(body, content_type=MSGPACK)
        self._exchange = exchange

    async def write_with_length(self, writer: Any, content_length: int | None) -> None:
        writer.transport.set_write_buffer_limits(0)  # so that `drain` waits until nothing is left here
        await super().write_with_length(writer, content_length)
        await writer.drain()
        self._exchange.sent = True


def make_session() -> aiohttp.ClientSession:
    """A session for deliveries: connections are kept, each worker's own number of slots bounds them."""
    trace = aiohttp.TraceConfig()

    async def on_reused(_session: Any, context: Any, _params: Any) -> None:
        context.trace_request_ctx.reused = True

    async def on_begun(_session: Any, context: Any, _params: Any) -> None:
        context.trace_request_ctx.begun = True

    trace.on_connection_reuseconn.append(on_reused)
    trace.on_request_headers_sent.append(on_begun)
    # Shorter than the 75 s for which servers of ours keep an idle connection.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
    return aiohttp.ClientSession(connector=connector, trace_configs=[trace], auto_decompress=False)


async def deliver(session: aiohttp.ClientSession, job: Assigned) -> Answer:
    """Send `job` to its worker and read the answer. Raises nothing but cancellation."""
    body = packform.extend_map(job.document, {"argument": job.argument})
    deadline = time.monotonic() + job.timeout_s
    pauses = iter(PAUSES_S)
    may_be_stale = is_gone = True
    while True:
        started = time.monotonic()
        exchange = Exchange()
        timeout = aiohttp.ClientTimeout(total=max(0.001, deadline - started), sock_connect=CONNECT_TIMEOUT_S)
        try:
            async with session.post(
                f"{job.url.rstrip('/')}/worker-job", data=_Body(body, exchange), timeout=timeout,
                allow_redirects=False, headers={"content-type": MSGPACK, "accept": MSGPACK},
                trace_request_ctx=exchange,
            ) as response:  # fmt: skip
                may_be_stale = False  # it has begun to answer
                return await _read(response, job)
        except (aiohttp.ServerTimeoutError, aiohttp.InvalidURL):
            return Refused("unreachable", message="the worker could not be reached")
        except TimeoutError:
            return Lapses()
        except (aiohttp.ClientError, OSError) as error:
            is_quick = time.monotonic() - started < STALE_WITHIN_S
            if exchange.begun and exchange.reused and may_be_stale and is_quick:
                may_be_stale = False
                continue
            if exchange.sent:
                return failure(
                    f"the worker broke the connection before it answered, and may have run the job: {_told(error)}"
                )
            is_gone = is_gone and _is_nobody_there(error)
            pause_s = next(pauses, None)
            if pause_s is None or time.monotonic() + pause_s >= deadline:
                return _no_way(error, exchange, is_gone and pause_s is None)
        await asyncio.sleep(pause_s)


def _no_way(error: Exception, exchange: Exchange, is_gone: bool) -> Answer:
    """What it means that a job did not get as far as the worker, again and again."""
    if _is_ours(error):
        return NoRoom()
    if exchange.begun:  # it would be so for ever: a job that is too long for its worker, for one
        return failure(f"the worker breaks the connection while the job is sent to it: {_told(error)}")
    if is_gone:
        return Refused("gone", message="the worker is gone: nobody listens there")
    return Refused("unreachable", message="the worker could not be reached")


def _told(error: Exception) -> str:
    return str(error) or type(error).__name__


def _is_ours(error: Exception) -> bool:
    """Whether this process can open no connection at all. A name service that met that says something else."""
    if getattr(getattr(error, "os_error", error), "errno", None) in _NO_ROOM:
        return True
    try:
        os.close(os.dup(0))
    except OSError as problem:
        return problem.errno in _NO_ROOM
    return False


def _is_nobody_there(error: Exception) -> bool:
    """Whether the worker's host says that nobody listens, which no cut line, name service or proxy under way
    says."""
    return isinstance(getattr(error, "os_error", error), ConnectionRefusedError)


async def _read(response: aiohttp.ClientResponse, job: Assigned) -> Answer:
    match response.status:
        case 202:
            return Accepted()
        case 404:
            return Refused("unknown", message=await _why(response))
        case 429 | 503:
            wait_s = retry_after_s(response.headers.get("retry-after"))
            return Refused("busy", wait_s, await _why(response))
    body = await _body(response)
    if response.status == 200:
        if body is None:
            return failure(f"the worker's answer is longer than {MAX_ANSWER_BYTES} bytes", should_retry=False)
        try:
            return outcome(to_msgpack(body) if _is_json(response) else body)
        except HttpError as error:
            return failure(f"the worker's answer is no outcome: {error.message}")
    said = _said(response, body or b"")
    if response.status == 400:
        return failure(said or f"the worker refused job {job.name} as bad (400)", should_retry=False)
    return failure(f"the worker answered {response.status}" + (f": {said}" if said else ""))


async def _why(response: aiohttp.ClientResponse) -> str:
    """What a refusal says, as far as it comes: the refusal itself is here already."""
    with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(REFUSAL_S):
            return _short(_said(response, await _body(response) or b""))
    return ""


async def _body(response: aiohttp.ClientResponse) -> bytes | None:
    chunks, size = [], 0
    async for chunk in response.content.iter_chunked(65536):
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _is_json(response: aiohttp.ClientResponse) -> bool:
    return response.content_type == "application/json"


def outcome(body: bytes) -> Finished:
    """A 200's body as an outcome; its result or error is cut out, unread. Raises HttpError when it is
    none."""
    reader = packform.Reader(body)
    blob: Callable[[str], bytes] = reader.blob
    follow: list[bytes] = []
    special = {"result": blob, "error": blob, "enqueue": lambda path: follow.extend(follow_of(reader, path))}
    fields = reader.map("", special=special)
    fields.pop("enqueue", None)
    if follow:
        fields["enqueue"] = len(follow) // 2
    for name in fields:
        if name not in _OUTCOME_FIELDS:
            raise unknown_field(name, _OUTCOME_FIELDS)
    kind = fields.get("type")
    if kind not in ("success", "failure"):
        raise invalid("type", "expected success or failure")
    value, other = ("result", "error") if kind == "success" else ("error", "result")
    if other in fields:
        raise invalid(other, f"an outcome of type {kind} has {value}")
    content = fields.pop(value, packform.NIL)
    return Finished(fields, content, tuple(follow))


def _said(response: aiohttp.ClientResponse, body: bytes) -> str:
    """The message in an error answer: `{error: {message}}`, `{message}`, or short plain text."""
    try:
        content = msgpack.unpackb(to_msgpack(body) if _is_json(response) else body)
    except (HttpError, ValueError, msgpack.UnpackException):
        return body[:1000].decode(errors="replace") if response.content_type.startswith("text/") else ""
    if isinstance(content, dict):
        content = content.get("error", content)
        if isinstance(content, dict):
            content = content.get("message")
    return content if isinstance(content, str) else ""


def retry_after_s(header: str | None) -> float | None:
    """`Retry-After` (RFC 9110, 10.2.3) as seconds from now, within what the engine takes; None if it says
    nothing."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = email.utils.parsedate_to_datetime(header)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = moment.timestamp() - time.time()
    if seconds != seconds:
        return None
    return min(MAX_RETRY_AFTER_S, max(0.0, seconds))
