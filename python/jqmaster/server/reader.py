"""MessagePack of requests, taken apart and left unread: scripts check what is in it (see `engine/packform.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgpack

from jqmaster.engine import tracing
from jqmaster.engine.packform import MAX_LEVELS, NIL, READER_LEVELS, cut, kind_of, pack, raw_map, reader
from jqmaster.server.http_error import invalid

_UNREADABLE = (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException)
_FAILURE = pack("failure")


def check(raw: bytes, what: str = "the body") -> None:
    """Raise 400 unless `raw` is exactly one complete MessagePack value of bearable depth.

    Skipping builds nothing, so a declared length that lies costs nothing; after it every length is known to
    be true, and unpacking a part cannot take more memory than a small multiple of the body.
    """
    if not raw:
        raise invalid(None, f"{what} is empty; expected a MessagePack or JSON value")
    margin = READER_LEVELS - MAX_LEVELS
    unpacker = msgpack.Unpacker(None, max_buffer_size=len(raw) + margin)
    unpacker.feed(b"\x91" * margin + raw)
    try:
        unpacker.skip()
    except msgpack.OutOfData:
        raise invalid(None, f"{what} is truncated MessagePack: a declared length passes its end") from None
    except msgpack.StackError:
        raise invalid(None, f"{what} is nested too deeply; at most {MAX_LEVELS} levels") from None
    except ValueError:
        raise invalid(None, f"{what} is not MessagePack") from None
    end = unpacker.tell() - margin
    if end != len(raw):
        raise invalid(None, f"{what} goes on after its value: {len(raw) - end} trailing bytes")


def unpacked(packed: bytes) -> Any:
    """A value; None for what cannot be read, or says something twice."""
    options: dict[str, Any] = {"strict_map_key": False, "unicode_errors": "surrogateescape"}
    try:
        return msgpack.unpackb(packed, object_pairs_hook=_unique_map, **options)
    except _UNREADABLE:
        return None


def _unique_map(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a map has the same key twice")
    return result


def members(packed: bytes, path: str = "") -> dict[str, bytes]:
    """The values of a checked map. Raises 400 where it is none, or has keys that are no text, or one twice."""
    unpacker = reader(packed, strict_map_key=False)
    try:
        count = unpacker.read_map_header()
    except ValueError:
        raise invalid(path or None, f"expected a map, got {kind_of(packed)}") from None
    found: dict[str, bytes] = {}
    for _ in range(count):
        try:
            key = unpacker.unpack()
        except _UNREADABLE:
            key = None
        if type(key) is not str:
            raise invalid(path or None, "expected text as key")
        if key in found:
            raise invalid(join(path, key), "given twice")
        found[key] = cut(unpacker, packed)
    return found


def items(packed: bytes, path: str) -> list[bytes]:
    """The values of a checked list. Raises 400 where it is none."""
    unpacker = reader(packed)
    try:
        count = unpacker.read_array_header()
    except ValueError:
        raise invalid(path or None, f"expected a list, got {kind_of(packed)}") from None
    return [cut(unpacker, packed) for _ in range(count)]


def join(path: str, key: str) -> str:
    """The path of a field."""
    return f"{path}.{printable(key)}" if path else printable(key)


Context = Mapping[str, str] | None
"""The headers of a trace."""
Parts = Callable[[bytes, str, Context], list[bytes]]
"""Of one item, as scripts take it: its spec, and what stands behind."""


def new_job(packed: bytes, path: str = "", context: Context = None) -> list[bytes]:
    """A `NewJob`'s."""
    fields = members(packed, path)
    argument = fields.pop("argument", NIL)
    if context and (headers := tracing.merged(unpacked(fields.get("headers", b"\x80")), context)) is not None:
        fields["headers"] = pack(headers)
    return [raw_map(fields), argument]


def job_change(packed: bytes, path: str = "", _context: Context = None) -> list[bytes]:
    """A `JobChange`'s."""
    fields = members(packed, path)
    argument = fields.pop("argument", b"")
    return [raw_map(fields), argument]


def outcome(packed: bytes, path: str = "", context: Context = None) -> list[bytes]:
    """An `Outcome`'s: its result or error, and the jobs that follow it."""
    fields = members(packed, path)
    follow: list[bytes] = []
    if jobs := fields.get("enqueue"):
        follow = parts(jobs, join(path, "enqueue"), new_job, context)
        if not follow:
            raise invalid(join(path, "enqueue"), "expected 1 to 1000 jobs, got none")
        fields["enqueue"] = pack(len(follow) // 2)
    name, other = ("error", "result") if fields.get("type") == _FAILURE else ("result", "error")
    if other in fields:
        raise invalid(join(path, other), f"an outcome of this type has {name}, not {other}")
    value = fields.pop(name, NIL)
    return [raw_map(fields), value, *follow]


def value_alone(packed: bytes, _path: str, _context: Context) -> list[bytes]:
    """Of a value that has no spec."""
    return [packed]


ITEMS: Mapping[str, Parts] = {"NewJob": new_job, "JobChange": job_change, "Outcome": outcome}
"""Documents that have something behind them."""


def parts(packed: bytes, path: str, of: Parts, context: Context = None) -> list[bytes]:
    """Those of all items of a list."""
    return [part for at, item in enumerate(items(packed, path)) for part in of(item, f"{path}[{at}]", context)]


def printable(text: str, limit: int = 80) -> str:
    """`text` fit for an error message: short and without control characters."""
    shown = text if len(text) <= limit else text[:limit] + "…"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
