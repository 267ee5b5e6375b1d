"""JSON as another spelling of MessagePack, so that JSON clients can send and see every value there is.

What JSON has is itself: nil is `null`, integers and floats are numbers (`1` and `1.0` stay apart; integers
use all 64 bits), text is a string, arrays and maps with text keys are arrays and objects. Everything else is
an object with exactly one member:

| MessagePack | JSON |
| --- | --- |
| bin | `{"$bin": "<base64>"}` |
| ext, timestamps | `{"$ext": [type, "<base64>"]}` |
| NaN and infinities | `{"$float": "nan" / "inf" / "-inf"}` |
| str that is not UTF-8 | `{"$str": "<base64>"}` |
| a map with keys other than text or a key twice, or that looks like a row here | `{"$map": [[k, v], …]}` |
| anything else, such as nesting over 200 levels | `{"$msgpack": "<base64 of its bytes>"}` |

Both directions know the same table, so values (not their encodings) survive the way there and back.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from dataclasses import dataclass
from typing import Any, NoReturn

import msgpack

from jqmaster.engine import packform
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.reader import check, printable

MAX_JSON_LEVELS = 200
_SPECIAL = frozenset(("$bin", "$ext", "$float", "$str", "$map", "$msgpack"))
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
# How many levels of a response are taken apart to leave its good parts readable when one part is not:
# body → jobs → job → argument.
_DESCEND = 3


@dataclass(slots=True)
class _Raw:
    """A part that is packed already."""

    data: bytes


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


# JSON → MessagePack


def to_msgpack(body: bytes) -> bytes:
    """The MessagePack form of a JSON body. Raises 400 saying what is wrong."""
    reader = _JsonReader()
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=reader.pairs,
            parse_float=reader.number,
            parse_constant=reader.constant,
        )
        packed = _pack(value) if reader.raw_seen else packform.pack(value)
    except UnicodeDecodeError:
        raise invalid(None, "the body is not valid UTF-8") from None
    except UnicodeEncodeError:
        raise invalid(None, "the JSON body holds half of a surrogate pair, which is no text") from None
    except json.JSONDecodeError as error:
        raise invalid(None, f"the body is not JSON: {error}") from None
    except OverflowError:
        raise invalid(None, "the JSON body holds an integer of more than 64 bits") from None
    except RecursionError:
        _too_deep()
    except ValueError as error:
        if "recursion" in str(error):
            _too_deep()
        raise invalid(None, "the JSON body holds an integer of more than 64 bits") from None
    if not reader.raw_seen and not packform.within_levels(packed, MAX_JSON_LEVELS):
        _too_deep()
    return packed


def _too_deep() -> NoReturn:
    raise invalid(None, f"the JSON body is nested too deeply; at most {MAX_JSON_LEVELS} levels") from None


class _JsonReader:
    """The hooks for one JSON body."""

    def __init__(self) -> None:
        self.raw_seen = False

    def number(self, text: str) -> float:
        value = float(text)
        if math.isinf(value):
            raise invalid(None, f"the number {printable(text, 40)} is out of a float's range")
        return value

    def constant(self, text: str) -> NoReturn:
        raise invalid(None, f'the JSON body holds {text}, which is not JSON; write {{"$float": …}}')

    def pairs(self, pairs: list[tuple[str, Any]]) -> Any:
        if len(pairs) == 1 and pairs[0][0] in _SPECIAL:
            return self.special(*pairs[0])
        result = dict(pairs)
        if len(result) != len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise invalid(None, f"the JSON body has the key {printable(twice)!r} twice in one object")
        return result

    def special(self, key: str, value: Any) -> Any:
        match key, value:
            case "$bin", str():
                return _unb64(key, value)
            case "$ext", [int() as code, str() as data] if -128 <= code <= 127 and not isinstance(code, bool):
                return self.raw(_ext(code, _unb64(key, data)))
            case "$float", str() if value in _FLOATS:
                return _FLOATS[value]
            case "$str", str():
                text = _unb64(key, value)
                return self.raw(_str_header(len(text)) + text)
            case "$map", list() if all(isinstance(pair, list) and len(pair) == 2 for pair in value):
                return self.raw(packform.map_header(len(value)) + b"".join(_pack(k) + _pack(v) for k, v in value))
            case "$msgpack", str():
                whole = _unb64(key, value)
                check(whole, key)
                return self.raw(whole)
        raise invalid(None, f"{key}: not of the form this notation has; see the OpenAPI document")

    def raw(self, data: bytes) -> _Raw:
        self.raw_seen = True
        return _Raw(data)


def _unb64(key: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise invalid(None, f"{key}: expected base64") from None


def _ext(code: int, data: bytes) -> bytes:
    packer = msgpack.Packer(autoreset=False)
    packer.pack_ext_type(code, data)
    packed: bytes = packer.bytes()
    return packed


def _str_header(length: int) -> bytes:
    # Taking the header off a text of that length keeps the format's table in one place, the library.
    return packform.pack("x" * length)[: -length or None]


def _pack(value: Any) -> bytes:
    if isinstance(value, _Raw):
        return value.data
    if isinstance(value, dict):
        return packform.map_header(len(value)) + b"".join(packform.pack(k) + _pack(v) for k, v in value.items())
    if isinstance(value, list):
        return packform.raw_array([_pack(item) for item in value])
    return packform.pack(value)


# MessagePack → JSON


def to_json(raw: bytes) -> bytes:
    """The JSON form of one MessagePack value. Never fails on a value that MessagePack allows."""
    return _render(raw, _DESCEND)


def _render(raw: bytes, descend: int) -> bytes:
    try:
        if packform.within_levels(raw, MAX_JSON_LEVELS):
            return _render_whole(raw)
    except (ValueError, TypeError, OverflowError, RecursionError):
        # A malformed timestamp, for one: legal bytes that the reader refuses.
        pass
    kind = packform.kind_of(raw)
    if descend and kind in ("map", "array"):
        try:
            return _render_parts(raw, kind, descend)
        except HttpError:
            pass
    return b'{"$msgpack":"%s"}' % base64.b64encode(raw)


def _render_whole(raw: bytes) -> bytes:
    value = msgpack.unpackb(
        raw, object_pairs_hook=_object, strict_map_key=False, unicode_errors="surrogateescape", ext_hook=_Ext
    )
    try:
        return _dumps(value)
    except ValueError:  # NaN, an infinity, or text that is not UTF-8: rare, so looked for only now
        return _dumps(_plain(value))


def _dumps(value: Any) -> bytes:
    text = json.dumps(value, default=_other, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8")


def _object(pairs: list[tuple[Any, Any]]) -> Any:
    result = {key: value for key, value in pairs if type(key) is str}
    if len(result) != len(pairs) or (len(pairs) == 1 and pairs[0][0] in _SPECIAL):
        return _Pairs(pairs)
    return result


@dataclass(slots=True)
class _Pairs:
    """A map that no JSON object can show."""

    pairs: list[tuple[Any, Any]]


@dataclass(slots=True, frozen=True)
class _Ext:
    """An ext value. (msgpack.ExtType refuses negative types, and json would take it for a list.)"""

    code: int
    data: bytes


def _other(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"$bin": _b64(value)}
    if isinstance(value, _Pairs):
        return {"$map": [[key, item] for key, item in value.pairs]}
    if isinstance(value, _Ext):
        return {"$ext": [value.code, _b64(value.data)]}
    if isinstance(value, msgpack.Timestamp):
        return {"$ext": [-1, _b64(value.to_bytes())]}
    raise TypeError(f"no JSON form for {type(value).__name__}")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return {"$str": _b64(value.encode("utf-8", "surrogateescape"))}
        return value
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, _Pairs):
        return {"$map": [[_plain(key), _plain(item)] for key, item in value.pairs]}
    if isinstance(value, dict):
        if any(not key.isascii() and _plain(key) is not key for key in value):
            return {"$map": [[_plain(key), _plain(item)] for key, item in value.items()]}
        return {key: _plain(item) for key, item in value.items()}
    return value


def _render_parts(raw: bytes, kind: str, descend: int) -> bytes:
    if kind == "array":
        return b"[" + b",".join([_render(item, descend - 1) for item in packform.items(raw)]) + b"]"
    unpacker = packform.reader(raw)
    members: dict[bytes, bytes] = {}
    for _ in range(unpacker.read_map_header()):
        key = _render(packform.cut(unpacker, raw), 0)
        if not key.startswith(b'"') or key in members:
            raise invalid(None, "no object")
        members[key] = _render(packform.cut(unpacker, raw), descend - 1)
    if len(members) == 1 and json.loads(next(iter(members))) in _SPECIAL:
        raise invalid(None, "no object")
    return b"{" + b",".join(key + b":" + value for key, value in members.items()) + b"}"
