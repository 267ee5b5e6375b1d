"""One request and one reply, as the handlers see them, and which content types they travel in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from hypercorn.typing import HTTPScope
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header, parse_options_header

from jqmaster.engine.options import meant
from jqmaster.engine.packform import MSGPACK
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.keyring import ANONYMOUS, Identity
from jqmaster.server.reader import printable

JSON = "application/json"
_MSGPACK_TYPES = (MSGPACK, "application/x-msgpack", "application/vnd.msgpack")


@dataclass(slots=True)
class Request:
    """A request, its body already in MessagePack (empty when it has none), its path and query already read.

    `scope` and `receive`: as ASGI has them; the latter ends when the client has gone away. `rename` turns the path in
    an engine's error into what this request calls the thing.
    """

    scope: HTTPScope
    headers: Mapping[bytes, bytes]
    receive: Callable[[], Awaitable[Any]]
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str | list[str]] = field(default_factory=dict)
    body: bytes = b""
    who: Identity = ANONYMOUS
    rename: Callable[[str], str] = str

    def header(self, name: str) -> str | None:
        """A header's text, or None. What is not UTF-8 in it shows as escapes."""
        raw = self.headers.get(name.lower().encode())
        return None if raw is None else raw.decode(errors="backslashreplace")


@dataclass(slots=True)
class Reply:
    """A handler's answer. `body` is one MessagePack value, or bytes of `content_type` when that is given."""

    status: int = 200
    body: bytes = b""
    content_type: str = ""
    headers: Sequence[tuple[bytes, bytes]] = ()


def read_query(query: bytes, known: Iterable[str]) -> dict[str, str | list[str]]:
    """A query's parameters; of one that is there several times a list. Raises 400 for others than `known`."""
    try:
        text = query.decode("ascii")
        values = parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=1000)
    except ValueError:
        raise invalid(None, "the query string cannot be read") from None
    for name in values:
        if name not in known:
            raise unknown_field(name, known, "parameter")
    return {name: given[0] if len(given) == 1 else given for name, given in values.items()}


def unknown_field(name: str, known: Iterable[str], kind: str = "field") -> HttpError:
    """400 for a name that is not one of `known`, with a suggestion when one is close."""
    return invalid(shown := printable(name), f"unknown {kind}{meant(shown, known)}")


def no_such_job(job_id: str) -> HttpError:
    """404 for a job."""
    return HttpError("NOTFOUND", f"no such job: {printable(job_id)}")


@lru_cache(maxsize=256)
def media_type(header: bytes | None) -> str | None:
    """MSGPACK or JSON for a content-type; none means MessagePack. None: it is another."""
    if header is None:
        return MSGPACK
    media, parameters = parse_options_header(header.decode("latin-1").lower())
    if media in _MSGPACK_TYPES:
        return MSGPACK
    return JSON if media == JSON and parameters.get("charset", "utf-8") in ("utf-8", "utf8", "us-ascii") else None


@lru_cache(maxsize=1024)
def reply_type(accept: bytes | None, content_type: bytes | None, has_body: bool) -> str:
    """The content type to answer in: the first that the client takes, whoever takes none gets one all the same.

    Without a preference it is MessagePack for who sends that, and is no browser that shows it; else JSON.
    """
    sends_msgpack = media_type(content_type) == MSGPACK if has_body or content_type is not None else False
    is_json = not sends_msgpack or (accept is not None and b"text/html" in accept)
    offers = (JSON, *_MSGPACK_TYPES) if is_json else (*_MSGPACK_TYPES, JSON)
    return parse_accept_header((accept or b"*/*").decode("latin-1"), MIMEAccept).best_match(offers) or offers[0]
