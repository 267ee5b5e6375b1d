"""What a worker answers to a delivery, and what that means (contract: the worker's own API)."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import aiohttp
import msgpack

from jqmaster.engine import packform
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.jsonform import to_msgpack
from jqmaster.server.message import JSON
from jqmaster.server.reader import ITEMS, parts_of, unpacked

MAX_ANSWER_BYTES = 16 * 1024 * 1024
LEAST_RETRY_AFTER_S, MAX_RETRY_AFTER_S = 1.0, 3600.0
MAX_MESSAGE_BYTES = 65536
REFUSAL_S = 2.0
_OUTCOME_FIELDS = (
    "type", "result", "error", "message", "reason", "should_retry", "retry_in", "group", "move", "resume",
    "enqueue",
)  # fmt: skip

REFUSED = ("unknown", "busy", "unreachable")


@dataclass(frozen=True, slots=True)
class PushAnswer:
    """What came of a delivery. `outcome`, in a word:

    - `accepted`: the worker has it, and says by `POST /done` what becomes of it.
    - `done`, `moved`, `blocked`, `failed`: that came as the answer: `spec`, without id and token; `follow`: specs and
      arguments of jobs to enqueue.
    - `unknown`, `busy`, `unreachable`: the worker did not take it: the job goes back and loses nothing.
    - `lapsed`: no answer within the lease, which runs out by itself.
    - `no_room`: this process can make no connection now, to whomever: the job goes back.

    `trouble`: what is wrong with the worker; "" when it is well, or nothing is known of it.
    """

    outcome: str
    message: str = ""
    retry_after_s: float | None = None
    spec: Mapping[str, Any] | None = None
    blob: bytes = packform.NIL
    follow: tuple[bytes, ...] = ()
    trouble: str = ""


LAPSED = PushAnswer("lapsed", trouble="no answer within the lease")
NO_ROOM = PushAnswer("no_room")


def unreachable(why: str = "the worker could not be reached") -> PushAnswer:
    """There is no way to the worker, or none by which it trusts this server."""
    return PushAnswer("unreachable", why, trouble=why)


def failure(message: str, *, should_retry: bool = True, is_broken: bool = False) -> PushAnswer:
    """An outcome that the master states for the worker."""
    spec = {"type": "failure", "should_retry": should_retry, "message": _short(message)}
    return PushAnswer("failed", spec=spec, trouble=message if is_broken else "")


def _short(message: str) -> str:
    return message.encode()[:MAX_MESSAGE_BYTES].decode(errors="ignore")


async def read(response: aiohttp.ClientResponse, name: str) -> PushAnswer:
    """What a worker answered that was offered a job of this name."""
    match response.status:
        case 202:
            return PushAnswer("accepted")
        case 401:
            return unreachable("the worker refuses the master's signature (401)")
        case 404:
            return PushAnswer("unknown", await _why(response))
        case 429 | 503:
            return PushAnswer("busy", await _why(response), retry_after_s(response.headers.get("retry-after")))
    body = await _body(response)
    if response.status == 200:
        if body is None:
            return failure(f"the worker's answer is longer than {MAX_ANSWER_BYTES} bytes", should_retry=False)
        try:
            return outcome(_packed(response, body))
        except HttpError as error:
            return failure(f"the worker's answer is no outcome: {error.message}")
    if response.status == 400:
        text = _said(response, body or b"")
        return failure(text or f"the worker refused job {name} as bad (400)", should_retry=False)
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


def outcome(body: bytes) -> PushAnswer:
    """A 200's body as an outcome; its result or error is cut out, unread. Raises HttpError when it is none, and
    then quotes nothing of it that no outcome has: it may be the answer of something that is no worker."""
    try:
        spec, content, *follow = parts_of(body, ITEMS["Outcome"])
    except HttpError as error:
        if error.field is None or re.split(r"[.\[]", error.field)[0] in _OUTCOME_FIELDS:
            raise
        raise invalid(None, "not a map as an outcome is") from None
    fields = unpacked(spec) or {}
    if fields.get("type") not in ("success", "failure"):
        raise invalid("type", "expected success or failure")
    if not fields.keys() <= set(_OUTCOME_FIELDS):
        raise invalid(None, f"an outcome has no other fields than {', '.join(_OUTCOME_FIELDS)}")
    word = "moved" if "move" in fields else "blocked" if "resume" in fields else "done"
    word = "failed" if fields["type"] == "failure" else word
    return PushAnswer(word, spec=fields, blob=content, follow=tuple(follow))


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
