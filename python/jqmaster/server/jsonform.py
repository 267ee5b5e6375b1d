"""JSON as another spelling of MessagePack, so that JSON clients can send and see every value there is.

What JSON has is itself: nil is `null`, integers and floats are numbers (`1` and `1.0` stay apart; integers use all 64
bits), text is a string, arrays and maps with text keys are arrays and objects. Binary data is `{"$bin": "<base64>"}`, a
timestamp of whole microseconds `{"$time": "2026-01-31T12:00:00+00:00"}`, and all else `{"$msgpack": "<base64 of its
bytes>"}`: ext, NaN and infinities, text that is not UTF-8, a map with other keys, with a key twice, or that looks like
one of these, and what is nested too deeply. Both directions know the same, so values (not their encodings) survive the
way there and back.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from datetime import UTC, datetime
from typing import Any, NoReturn

import msgpack
import msgspec
from msgspec import Raw
from msgspec.msgpack import encode

from jqmaster.server.http_error import invalid
from jqmaster.server.reader import check

_MOMENT = "a moment with its zone, of microseconds at most: 2026-01-31T12:00:00Z"
_SPECIAL = {"$bin": "base64", "$time": _MOMENT, "$msgpack": "base64"}
# A value that JSON cannot show whole is taken apart for so many levels, to leave its good parts readable:
# body → jobs → job → argument, and some below.
_APART = 8
_PARTS = msgspec.msgpack.Decoder(list[Raw] | dict[str, Raw])


def to_msgpack(text: bytes, field: str | None = None) -> bytes:
    """The MessagePack form of JSON; of a key that is there twice the last. Raises 400 saying what is wrong."""
    try:
        value = json.loads(text.decode(), object_hook=_special, parse_constant=_refuse)
        packed = encode(value)
    except RecursionError:
        raise invalid(field, "nested too deeply") from None
    except (ValueError, TypeError, OverflowError) as error:
        raise invalid(field, f"not JSON: {error}") from None
    check(packed)
    return packed


def _special(pairs: dict[str, Any]) -> Any:
    key = next(iter(pairs), "")
    if len(pairs) > 1 or key not in _SPECIAL:
        return pairs
    try:
        if key == "$time":
            moment = datetime.fromisoformat(pairs[key])
            if moment.tzinfo is None or re.search(r"[.,]\d{6}0*[1-9]", pairs[key]):  # nanoseconds, which it drops
                raise ValueError
            return moment.astimezone(UTC)
        data = base64.b64decode(pairs[key], validate=True)
    except (ValueError, TypeError, OverflowError):
        raise invalid(None, f"{key}: expected {_SPECIAL[key]}") from None
    if key == "$bin":
        return data
    check(data, key)
    return Raw(data)


def _refuse(word: Any, _data: bytes = b"") -> NoReturn:
    raise ValueError(f"there is no {word} in JSON")


def to_json(raw: bytes, apart: int = _APART) -> bytes:
    """The JSON form of one MessagePack value. Never fails on a value that MessagePack allows."""
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        return _dumps(msgpack.unpackb(raw, object_pairs_hook=_object, ext_hook=_refuse, strict_map_key=False))
    with contextlib.suppress(ValueError, RecursionError):
        parts = _PARTS.decode(raw) if apart else None
        if isinstance(parts, list):
            return b"[%s]" % b",".join([to_json(bytes(part), apart - 1) for part in parts])
        if parts and encode(parts) == raw:  # or it has a key twice
            members = _object(list(parts.items())).items()
            return b"{%s}" % b",".join([b"%s:%s" % (_dumps(k), to_json(bytes(v), apart - 1)) for k, v in members])
    return b'{"$msgpack":"%s"}' % base64.b64encode(raw)


def _dumps(value: Any) -> bytes:
    text = json.dumps(value, default=_lacking, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8")


def _object(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    """A map as JSON's object. Raises ValueError for one that would come back as something else."""
    result = {key: value for key, value in pairs if type(key) is str}
    if len(result) != len(pairs) or (len(pairs) == 1 and pairs[0][0] in _SPECIAL):
        raise ValueError("no object")
    return result


def _lacking(value: Any) -> dict[str, str]:
    if isinstance(value, bytes):
        return {"$bin": base64.b64encode(value).decode("ascii")}
    if isinstance(value, msgpack.Timestamp) and not value.nanoseconds % 1000:
        with contextlib.suppress(OverflowError):
            return {"$time": value.to_datetime().isoformat()}
    raise TypeError("not JSON")
