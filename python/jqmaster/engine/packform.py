"""MessagePack taken apart and put together without unpacking arguments, results and errors.

Those three are *blobs*: they are cut out of what came by their offsets and put into what goes out as they are,
so that what a client sent comes back byte for byte, whatever its encoding chose.
"""

from __future__ import annotations

from typing import Any

import msgpack

NIL = b"\xc0"
FALSE = b"\xc2"
MSGPACK = "application/msgpack"

# msgpack's reader gives up at 1024 levels. A request may not use them all: a job comes back to a worker some
# levels deeper inside a response, and a job that its worker's reader cannot take would fail for ever.
READER_LEVELS = 1024
MAX_LEVELS = 1000

# The first byte's ranges, by their ends.
_KINDS = (
    (0x80, "int"),
    (0x90, "map"),
    (0xA0, "array"),
    (0xC0, "str"),
    (0xC1, "nil"),
    (0xC2, "invalid"),
    (0xC4, "boolean"),
    (0xC7, "bin"),
    (0xCA, "ext"),
    (0xCC, "float"),
    (0xD4, "int"),
    (0xD9, "ext"),
    (0xDC, "str"),
    (0xDE, "array"),
    (0xE0, "map"),
)

# Making one takes longer than packing a small map. It keeps nothing between calls.
_PACKER = msgpack.Packer()


def kind_of(raw: bytes, offset: int = 0) -> str:
    """The MessagePack type of the value at `offset`."""
    first = raw[offset]
    return next((kind for end, kind in _KINDS if first < end), "int")


def reader(raw: bytes, /, **options: Any) -> Any:
    """msgpack's own, at the beginning of `raw`."""
    unpacker = msgpack.Unpacker(None, max_buffer_size=max(1, len(raw)), **options)
    unpacker.feed(raw)
    return unpacker


def cut(unpacker: Any, raw: bytes) -> bytes:
    """The next value's own bytes, unread; `raw` is what the unpacker reads."""
    start = unpacker.tell()
    unpacker.skip()
    return raw[start : unpacker.tell()]


def members(packed: bytes) -> dict[Any, bytes]:
    """The values of a map, unread."""
    unpacker = reader(packed, strict_map_key=False)
    return {unpacker.unpack(): cut(unpacker, packed) for _ in range(unpacker.read_map_header())}


def items(packed: bytes) -> list[bytes]:
    """The values of an array, unread."""
    unpacker = reader(packed)
    return [cut(unpacker, packed) for _ in range(unpacker.read_array_header())]


def within_levels(raw: bytes, levels: int) -> bool:
    """Whether `raw` (one complete value) nests no deeper than about `levels` (at most 1000)."""
    try:
        reader(b"\x91" * (READER_LEVELS - levels) + raw).skip()
    except msgpack.StackError:
        return False
    return True


def pack(value: Any) -> bytes:
    """Pack a value of our own making."""
    packed: bytes = _PACKER.pack(value)
    return packed


def map_header(count: int) -> bytes:
    """The bytes that open a map of `count` pairs."""
    header: bytes = _PACKER.pack_map_header(count)
    return header


def raw_array(items: list[bytes]) -> bytes:
    """An array of values that are packed already."""
    header: bytes = _PACKER.pack_array_header(len(items))
    return header + b"".join(items)


def raw_map(pairs: dict[str, bytes]) -> bytes:
    """A map whose values are packed already."""
    return map_header(len(pairs)) + b"".join(pack(key) + value for key, value in pairs.items())


def extend_map(document: bytes, pairs: dict[str, bytes]) -> bytes:
    """`document` (a packed map) with further pairs, their values packed already, its own bytes untouched."""
    if not pairs:
        return document
    first = document[0]
    if first & 0xF0 == 0x80:
        count, start = first & 0x0F, 1
    elif first == 0xDE:
        count, start = int.from_bytes(document[1:3], "big"), 3
    elif first == 0xDF:
        count, start = int.from_bytes(document[1:5], "big"), 5
    else:
        raise ValueError(f"expected a map, got 0x{first:02x}")
    tail = b"".join(pack(key) + value for key, value in pairs.items())
    return map_header(count + len(pairs)) + document[start:] + tail
