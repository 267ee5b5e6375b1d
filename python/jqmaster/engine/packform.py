"""MessagePack taken apart without unpacking arguments, results and errors.

Those three are *blobs*: they are cut out of what came by their offsets and put into what goes out as they are,
so that what a client sent comes back byte for byte, whatever its encoding chose.
"""

from __future__ import annotations

from typing import Any

import msgpack

NIL = b"\xc0"
FALSE = b"\xc2"
MSGPACK = "application/msgpack"

# msgpack's reader gives up at 1024 levels, other libraries earlier. A request may not use them all: a job comes back to
# a worker some levels deeper inside a response, and a job that its worker's reader cannot take would fail for ever.
READER_LEVELS = 1024
MAX_LEVELS = 500


def reader(raw: bytes, /, **options: Any) -> Any:
    """msgpack's own, at the beginning of `raw`."""
    unpacker = msgpack.Unpacker(None, max_buffer_size=max(1, len(raw)), **options)
    unpacker.feed(raw)
    return unpacker
