"""JSON as another spelling of MessagePack, so that JSON clients can send and see every value there is.

What JSON has is itself: nil is `null`, integers and floats are numbers (`1` and `1.0` stay apart; integers use all 64
bits), text is a string, arrays and maps with text keys are arrays and objects. Binary data is `{"$bin": "<base64>"}`,
and all else `{"$msgpack": "<base64 of its bytes>"}`: ext, timestamps, NaN and infinities, text that is not UTF-8, a map
with other keys, with a key twice, or that looks like one of these, and what is nested too deeply. Both directions know
the same, so values (not their encodings) survive the way there and back.
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
_SPECIAL = ("$bin", "$msgpack")
# How many levels of a response are taken apart to leave its good parts readable when one part is not:
# body → jobs → job → argument.
_DESCEND = 3


@dataclass(slots=True)
class _Raw:
    """A part that is packed already."""

    data: bytes


def _pack(value: Any, errors: str = "surrogateescape") -> bytes:
    """MessagePack of a value with such parts. `errors`: what to do with text that is not UTF-8."""
    if isinstance(value, _Raw):
        return value.data
    if isinstance(value, dict):
        pairs = b"".join(_pack(key, errors) + _pack(item, errors) for key, item in value.items())
        return packform.map_header(len(value)) + pairs
    if isinstance(value, list):
        return packform.raw_array([_pack(item, errors) for item in value])
    packed: bytes = msgpack.packb(value, unicode_errors=errors)
    return packed


# JSON → MessagePack


def to_msgpack(body: bytes) -> bytes:
    """The MessagePack form of a JSON body. Raises 400 saying what is wrong."""
    try:
        text = body.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_value_of, parse_float=_number, parse_constant=_constant)
        try:
            packed = packform.pack(value)
        except TypeError:
            return _pack(value, "strict")
    except UnicodeDecodeError:
        raise invalid(None, "the body is not valid UTF-8") from None
    except UnicodeEncodeError:
        raise invalid(None, "the JSON body holds half of a surrogate pair, which is no text") from None
    except json.JSONDecodeError as error:
        raise invalid(None, f"the body is not JSON: {error}") from None
    except (OverflowError, ValueError, RecursionError) as error:
        if isinstance(error, RecursionError) or "recursion" in str(error):
            _too_deep()
        raise invalid(None, "the JSON body holds an integer of more than 64 bits") from None
    if not packform.within_levels(packed, MAX_JSON_LEVELS):
        _too_deep()
    return packed


def _too_deep() -> NoReturn:
    raise invalid(None, f"the JSON body is nested too deeply; at most {MAX_JSON_LEVELS} levels") from None


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise invalid(None, f"the number {printable(text, 40)} is out of a float's range")
    return value


def _constant(text: str) -> NoReturn:
    raise invalid(None, f'the JSON body holds {text}, which is not JSON; write {{"$msgpack": …}}')


def _value_of(pairs: list[tuple[str, Any]]) -> Any:
    if len(pairs) == 1 and pairs[0][0] in _SPECIAL:
        return _special(*pairs[0])
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise invalid(None, f"the JSON body has the key {printable(twice)!r} twice in one object")
    return result


def _special(key: str, text: Any) -> Any:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise invalid(None, f"{key}: expected base64") from None
    if key == "$bin":
        return data
    check(data, key)
    return _Raw(data)


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
    options: dict[str, Any] = {"strict_map_key": False, "unicode_errors": "surrogateescape"}
    value = msgpack.unpackb(raw, object_pairs_hook=_object, ext_hook=_ext, **options)
    try:
        return _dumps(value)
    except ValueError:  # NaN, an infinity, or text that is not UTF-8: rare, so looked for only now
        return _dumps(_spelled(value))


def _dumps(value: Any) -> bytes:
    text = json.dumps(value, default=_other, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8")


def _object(pairs: list[tuple[Any, Any]]) -> Any:
    """What no JSON object can show stays packed."""
    result = {key: value for key, value in pairs if type(key) is str}
    if len(result) != len(pairs) or (len(pairs) == 1 and pairs[0][0] in _SPECIAL):
        return _Raw(packform.map_header(len(pairs)) + b"".join(_pack(key) + _pack(value) for key, value in pairs))
    return result


def _ext(code: int, data: bytes) -> _Raw:
    packer = msgpack.Packer(autoreset=False)
    packer.pack_ext_type(code, data)  # msgpack.ExtType refuses negative types
    return _Raw(packer.bytes())


def _other(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"$bin": base64.b64encode(value).decode("ascii")}
    return {"$msgpack": base64.b64encode(_pack(value)).decode("ascii")}


def _spelled(value: Any) -> Any:
    """A value, its parts that JSON has no word for packed."""
    if isinstance(value, list):
        return [_spelled(item) for item in value]
    if isinstance(value, dict):
        is_text = all(key.isascii() or _spelled(key) is key for key in value)
        return {key: _spelled(item) for key, item in value.items()} if is_text else _Raw(_pack(value))
    is_odd = isinstance(value, float) and not math.isfinite(value)
    if isinstance(value, str):
        is_odd = any("\ud800" <= character <= "\udfff" for character in value)
    return _Raw(_pack(value)) if is_odd else value


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
