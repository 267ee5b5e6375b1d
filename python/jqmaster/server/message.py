"""One request and one reply, as the handlers see them: who asks, and which content types they travel in."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from jqmaster.engine.packform import MSGPACK, NIL
from jqmaster.manifest.contract import Role
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.reader import Reader, pack_spec, printable

JSON = "application/json"
_ARGUMENT, _VALUES = frozenset(("argument",)), frozenset(("result", "error"))
_MSGPACK_TYPES = (MSGPACK, "application/x-msgpack", "application/vnd.msgpack")


class Identity(NamedTuple):
    """`name` stands in the trail. `queues`: names and patterns to which it is bound; None: to none.
    `key_id` is "" where no key was shown."""

    name: str
    roles: frozenset[Role]
    queues: tuple[str, ...] | None = None
    key_id: str = ""

    def may_use(self, queue: str) -> bool:
        """Whether a queue, or all that fit a pattern, are among those it is bound to."""
        return self.queues is None or any(covers(pattern, queue) for pattern in self.queues)


ANYBODY = Identity("anonymous", frozenset(("admin",)))
"""Where no keys are asked for."""


def covers(pattern: str, text: str) -> bool:
    """Whether `text` fits: in `pattern` a `*` stands for any run of characters. Where `text` is a pattern itself,
    whether all that fits it fits `pattern` too: a `*` in it fits nothing but a `*`."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    if not text.startswith(first):
        return False
    at, last = len(first), rest.pop()
    for part in rest:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return len(text) - len(last) >= at and text.endswith(last)


@dataclass(slots=True)
class Request:
    """A request, its body already in MessagePack (empty when it has none).

    `rename` turns the path in an engine's error into what this request calls the thing; handlers set it when
    the engine's spec is not shaped like the body.
    """

    params: Mapping[str, str]
    query: bytes
    headers: Mapping[bytes, bytes]
    body: bytes
    who: Identity = ANYBODY
    scope: Mapping[str, Any] = field(default_factory=dict)
    """As ASGI has it: where the request comes from, and how."""
    rename: Callable[[str], str] = field(default=str)
    arguments: Mapping[str, str] = field(default_factory=dict)
    """The query's parameters."""
    told: Callable[[], Mapping[str, Any]] | None = None
    """For the log: which jobs and which worker the request was about. Asked only when there is a line."""

    def header(self, name: str) -> str | None:
        """A header's text, or None. Raises 400 when it is not UTF-8."""
        raw = self.headers.get(name.lower().encode("ascii"))
        if raw is None:
            return None
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise invalid(name, "expected valid UTF-8") from None

    def read_query(self, known: Collection[str]) -> None:
        """Take the query's parameters, each once, as `arguments`. Raises 400 for others than `known`."""
        result: dict[str, str] = {}
        try:
            pairs = parse_qsl(self.query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20)
        except ValueError:
            raise invalid(None, "the query string cannot be read") from None
        for name, value in pairs:
            if name not in known:
                raise unknown_field(name, known, "parameter")
            if name in result:
                raise invalid(name, "given twice")
            result[name] = value
        self.arguments = result


@dataclass(slots=True)
class Reply:
    """A handler's answer. `body` is one MessagePack value, or bytes of `content_type` when that is given.

    `stream` goes out piece by piece instead of `body`; it is closed when the client goes away.
    """

    status: int = 200
    body: bytes = b""
    content_type: str | None = None
    stream: AsyncGenerator[bytes, None] | None = None
    headers: Sequence[tuple[bytes, bytes]] = ()


