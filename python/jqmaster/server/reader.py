"""Reading request bodies in MessagePack. Arguments, results and errors stay as they are: see `engine/packform.py`."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

import msgpack

from jqmaster.engine.packform import MAX_LEVELS, READER_LEVELS, cut, kind_of, pack
from jqmaster.server.http_error import invalid

_PLAIN = frozenset((str, float, bool, type(None)))
_TOO_LARGE = 1 << 63
# Nothing outside a blob needs more than three.
_SPEC_LEVELS = 16
_UNREADABLE = (ValueError, TypeError, OverflowError, RecursionError)


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


def unique_map(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Raises ValueError when a key is there twice."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a map has the same key twice")
    return result


class Reader:
    """Walks through one request body. Every method that takes `path` raises 400 naming it."""

    __slots__ = ("_raw", "_unpacker")

    def __init__(self, raw: bytes) -> None:
        check(raw)
        self._raw = raw
        # Each request comes by here: not by `reader`.
        self._unpacker = msgpack.Unpacker(
            None, max_buffer_size=len(raw), strict_map_key=False, object_pairs_hook=unique_map
        )
        self._unpacker.feed(raw)

    def blob(self, _path: str = "") -> bytes:
        """The next value's own bytes, unread."""
        return cut(self._unpacker, self._raw)

    def map(
        self, path: str, blobs: Container[str] = frozenset(), special: Mapping[str, Callable[[str], Any]] | None = None
    ) -> dict[str, Any]:
        """The next value, which must be a map with text keys, each once.

        The values of `blobs` are given as their own bytes; those of `special` are read by the method given
        there, from their path; all others are unpacked. bin and ext in these are refused, which have no
        meaning outside blobs, and integers that the engine's reader would take for negative ones.
        """
        # Written for speed: a request may hold a thousand of these.
        unpacker, unpack = self._unpacker, self._unpacker.unpack
        start = unpacker.tell()
        try:
            count = unpacker.read_map_header()
        except ValueError:
            kind = kind_of(self._raw, start)
            raise invalid(path or None, f"expected a map, got {_article(kind)}") from None
        result: dict[str, Any] = {}
        for _ in range(count):
            start = unpacker.tell()
            try:
                key = unpack()
            except _UNREADABLE as error:
                raise invalid(path or None, f"a key: {_reason(error)}") from None
            if type(key) is not str:
                kind = kind_of(self._raw, start)
                raise invalid(path or None, f"expected text as key, got {_article(kind)}")
            if key in result:
                raise invalid(_join(path, key), "given twice")
            if key in blobs:
                start = unpacker.tell()
                unpacker.skip()
                result[key] = self._raw[start : unpacker.tell()]
            elif special and key in special:
                result[key] = special[key](_join(path, key))
            else:
                try:
                    value = unpack()
                except _UNREADABLE as error:
                    raise invalid(_join(path, key), _reason(error)) from None
                if type(value) not in _PLAIN and not (type(value) is int and value < _TOO_LARGE):
                    _check_plain(value, _join(path, key))
                result[key] = value
        return result

    def items(self, path: str) -> Iterator[str]:
        """Step through the next value, an array: yields each item's path, and the caller reads the item."""
        start = self._unpacker.tell()
        try:
            count = self._unpacker.read_array_header()
        except ValueError:
            raise invalid(path or None, f"expected a list, got {_article(kind_of(self._raw, start))}") from None
        for index in range(count):
            yield f"{path}[{index}]"


def _join(path: str, key: str) -> str:
    return f"{path}.{printable(key)}" if path else printable(key)


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "expected valid UTF-8"
    return f"not a value that can be read: {error}"


def _check_plain(value: Any, path: str, levels: int = _SPEC_LEVELS) -> None:
    if levels == 0:
        raise invalid(path, f"nested too deeply; at most {_SPEC_LEVELS} levels here")
    if isinstance(value, int):
        if value >= _TOO_LARGE:
            raise invalid(path, f"expected an integer below 2^63, got {value}")
    elif isinstance(value, bytes):
        raise invalid(path, "expected text, got bin")
    elif isinstance(value, (msgpack.ExtType, msgpack.Timestamp)):
        raise invalid(path, "expected a plain value, got ext")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if type(item) not in _PLAIN:
                _check_plain(item, f"{path}[{index}]", levels - 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_plain(key, path, levels - 1)
            _check_plain(item, f"{path}.{printable(str(key))}", levels - 1)


def _article(kind: str) -> str:
    return kind if kind == "nil" else f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def printable(text: str, limit: int = 80) -> str:
    """`text` fit for an error message: short and without control characters."""
    shown = text if len(text) <= limit else text[:limit] + "…"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)


def pack_spec(value: dict[str, Any]) -> bytes:
    """Pack a spec for the engine. Raises 400 for nesting that the packer refuses (over 500 levels)."""
    try:
        return pack(value)
    except (ValueError, OverflowError, RecursionError) as error:
        raise invalid(None, f"a field holds a value that cannot be passed on: {error}") from None
