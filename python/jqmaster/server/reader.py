"""MessagePack of requests, taken apart and left unread: scripts check what is in it (see `engine/packform.py`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgpack
import msgspec
from msgspec import Raw
from msgspec.msgpack import encode

from jqmaster.engine import tracing
from jqmaster.engine.packform import MAX_LEVELS, NIL, READER_LEVELS, reader
from jqmaster.server.http_error import invalid

_MARGIN = b"\x91" * (READER_LEVELS - MAX_LEVELS)
_MAP = msgspec.msgpack.Decoder(dict[str, Raw])
_MAPS = msgspec.msgpack.Decoder(list[dict[str, Raw]])
_VALUES = msgspec.msgpack.Decoder(list[Raw])
_TEXTS = msgspec.msgpack.Decoder(list[str])
_FAILURE = encode("failure")
_AT = re.compile(r" - at .*?\$((?:\[\d+\])*)`")
BLOBS: Mapping[str, bytes] = {"NewJob": NIL, "JobChange": b"", "Outcome": NIL}
"""What scripts take lists of with a value behind each spec, and what stands there for none."""


def check(raw: bytes, what: str = "the body") -> None:
    """Raise 400 unless `raw` is exactly one complete MessagePack value of bearable depth.

    Skipping builds nothing, so a declared length that lies costs nothing; after it every length is known to
    be true, and unpacking a part cannot take more memory than a small multiple of the body.
    """
    unpacker = reader(_MARGIN + raw)
    try:
        unpacker.skip()
    except msgpack.StackError:
        raise invalid(None, f"{what} is nested too deeply; at most {MAX_LEVELS} levels") from None
    except (msgpack.OutOfData, ValueError):
        raise invalid(None, f"{what} is empty, truncated, or not MessagePack") from None
    if unpacker.tell() != len(_MARGIN) + len(raw):
        raise invalid(None, f"{what} goes on after its value")


def unpacked(packed: bytes) -> Any:
    """A value; None for what cannot be read, or says something twice."""
    options: dict[str, Any] = {"strict_map_key": False, "unicode_errors": "surrogateescape"}
    try:
        return msgpack.unpackb(packed, object_pairs_hook=_unique_map, **options)
    except (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException):
        return None


def _unique_map(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a map has the same key twice")
    return result


def map_of(packed: Any) -> dict[str, Any]:
    """A map by which it is decided who may do what: read as scripts read it, or refused with 400."""
    value = unpacked(packed)
    if not isinstance(value, dict):
        raise invalid("spec", "expected a map without a key twice")
    return value


def members(packed: bytes) -> dict[str, Raw]:
    """The values of a map, unread; of a key that is there twice the last. Raises 400 where it is none, or has keys that
    are no text."""
    check(packed)
    found: dict[str, Raw] = _decoded(_MAP, packed)
    return found


def extended(document: bytes, **values: bytes) -> bytes:
    """A document of a script's with further values, packed already."""
    return encode({**_MAP.decode(document), **{name: Raw(value) for name, value in values.items()}})


def parts(packed: bytes, path: str, kind: str, context: Mapping[str, str]) -> list[bytes]:
    """The items of a checked list as scripts take them: those of `BLOBS` as a spec with its value behind it, and behind
    an outcome the jobs that follow it. `context`: the headers of a trace. Raises 400."""
    if kind == "value":
        return [bytes(value) for value in _decoded(_VALUES, packed, path)]
    if kind == "job":
        return [job_id.encode() for job_id in _decoded(_TEXTS, packed, path)]
    found: list[bytes] = []
    for at, spec in enumerate(_decoded(_MAPS, packed, path)):
        found += _item(spec, f"{path}[{at}]", kind, context)
    return found


def item(packed: bytes, kind: str, context: Mapping[str, str] | None = None) -> list[bytes]:
    """The same of a body that is one item. Raises 400."""
    check(packed)
    return _item(_decoded(_MAP, packed), "", kind, context or {})


def _item(spec: dict[str, Any], path: str, kind: str, context: Mapping[str, str]) -> list[bytes]:
    name = "argument"
    follow: list[bytes] = []
    if kind == "Outcome":
        name = "error" if bytes(spec.get("type", b"")) == _FAILURE else "result"
        if "enqueue" in spec:
            follow = parts(spec["enqueue"], f"{path}.enqueue".lstrip("."), "NewJob", context)
            spec["enqueue"] = len(follow) // 2
    elif kind == "NewJob" and context:
        headers = tracing.merged(unpacked(spec.get("headers", b"\x80")), context)
        spec |= {} if headers is None else {"headers": headers}
    value = bytes(spec.pop(name, BLOBS[kind]))
    return [encode(spec), value, *follow]


def _decoded(decoder: msgspec.msgpack.Decoder[Any], packed: bytes, path: str = "") -> Any:
    try:
        return decoder.decode(packed)
    except (ValueError, RecursionError) as error:
        at = _AT.search(str(error))
        raise invalid(f"{path}{at[1] if at else ''}" or None, _AT.sub("", str(error))) from None


def printable(text: str, limit: int = 80) -> str:
    """`text` fit for an error message: short and without control characters."""
    shown = text if len(text) <= limit else text[:limit] + "…"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
