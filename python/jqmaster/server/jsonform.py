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
import contextlib
import json
import math
from dataclasses import dataclass
from typing import Any, NoReturn

import msgpack

from jqmaster.engine import packform
from jqmaster.server.http_error import invalid
from jqmaster.server.reader import check, printable

MAX_JSON_LEVELS = 200
_SPECIAL = ("$bin", "$msgpack")
# A value that JSON cannot show whole is taken apart for so many levels, to leave its good parts readable:
# body → jobs → job → argument, and some below.
_APART = 8


@dataclass(slots=True)
class _Raw:
    """A part that is packed already."""

    data: bytes


def _pack(value: Any) -> bytes:
    """MessagePack of a value with such parts."""
    if isinstance(value, _Raw):
        return value.data
    if isinstance(value, dict):
        pairs = b"".join(_pack(part) for pair in value.items() for part in pair)
        return packform.map_header(len(value)) + pairs
    if isinstance(value, list):
        return packform.raw_array([_pack(item) for item in value])
    return packform.pack(value)


# JSON → MessagePack


def to_msgpack(body: bytes) -> bytes:
    """The MessagePack form of a JSON body. Raises 400 saying what is wrong."""
    try:
        text = body.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_value_of, parse_float=_number, parse_constant=_constant)
        try:
            packed = packform.pack(value)
        except TypeError:
            return _pack(value)
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


def to_json(raw: bytes, apart: int = _APART) -> bytes:
    """The JSON form of one MessagePack value. Never fails on a value that MessagePack allows."""
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        if packform.within_levels(raw, MAX_JSON_LEVELS):
            return _dumps(msgpack.unpackb(raw, object_pairs_hook=_object, ext_hook=_ext, strict_map_key=False))
    kind = packform.kind_of(raw)
    with contextlib.suppress(ValueError, TypeError):
        if apart and kind == "array":
            return b"[%s]" % b",".join([to_json(item, apart - 1) for item in packform.items(raw)])
        if apart and kind == "map":
            reader = packform.reader(raw, strict_map_key=False)
            count = reader.read_map_header()
            unread = _object([(reader.unpack(), packform.cut(reader, raw)) for _ in range(count)])
            return b"{%s}" % b",".join([b"%s:%s" % (_dumps(k), to_json(v, apart - 1)) for k, v in unread.items()])
    return b'{"$msgpack":"%s"}' % base64.b64encode(raw)


def _dumps(value: Any) -> bytes:
    text = json.dumps(value, default=_binary, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8")


def _object(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    """A map as JSON's object. Raises ValueError for one that would come back as something else."""
    result = {key: value for key, value in pairs if type(key) is str}
    if len(result) != len(pairs) or (len(pairs) == 1 and pairs[0][0] in _SPECIAL):
        raise ValueError("no object")
    return result


def _ext(_code: int, _data: bytes) -> NoReturn:
    raise ValueError("not JSON")


def _binary(value: Any) -> dict[str, str]:
    if isinstance(value, bytes):
        return {"$bin": base64.b64encode(value).decode("ascii")}
    raise TypeError("not JSON")
