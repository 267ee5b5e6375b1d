"""Values in and out: a job's argument from the command line, documents as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from jqmaster.cli.status import Refused

NIL = b"\xc0"
STDIN = "@-"
"""What `-` on the command line is read as."""


def source(text: str) -> bytes:
    """What `TEXT`, `@FILE` or `-` (stdin) stands for. Raises OSError."""
    if text == STDIN:
        return sys.stdin.buffer.read()
    if text.startswith("@"):
        return Path(text[1:]).read_bytes()
    return text.encode("utf-8", "surrogateescape")


@contextmanager
def opened(name: str, mode: str) -> Iterator[BinaryIO]:
    """A file, or stdin or stdout."""
    if name == STDIN:
        yield sys.stdout.buffer if mode == "wb" else sys.stdin.buffer
        return
    with Path(name).open(mode) as file:
        yield file  # type: ignore[misc]


def argument(text: str | None) -> bytes:
    """A job's argument, packed; nil without one. Raises OSError, Refused."""
    return NIL if text is None else packed(source(text))


def packed(data: bytes, what: str = "the argument") -> bytes:
    """MessagePack for JSON. Raises Refused."""
    from jqmaster.server.http_error import HttpError
    from jqmaster.server.jsonform import to_msgpack

    try:
        return to_msgpack(data)
    except HttpError as error:
        raise Refused(f"{what}: {error.message}{_hint(data)}", "INVALID") from None


def _hint(data: bytes) -> str:
    text = data.decode("utf-8", "replace").strip()
    is_word = bool(text) and text[0] not in '{["0123456789-' and "\n" not in text and len(text) < 60
    return f"""; text needs quotes: '"{text}"'""" if is_word else ""


def parsed(text: str, what: str) -> Any:
    """A value from JSON on the command line, for specs: without binary data. Raises Refused."""
    import msgpack

    return msgpack.unpackb(packed(source(text), what), strict_map_key=False)


def as_json(value: Any) -> str:
    """One line of JSON for a value of MessagePack's types. Never fails on one."""
    import msgpack

    from jqmaster.server.jsonform import to_json

    raw = msgpack.packb(value, unicode_errors="surrogateescape", default=_other)
    return to_json(raw).decode("utf-8", "replace")


def _other(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return value._asdict()
    raise TypeError(f"no form for {type(value).__name__}")
