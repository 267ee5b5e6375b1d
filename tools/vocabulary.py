"""What the plain types of heads are (jqmaster.manifest.contract), for pages, schemas and signatures: one line each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Plain(NamedTuple):
    """A type that is no composition. ``python``: its annotation; ``schema``: as JSON Schema has it; ``example``: a
    value that is right where nothing else is said."""

    python: str
    schema: Mapping[str, Any]
    example: Any
    meaning: str


_TEXT: Mapping[str, Any] = MappingProxyType({"type": "string"})
_INTEGER: Mapping[str, Any] = MappingProxyType({"type": "integer"})
_NUMBER: Mapping[str, Any] = MappingProxyType({"type": "number"})
_NAME: Mapping[str, Any] = MappingProxyType({"type": "string", "minLength": 1, "maxLength": 255})
_ANY: Mapping[str, Any] = MappingProxyType({})
_CONTROL = r"\x00-\x1f\x7f"
_URL: Mapping[str, Any] = MappingProxyType({
    "type": "string", "pattern": rf"^https?://[A-Za-z0-9\[][^\s#@/?{_CONTROL}]*([/?][^\s#{_CONTROL}]*)?$",
})  # fmt: skip
_REFERENCE: Mapping[str, Any] = MappingProxyType({
    "oneOf": [{"$ref": "#/components/schemas/JobId"}, {"type": "integer", "minimum": 0, "maximum": 999}],
})  # fmt: skip

PLAIN: Mapping[str, Plain] = MappingProxyType({
    "text": Plain("str", _TEXT, "a", "valid UTF-8; a range is of its bytes"),
    "message": Plain("str", _TEXT, "mailbox full", "text; what is not UTF-8 becomes `?`, what is too long is cut"),
    "name": Plain("str", _NAME, "a", "1 to 255 bytes of UTF-8 without control characters"),
    "queue": Plain("str", _NAME, "mail", "a queue's name; where queues are chosen, `*` stands for any text"),
    "worker": Plain("str", _NAME, "w0664a3b1c05c02", "the id of a registered worker, or the name of one that pulls"),
    "job": Plain("str", _TEXT, "0664a3b1c05c00", "the id of a job"),
    "state": Plain("str", _TEXT, "queued", "a state of a job, or in capitals why there is none"),
    "actor": Plain("str", _TEXT, "ada", "who does it, for the trail; a server says whose key it is"),
    "token": Plain("str", {"type": "string", "minLength": 1, "maxLength": 200}, "r1", "1 to 200 bytes that are new"),
    "cursor": Plain("str", _TEXT, "", "where to go on, from the page before; empty: from the beginning, or at the end"),
    "reference": Plain(
        "str | Reference", _REFERENCE, "0664a3b1c05c00", "an id, or an earlier job of the call by its index",
    ),
    "url": Plain("str", _URL, "https://example.com/", "http or https, without user and `#`"),
    "secret": Plain("str", _TEXT, "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "`whsec_` and 24 to 64 bytes in base64"),
    "zone": Plain("str", _NAME, "Europe/Berlin", "a time zone, whose rule is sent with it"),
    "integer": Plain("int", _INTEGER, 1, "a whole number"),
    "number": Plain("float", _NUMBER, 1, "a number"),
    "seconds": Plain("float", _NUMBER, 1, "a duration in seconds"),
    "ms": Plain("int", _INTEGER, 1000, "a duration in milliseconds"),
    "moment": Plain("float", _NUMBER, 1760000000, "seconds since 1970"),
    "moment_ms": Plain("int", {"type": "integer", "minimum": 0}, 1760000000000, "milliseconds since 1970"),
    "flag": Plain("bool", {"type": "boolean"}, True, "true or false"),
    "any": Plain("Any", _ANY, "a", "any value that the spec can hold; nil is one, too"),
    "value": Plain("bytes", _ANY, None, "one MessagePack value, not looked into: an argument behind the spec"),
    "record": Plain("bytes", _TEXT, "", "bytes of an export"),
})  # fmt: skip

OWN: Mapping[str, str] = MappingProxyType({
    "nothing": "None",
    "states": "list[Any]",
    "enqueued": "list[Enqueued]",
    "picked": "Picked",
    "finished": "Finished",
    "assigned": "list[Any]",
    "result": "Result",
    "yaml": "str",
    "metrics": "str",
})  # fmt: skip
"""Annotations of replies of a shape of their own."""
