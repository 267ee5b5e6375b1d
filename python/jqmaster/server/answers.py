"""What is answered to a push, and what that means (contract: the worker's own API)."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgpack
from werkzeug.http import parse_date

from jqmaster.engine import packform
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.jsonform import to_msgpack
from jqmaster.server.message import JSON
from jqmaster.server.reader import item, unpacked

MAX_ANSWER_BYTES = 16 * 1024 * 1024
LEAST_RETRY_AFTER_S, MAX_RETRY_AFTER_S = 1.0, 3600.0
MAX_MESSAGE_BYTES = 65536
_OUTCOME_FIELDS = frozenset(
    ("type", "result", "error", "message", "reason", "should_retry", "retry_in", "group", "move", "resume", "enqueue")
)

REFUSED = ("unknown", "busy", "unreachable")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a push. `outcome`, in a word:

    - `accepted`: the worker has it, and says by `POST /done` what becomes of it.
    - `done`, `moved`, `blocked`, `failed`: that came as the answer: `spec`, without id and token; `follow`: specs and
      arguments of jobs to enqueue.
    - `unknown`, `busy`, `unreachable`: the receiver did not take it: the job goes back and loses nothing.
    - `lapsed`: no answer within the lease, which runs out by itself.
    - `held`, `cancelled`: it was not sent, as the receiver is left alone, or this stops: the job goes back.

    `trouble`: what is wrong with the receiver; "" when it is well, or nothing is known of it.
    """

    outcome: str
    message: str = ""
    retry_after_s: float | None = None
    spec: Mapping[str, Any] | None = None
    blob: bytes = packform.NIL
    follow: tuple[bytes, ...] = ()
    trouble: str = ""


def failure(message: str, *, should_retry: bool = True, is_trouble: bool = False) -> Answer:
    """An outcome that the master states for the receiver."""
    short = message.encode()[:MAX_MESSAGE_BYTES].decode(errors="ignore")
    spec = {"type": "failure", "should_retry": should_retry, "message": short}
    return Answer("failed", spec=spec, trouble=message if is_trouble else "")


def unreachable(why: str) -> Answer:
    """There is no way to the worker, or none by which it trusts this server."""
    return Answer("unreachable", why, trouble=why)


async def read(response: aiohttp.ClientResponse, name: str) -> Answer:
    """What a worker answered that was offered a job of this name."""
    match response.status:
        case 202:
            return Answer("accepted")
        case 401:
            return unreachable("the worker refuses the master's signature (401)")
        case 404:
            return Answer("unknown")
        case 429 | 503:
            return Answer("busy", retry_after_s=retry_after_s(response.headers.get("retry-after")))
        case 200 | 400:
            body = bytearray()
            async for chunk in response.content.iter_chunked(65536):
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    return failure(f"the worker's answer is longer than {MAX_ANSWER_BYTES} bytes", should_retry=False)
            is_json = response.content_type == JSON
            if response.status == 400:
                said = _said(bytes(body), is_json)
                return failure(said or f"the worker refused job {name} as bad (400)", should_retry=False)
            try:
                return outcome(bytes(body), is_json)
            except HttpError as error:
                return failure(f"the worker's answer is no outcome: {error.message}")
    return failure(f"the worker answered {response.status}")


def _packed(body: bytes, is_json: bool) -> bytes:
    """The body in MessagePack. Raises HttpError, which quotes nothing of it."""
    try:
        return to_msgpack(body) if is_json else body
    except HttpError:
        raise invalid(None, "not JSON as openapi/worker.yaml has it") from None


def outcome(body: bytes, is_json: bool = False) -> Answer:
    """A 200's body as an outcome; its result or error is cut out, unread. Raises HttpError when it is none, and
    then quotes nothing of it that no outcome has: it may be the answer of something that is no worker."""
    try:
        spec, content, *follow = item(_packed(body, is_json), "Outcome")
    except HttpError as error:
        if error.field is None or re.split(r"[.\[]", error.field)[0] in _OUTCOME_FIELDS:
            raise
        raise invalid(None, "not a map as an outcome is") from None
    fields = unpacked(spec) or {}
    if fields.get("type") not in ("success", "failure"):
        raise invalid("type", "expected success or failure")
    if not fields.keys() <= _OUTCOME_FIELDS:
        raise invalid(None, f"an outcome has no other fields than {', '.join(sorted(_OUTCOME_FIELDS))}")
    word = "moved" if "move" in fields else "blocked" if "resume" in fields else "done"
    word = "failed" if fields["type"] == "failure" else word
    return Answer(word, spec=fields, blob=content, follow=tuple(follow))


def _said(body: bytes, is_json: bool) -> str:
    """The message in an error answer, `{error: {message}}`. Nothing else is passed on: who registers the address
    of something inside must not read its answers in the errors of jobs."""
    try:
        message = msgpack.unpackb(_packed(body, is_json))["error"]["message"]
    except (HttpError, ValueError, TypeError, LookupError, msgpack.UnpackException):
        return ""
    return message if isinstance(message, str) else ""


def retry_after_s(header: str | None) -> float | None:
    """`Retry-After` (RFC 9110, 10.2.3) as seconds from now, within what the engine takes; None if it says
    nothing."""
    try:
        seconds = float(header or "nan")
    except ValueError:
        try:
            moment = parse_date(header)
        except OverflowError:
            return None
        seconds = math.nan if moment is None else moment.timestamp() - time.time()
    return None if math.isnan(seconds) else min(MAX_RETRY_AFTER_S, max(LEAST_RETRY_AFTER_S, seconds))