def unknown_field(name: str, known: Iterable[str], kind: str = "field") -> HttpError:
    """400 for a name that is not one of `known`, with a suggestion when one is close."""
    shown = printable(name)
    close = difflib.get_close_matches(shown, list(known), n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return invalid(shown, f"unknown {kind}{hint}")


def refuse_unknown(fields: Iterable[str], known: Iterable[str], prefix: str = "") -> None:
    """Raise 400 for the first of `fields` that is not one of `known`; `prefix` is the path before them."""
    known = tuple(known)
    for name in fields:
        if name not in known:
            raise unknown_field(f"{prefix}{name}", [f"{prefix}{field}" for field in known])


def flag(text: str, name: str) -> bool:
    """A query's parameter that is true or false; alone it is true."""
    if re.fullmatch(r"|1|true|yes", text):
        return True
    if re.fullmatch(r"0|false|no", text):
        return False
    raise invalid(name, f"expected true or false, got {printable(text, 40)!r}")


def seconds(value: Any, name: str, most: float) -> float:
    """`value` as a number of seconds from 0 to `most`, or 400."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise invalid(name, f"expected a number of seconds, got {printable(value, 40)!r}") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise invalid(name, f"expected a number of seconds, got {type(value).__name__}")
    if math.isnan(value) or not 0 <= value <= most:
        raise invalid(name, f"expected 0 to {most:g} seconds, got {value:g}")
    return float(value)


def _media(text: str) -> tuple[str, dict[str, str]]:
    """A media type and its parameters, all in lower case."""
    media, *parameters = [part.strip().lower() for part in text.split(";")]
    pairs = (parameter.partition("=") for parameter in parameters)
    return media, {name.strip(): value.strip().strip('"') for name, _, value in pairs}


def is_msgpack(header: bytes) -> bool:
    """Whether a content-type says so, which no page can without asking first."""
    return header.decode("latin-1").partition(";")[0].strip().lower() in _MSGPACK_TYPES


def read_item(reader: Reader, path: str, kind: str) -> tuple[dict[str, Any], list[bytes]]:
    """A `NewJob`, `JobChange` or `Outcome`: its spec, and what stands behind that, its value unread and the jobs that
    follow."""
    if kind == "Outcome":
        return _read_outcome(reader, path)
    spec = reader.map(path, _ARGUMENT)
    return spec, [spec.pop("argument", NIL if kind == "NewJob" else b"")]


def read_items(
    reader: Reader, path: str, kind: str, carry: Callable[[dict[str, Any]], None] | None = None
) -> list[bytes]:
    """A list of them, as the engine takes it. `carry` is done to each spec."""
    parts: list[bytes] = []
    for at in reader.items(path):
        spec, rest = read_item(reader, at, kind)
        if carry is not None:
            carry(spec)
        parts.append(pack_spec(spec))
        parts += rest
    return parts


def _read_outcome(reader: Reader, path: str) -> tuple[dict[str, Any], list[bytes]]:
    follow: list[bytes] = []

    def read_follow(at: str) -> int:
        follow.extend(read_items(reader, at, "NewJob"))
        if not follow:
            raise invalid(at, "expected 1 to 1000 jobs, got none")
        return len(follow) // 2

    spec = reader.map(path, _VALUES, {"enqueue": read_follow})
    name, other = ("error", "result") if spec.get("type") == "failure" else ("result", "error")
    if other in spec:
        kind = printable(str(spec.get("type")))
        raise invalid(f"{path}.{other}".removeprefix("."), f"an outcome of type {kind} has {name}, not {other}")
    return spec, [spec.pop(name, NIL), *follow]


@lru_cache(maxsize=256)
def body_type(header: bytes | None) -> str:
    """MSGPACK or JSON for a request's content-type; none means MessagePack. Raises 415 for others."""
    if header is None:
        return MSGPACK
    media, parameters = _media(header.decode("latin-1"))
    if media in _MSGPACK_TYPES:
        return MSGPACK
    if media == JSON and parameters.get("charset", "utf-8") in ("utf-8", "utf8", "us-ascii"):
        return JSON
    raise HttpError(
        415,
        "UNSUPPORTED",
        f"content-type: expected {MSGPACK} or {JSON} (UTF-8), got {printable(media)!r}",
        "content-type",
    )


def sent_type(header: bytes | None, has_body: bool) -> str | None:
    """The type that a request is of, if it has a body, or names one that is known."""
    if header is None:
        return MSGPACK if has_body else None
    try:
        return body_type(header)
    except HttpError:
        return None


@lru_cache(maxsize=1024)
def reply_type(accept: bytes | None, sent: str | None) -> str:
    """The content type to answer in. Raises 406 when the client takes neither MessagePack nor JSON.

    Without a preference it is MessagePack for who has `sent` that, and is no browser that shows it; else JSON.
    """
    is_json = sent != MSGPACK or (accept is not None and b"text/html" in accept)
    offers = (JSON, *_MSGPACK_TYPES) if is_json else (*_MSGPACK_TYPES, JSON)
    if accept is None or accept in (b"*/*", b""):
        return offers[0]
    ranges = accepted(accept.decode("latin-1"))
    best, best_quality = None, 0.0
    for offer in offers:
        quality = _quality(ranges, offer)
        if quality > best_quality:
            best, best_quality = offer, quality
    if best is None:
        raise HttpError(406, "NOTACCEPTABLE", f"accept: this server answers in {MSGPACK} or {JSON}", "accept")
    return best


def accepted(header: str) -> dict[str, float]:
    """The types that an `accept` takes, and how much each is wanted, from 0 to 1."""
    ranges: dict[str, float] = {}
    for part in header.split(","):
        media, parameters = _media(part)
        try:
            quality = float(parameters.get("q", 1))
        except ValueError:
            quality = 0.0
        if media:
            ranges[media] = quality
    return ranges


def _quality(ranges: dict[str, float], offer: str) -> float:
    # The most specific range decides (RFC 9110, 12.5.1).
    for pattern in (offer, "application/*", "*/*"):
        if pattern in ranges:
            return ranges[pattern]
    return 0.0
