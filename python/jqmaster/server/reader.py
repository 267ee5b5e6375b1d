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
_TOO_GREAT = pack(2**63)
_BLOBS = frozenset(("argument", "result", "error"))


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
    """The values of a checked map, unread. Raises 400 where it is none, has keys that are no text, or one twice."""
    return _members(reader(packed, strict_map_key=False), packed, path)


def _members(unpacker: Any, packed: bytes, path: str) -> dict[str, bytes]:
    """Of the map that an unpacker has come to."""
    # Written for speed: a request may hold a thousand of these.
    unpack, skip, tell = unpacker.unpack, unpacker.skip, unpacker.tell
    start = tell()
    try:
        count = unpacker.read_map_header()
    except ValueError:
        raise invalid(path or None, f"expected a map, got {kind_of(packed, start)}") from None
    found: dict[str, bytes] = {}
    for _ in range(count):
        try:
            key = unpack()
        except _UNREADABLE:
            key = None
        if type(key) is not str:
            raise invalid(path or None, "expected text as key")
        if key in found:
            raise invalid(join(path, key), "given twice")
        start = tell()
        skip()
        value = found[key] = packed[start : tell()]
        if _TOO_GREAT <= value < b"\xd0" and key not in _BLOBS:
            # Scripts would read it as a negative number.
            raise invalid(join(path, key), "expected an integer below 2^63")
    return found


def join(path: str, key: str) -> str:
    """The path of a field."""
    return f"{path}.{printable(key)}" if path else printable(key)


Context = Mapping[str, str] | None
"""The headers of a trace."""
Parts = Callable[[Any, bytes, str, Context], list[bytes]]
"""Of the item that an unpacker has come to, as scripts take it: its spec, and what stands behind."""


def new_job(unpacker: Any, packed: bytes, path: str, context: Context) -> list[bytes]:
    """A `NewJob`'s."""
    spec = _members(unpacker, packed, path)
    argument = spec.pop("argument", NIL)
    if context:
        headers = tracing.merged(unpacked(spec.get("headers", b"\x80")), context)
        spec |= {} if headers is None else {"headers": pack(headers)}
    return [raw_map(spec), argument]


def job_change(unpacker: Any, packed: bytes, path: str, _context: Context) -> list[bytes]:
    """A `JobChange`'s."""
    spec = _members(unpacker, packed, path)
    argument = spec.pop("argument", b"")
    return [raw_map(spec), argument]


def outcome(unpacker: Any, packed: bytes, path: str, context: Context) -> list[bytes]:
    """An `Outcome`'s: its result or error, and the jobs that follow it."""
    spec = _members(unpacker, packed, path)
    value = spec.pop("error" if spec.get("type") == _FAILURE else "result", NIL)
    follow: list[bytes] = []
    if "enqueue" in spec:
        follow = parts(spec["enqueue"], join(path, "enqueue"), new_job, context)
        spec["enqueue"] = pack(len(follow) // 2)
    return [raw_map(spec), value, *follow]


def value_alone(unpacker: Any, packed: bytes, _path: str, _context: Context) -> list[bytes]:
    """Of a value that has no spec."""
    return [cut(unpacker, packed)]


def id_alone(unpacker: Any, packed: bytes, path: str, _context: Context) -> list[bytes]:
    """A job's id."""
    value = unpacked(cut(unpacker, packed))
    if not isinstance(value, str):
        raise invalid(path, "expected text, the id of a job")
    return [value.encode(errors="surrogateescape")]


ITEMS: Mapping[str, Parts] = {
    "NewJob": new_job, "JobChange": job_change, "Outcome": outcome, "value": value_alone, "job": id_alone,
}  # fmt: skip
"""What scripts take lists of behind their specs."""


def parts(packed: bytes, path: str, of: Parts, context: Context = None) -> list[bytes]:
    """Those of all items of a list. Raises 400."""
    unpacker = reader(packed, strict_map_key=False)
    try:
        count = unpacker.read_array_header()
    except ValueError:
        raise invalid(path or None, f"expected a list, got {kind_of(packed)}") from None
    found: list[bytes] = []
    for at in range(count):
        found += of(unpacker, packed, f"{path}[{at}]", context)
    return found


def parts_of(packed: bytes, of: Parts, context: Context = None) -> list[bytes]:
    """Those of a body that is one item. Raises 400."""
    check(packed)
    return of(reader(packed, strict_map_key=False), packed, "", context)


def printable(text: str, limit: int = 80) -> str:
    """`text` fit for an error message: short and without control characters."""
    shown = text if len(text) <= limit else text[:limit] + "…"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
