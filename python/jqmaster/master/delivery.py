"""One delivery of a job to a worker's HTTP API, and what its answer means (contract: the worker's own
API)."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import errno
import itertools
import logging
import os
import re
import socket
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Literal

import aiohttp
import msgpack
from yarl import URL

from jqmaster.master.http.jobs import follow_of
from jqmaster.master.reach import Barred, Reach
from jqmaster.wire import packform, signing
from jqmaster.wire.errors import HttpError, invalid
from jqmaster.wire.jsonform import to_msgpack
from jqmaster.wire.message import JSON, MSGPACK

log = logging.getLogger("jqmaster.dispatch")

CONNECT_TIMEOUT_S = 5.0
# Before it is said that there is no way to a worker. Somebody who starts again, or a proxy in between that
# loads its settings, is back within that time.
PAUSES_S = (0.1, 0.9)
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL)  # of this machine
STALE_WITHIN_S = 0.25  # a worker that closed an idle connection shows it at once; later it is the job that broke it
MAX_ANSWER_BYTES = 16 * 1024 * 1024
LEAST_RETRY_AFTER_S, MAX_RETRY_AFTER_S = 1.0, 3600.0
MAX_MESSAGE_BYTES = 65536
REFUSAL_S = 2.0
_OUTCOME_FIELDS = (
    "type", "result", "error", "message", "reason", "should_retry", "group", "finished_at", "move", "enqueue",
)  # fmt: skip

Why = Literal["unknown", "busy", "unreachable", "gone"]


@dataclass(frozen=True, slots=True)
class Assigned:
    """A job that `assign` started on a worker. `document` and `argument` as the engine gave them, unread; it is
    signed with `secrets`."""

    worker: str
    url: str
    secrets: Sequence[str]
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


def assigned(parts: list[Any], own_secrets: Sequence[str] = ()) -> list[Assigned]:
    """What `assign` replies behind `next_ms`. `own_secrets` are for workers that registered none."""
    found = []
    for worker, url, secrets, document, argument in zip(*(parts[at::5] for at in range(5)), strict=True):
        fields = msgpack.unpackb(document)
        job = Assigned(
            bytes(worker).decode(), bytes(url).decode(errors="replace"), bytes(secrets).decode().split() or own_secrets,
            document, argument,
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
    """What is noted about one request. A job that was not `sent` as a whole cannot have been read. `barred`: why
    there may be no connection."""

    host: str = ""
    reused: bool = False
    barred: str = ""
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


_under_way: ContextVar[Exchange] = ContextVar("exchange")


def make_session(reach: Reach) -> aiohttp.ClientSession:
    """A session for deliveries within `reach`: connections are kept, each worker's own number of slots bounds
    them."""
    trace = aiohttp.TraceConfig()

    async def on_reused(_session: Any, context: Any, _params: Any) -> None:
        context.trace_request_ctx.reused = True

    async def on_begun(_session: Any, context: Any, _params: Any) -> None:
        context.trace_request_ctx.begun = True

    trace.on_connection_reuseconn.append(on_reused)
    trace.on_request_headers_sent.append(on_begun)

    def opened(where: Any) -> socket.socket:
        exchange = _under_way.get()
        try:
            return reach.open(exchange.host, where)
        except Barred as error:
            exchange.barred = str(error)
            raise

    # Shorter than the 75 s for which servers of ours keep an idle connection.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60, socket_factory=opened)
    return aiohttp.ClientSession(connector=connector, trace_configs=[trace], auto_decompress=False)


async def deliver(session: aiohttp.ClientSession, job: Assigned) -> Answer:
    """Send `job` to its worker and read the answer. Raises nothing but cancellation."""
    body = packform.extend_map(job.document, {"argument": job.argument})
    deadline = time.monotonic() + job.timeout_s
    pauses = iter(PAUSES_S)
    may_be_stale = is_gone = True
    for number in itertools.count():
        started = time.monotonic()
        exchange = Exchange()
        _under_way.set(exchange)
        timeout = aiohttp.ClientTimeout(total=max(0.001, deadline - started), sock_connect=CONNECT_TIMEOUT_S)
        try:
            url = URL(f"{job.url.rstrip('/')}/worker-job")
            exchange.host = url.host or ""
            headers = signing.signed(job.secrets, f"{job.id}-{job.token}-{number}", body)
            async with session.post(
                url, data=_Body(body, exchange), timeout=timeout,
                allow_redirects=False, headers={"content-type": MSGPACK, "accept": MSGPACK, **headers},
                trace_request_ctx=exchange,
            ) as response:  # fmt: skip
                may_be_stale = False  # it has begun to answer
                return await _read(response, job)
        except (aiohttp.ServerTimeoutError, aiohttp.InvalidURL):
            return Refused("unreachable", message="the worker could not be reached")
        except TimeoutError:
            return Lapses()
        except (aiohttp.ClientError, OSError) as error:
            if exchange.barred:
                return Refused("unreachable", message=f"{exchange.barred}: see --push-to")
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
        except Exception as error:
            # Whatever an URL or an answer brings about, the job must not run on until its lease lapses.
            log.warning("worker %s at %r: %s: %s", job.worker, job.url[:200], type(error).__name__, error)
            if exchange.sent:
                return failure("the worker's answer cannot be read, and it may have run the job")
            return Refused("unreachable", message="the worker could not be reached")
        await asyncio.sleep(pause_s)
    raise AssertionError


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
        case 401:
            return Refused("unreachable", message="the worker refuses the master's signature (401)")
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
            return outcome(_packed(response, body))
        except HttpError as error:
            return failure(f"the worker's answer is no outcome: {error.message}")
    if response.status == 400:
        said = _said(response, body or b"")
        return failure(said or f"the worker refused job {job.name} as bad (400)", should_retry=False)
    return failure(f"the worker answered {response.status}")


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


def _packed(response: aiohttp.ClientResponse, body: bytes) -> bytes:
    """The body in MessagePack. Raises HttpError, which quotes nothing of it."""
    if response.content_type != JSON:
        return body
    try:
        return to_msgpack(body)
    except HttpError:
        raise invalid(None, "not JSON as openapi/worker.yaml has it") from None


def outcome(body: bytes) -> Finished:
    """A 200's body as an outcome; its result or error is cut out, unread. Raises HttpError when it is none, and
    then quotes nothing of it that no outcome has: it may be the answer of something that is no worker."""
    reader = packform.Reader(body)
    blob: Callable[[str], bytes] = reader.blob
    follow: list[bytes] = []
    special = {"result": blob, "error": blob, "enqueue": lambda path: follow.extend(follow_of(reader, path))}
    try:
        fields = reader.map("", special=special)
    except HttpError as error:
        if error.field is None or re.split(r"[.\[]", error.field)[0] in _OUTCOME_FIELDS:
            raise
        raise invalid(None, "not a map as an outcome is") from None
    fields.pop("enqueue", None)
    if follow:
        fields["enqueue"] = len(follow) // 2
    kind = fields.get("type")
    if kind not in ("success", "failure"):
        raise invalid("type", "expected success or failure")
    if not fields.keys() <= set(_OUTCOME_FIELDS):
        raise invalid(None, f"an outcome has no other fields than {', '.join(_OUTCOME_FIELDS)}")
    value, other = ("result", "error") if kind == "success" else ("error", "result")
    if other in fields:
        raise invalid(other, f"an outcome of type {kind} has {value}")
    content = fields.pop(value, packform.NIL)
    return Finished(fields, content, tuple(follow))


def _said(response: aiohttp.ClientResponse, body: bytes) -> str:
    """The message in an error answer, `{error: {message}}`. Nothing else is passed on: who registers the address
    of something inside must not read its answers in the errors of jobs."""
    try:
        content = msgpack.unpackb(_packed(response, body))
    except (HttpError, ValueError, msgpack.UnpackException):
        return ""
    error = content.get("error") if isinstance(content, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) else ""


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
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            seconds = moment.timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    if seconds != seconds:
        return None
    return min(MAX_RETRY_AFTER_S, max(LEAST_RETRY_AFTER_S, seconds))
