"""MessagePack of requests, taken apart and left unread: scripts check what is in it (see `engine/packform.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgpack

from jqmaster.engine import tracing
from jqmaster.engine.packform import MAX_LEVELS, NIL, READER_LEVELS, cut, kind_of, map_header, pack, raw_map, reader
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
    return {key: packed[at:end] for key, (_, at, end) in _spans(_reader(packed), packed, path).items()}


def _reader(packed: bytes) -> Any:
    return reader(packed, strict_map_key=False)


def _spans(unpacker: Any, packed: bytes, path: str) -> dict[str, tuple[int, int, int]]:
    """Of a map, in order, where each key and its value begin, and where the value ends."""
    # Written for speed: a request may hold a thousand of these.
    unpack, skip, tell = unpacker.unpack, unpacker.skip, unpacker.tell
    start = tell()
    try:
        count = unpacker.read_map_header()
    except ValueError:
        raise invalid(path or None, f"expected a map, got {kind_of(packed, start)}") from None
    found: dict[str, tuple[int, int, int]] = {}
    start = tell()
    for _ in range(count):
        try:
            key = unpack()
        except _UNREADABLE:
            key = None
        if type(key) is not str:
            raise invalid(path or None, "expected text as key")
        if key in found:
            raise invalid(join(path, key), "given twice")
        at = tell()
        skip()
        end = tell()
        found[key] = start, at, end
        start = end
    return found


def _without(unpacker: Any, packed: bytes, name: str, path: str) -> tuple[bytes, bytes | None]:
    """A map without one of its members, and that; None where there is none."""
    whole = unpacker.tell()
    spans = _spans(unpacker, packed, path)
    last = unpacker.tell()
    if name not in spans:
        return packed[whole:last], None
    start, at, end = spans[name]
    first = next(iter(spans.values()))[0]
    return map_header(len(spans) - 1) + packed[first:start] + packed[end:last], packed[at:end]


def join(path: str, key: str) -> str:
    """The path of a field."""
    return f"{path}.{printable(key)}" if path else printable(key)


Context = Mapping[str, str] | None
"""The headers of a trace."""
Parts = Callable[[Any, bytes, str, Context], list[bytes]]
"""Of the item that an unpacker has come to, as scripts take it: its spec, and what stands behind."""


def new_job(unpacker: Any, packed: bytes, path: str, context: Context) -> list[bytes]:
    """A `NewJob`'s."""
    spec, argument = _without(unpacker, packed, "argument", path)
    if context:
        fields = members(spec)
        headers = tracing.merged(unpacked(fields.get("headers", b"\x80")), context)
        spec = spec if headers is None else raw_map(fields | {"headers": pack(headers)})
    return [spec, NIL if argument is None else argument]


def job_change(unpacker: Any, packed: bytes, path: str, _context: Context) -> list[bytes]:
    """A `JobChange`'s."""
    spec, argument = _without(unpacker, packed, "argument", path)
    return [spec, b"" if argument is None else argument]


def outcome(unpacker: Any, packed: bytes, path: str, context: Context) -> list[bytes]:
    """An `Outcome`'s: its result or error, and the jobs that follow it."""
    fields = {key: packed[at:end] for key, (_, at, end) in _spans(unpacker, packed, path).items()}
    follow: list[bytes] = []
    if jobs := fields.get("enqueue"):
        follow = parts(jobs, join(path, "enqueue"), new_job, context)
        fields["enqueue"] = pack(len(follow) // 2)
    value = fields.pop("error" if fields.get("type") == _FAILURE else "result", NIL)
    return [raw_map(fields), value, *follow]


def value_alone(unpacker: Any, packed: bytes, _path: str, _context: Context) -> list[bytes]:
    """Of a value that has no spec."""
    return [cut(unpacker, packed)]


ITEMS: Mapping[str, Parts] = {
    "NewJob": new_job, "JobChange": job_change, "Outcome": outcome, "value": value_alone,
}  # fmt: skip
"""What scripts take lists of behind their specs."""


def parts(packed: bytes, path: str, of: Parts, context: Context = None) -> list[bytes]:
    """Those of all items of a list. Raises 400."""
    unpacker = _reader(packed)
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
    return of(_reader(packed), packed, "", context)


def printable(text: str, limit: int = 80) -> str:
    """`text` fit for an error message: short and without control characters."""
    shown = text if len(text) <= limit else text[:limit] + "…"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
