"""Values that the engine refuses, by the type of the head that names them; and a data set's well-known ids."""

from __future__ import annotations

import struct
from typing import Any

import msgpack
from vocabulary import PLAIN

from driving.driver import START_MS
from jqmaster.manifest.contract import Argument

NAN, INFINITE = float("nan"), float("inf")
BLOB = b"\xc0"


def id_of(number: int) -> str:
    """The engine's ids are the moment times 1024, counted up."""
    return format(START_MS * 1024 + number, "014x")


RUNNING, DONE, WAITING, UNKNOWN = id_of(0), id_of(1), id_of(2), "00000000000001"
NEVER = "f" * 14  # an id that was never given
HOLD = "1-0123456789ab"  # a token as one should be
SCHEDULED = id_of(4)
HEAVY, HEAVY_CANCELLED = id_of(10), id_of(11)  # a thousand of these take more matching than a call may do
WORKER, NO_WORKER = "w" + id_of(3), "w00000000000001"
KEY, DIGEST, SECRET = "0123456789ab", "ab" * 32, "whsec_" + "A" * 32


class Raw(bytes):
    """Bytes that go into a MessagePack value as they are."""


def encode(value: Any) -> bytes:
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, dict):
        parts = [encode(part) for item in value.items() for part in item]
        return b"\xdf" + struct.pack(">I", len(value)) + b"".join(parts)
    if isinstance(value, list):
        once = {id(part): encode(part) for part in {id(part): part for part in value}.values()}  # most repeat one
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join([once[id(part)] for part in value])
    return bytes(msgpack.packb(value))


def show(value: Any) -> str:
    if isinstance(value, str) and len(value) > 1000:  # of a megabyte it would take long
        return f"{value[:20]!r}...{len(value)}"
    text = repr(value)
    return text if len(text) < 30 else f"{text[:20]}...{len(text)}"


def shown(value: Any) -> str | None:
    """A scalar as the engine shows it; None for others, of which it shows the part that is wrong."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        number = float(value)
        if abs(number) >= 2**53:
            return f"about {number:.6g}"
        short = f"{number:.15g}"
        return None if number != number else short if float(short) == number else f"{number:.17g}"
    if isinstance(value, str):
        data = value.encode()
        printable = "".join(chr(byte) if 32 <= byte < 127 else "?" for byte in data[:40])
        return f'"{printable}"' + (f" ({len(data)} bytes)" if len(data) > 40 else "")
    return None


# ---- by type ----

NOT_TEXT = [5, -1, 1.5, True, [], ["a"], {"a": 1}]
NOT_UTF8 = [b"\xa2\xc3\x28", b"\xa3\xed\xa0\x80", b"\xa2\xc0\x80", b"\xa1\xff", b"\xa4\xf5\x80\x80\x80", b"\xa1\xe3"]
NAMES = [*NOT_TEXT, "", "x" * 256, "x" * 2**20, "a\0b", "a\nb", "\x1f", "a\x7f", *map(Raw, NOT_UTF8)]
NOT_NUMBERS = ["1", "", True, False, [], [1], {"a": 1}, NAN, INFINITE, -INFINITE]
LISTS, MAPS = [5, True, "x", {"a": 1}], [5, True, "x"]
URLS = [
    *NOT_TEXT, "", "x", "worker:8080", "ftp://host/", "http://", "http:///path", "https:// host", "http://a b/",
    "http://host/#", "http://user@host/", "http://user:secret@host:80", "javascript:alert(1)", "http://host/\n",
    "http://" + "x" * 2**20, "//host/", " http://host/",
]  # fmt: skip
LEASES = [1, True, {}, [HOLD], "", "1", "-", "0-", "01-", "1-x", "1-A", "1 -a", "-1-a", "1-a-b", "1.5-a", "1-a\0",
          "1-" + "0" * 22]  # fmt: skip
PATHS = [5, True, 1.5, "", "x", "tags", "id", "Argument.x", "argument.", "argument..a", "argument.a\\b",
         "argument." + "x" * 2**20]  # fmt: skip
TEXTS = [
    5, True, "text", ["a"], {"a": 1}, {"a": {"b": "c"}}, {"": "a"}, {1: "a"}, {"x" * 256: "a"}, {"a": "b\n"},
    {"a": "x" * 1025}, {"a": "x" * 600, "b": "x" * 600}, {f"k{i}": "v" for i in range(17)}, {"a": Raw(b"\xa1\xff")},
]  # fmt: skip
CRONS = [
    *NOT_TEXT, "", " ", "* * * *", "* * * * * * *", "60 * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *",
    "* * * 13 *", "* * * * 8", "1-0 * * * *", "*/0 * * * *", "*/60 * * * *", "1, * * * *", "1-2-3 * * * *",
    "1/2/3 * * * *", "1.5 * * * *", "5* * * * *", "0x1 * * * *", "001 * * * *", "* * L * *", "* * * * 5#2",
    "mon * * * *", "* * * monday *", "@never", "@daily 5", "0 0 30 2 *", "* * * * *\0", "é * * * *", "x" * 2**20,
]  # fmt: skip
RULES = [
    *NOT_TEXT, "", "UTC", "UT0", "UTC25", "UTC0:60", " UTC0", "<>0", "Europe/Berlin", "CET-1CEST", "CET-1CEST,M3.5.0",
    "CET-1CEST,M3.5.0,M10.5.0/168", "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,J0,J5",
    "CET-1CEST,366,5", "X" * 101 + "0", "UTC0\0",
]  # fmt: skip
BY_TYPE = {
    "name": NAMES, "queue": [*NAMES, "a*", "*"], "worker": NAMES, "zone": NAMES, "actor": [*NAMES, "x" * 101],
    "token": [*NOT_TEXT, "", "x" * 201, "x" * 2**20], "flag": [0, 1, 1.5, "true", "", [], {"a": True}],
    "job": [*NOT_TEXT, "", "x", RUNNING[:13], RUNNING + "0", RUNNING.upper(), " " + RUNNING[1:], RUNNING[:13] + "\n"],
    "Reference": [-1, 0.5, "x", WAITING.upper(), True, []], "Hold": LEASES, "message": NOT_TEXT,
    "cursor": [5, True, [], {"a": 1}], "Progress": ["1", True, [], {"a": 1}, NAN, INFINITE, -INFINITE],
    "Cron": CRONS, "Rule": RULES, "Texts": TEXTS, "Path": PATHS, "value": [], "any": [],
    "url": URLS, "Address": [*URLS, "http://host/?to="],
    "secret": ["", 5, "whsec_", "A" * 38, "whsec_" + "A" * 28, "whsec_" + "A" * 33, "whsec_" + "A" * 88,
               "whsec_" + "_" * 32, "whsec_" + "A" * 31 + "=A=="],
    "States": [5, True, "", "ready", "Queued", [], ["queued", "x"], ["queued"] * 10, {"a": "queued"}, [1]],
    "By": [*PATHS, {"a": 1}, [], ["argument.a"] * 5],
    "Fair": [5, True, "argument.a"],
    "Where": [5, True, "x", [1], ["queue"]], "Wait": [5, True, "push", 1.5, [1]], "Matcher": [5, True, "x", [1], {}],
}  # fmt: skip
MOST = {"seconds": 1e10, "moment": 1e10, "moment_ms": 1e15, "number": 1e10}  # where the head names none


def of_numbers(kind: str, least: float, most: float) -> list[Any]:
    if kind == "integer":
        odd = [-0.0, 2**63, 2**64 - 1, -(2**63), 1e300]
        return [int(least) - 1, int(most) + 1, least + 0.5, *NOT_NUMBERS, *odd]
    below = least / 2 if least else -0.001
    return [below, min(-1, least - 1), most * 1.001, most * 1e6, *NOT_NUMBERS, -0.0]


def wrong(argument: Argument) -> list[tuple[str, Any]]:
    """What is refused for an argument: where the error is, beside its name, and the value."""
    type_, name = argument.of, argument.type
    if name == "list<queue>":  # or one alone
        return [("", value) for value in (5, True, 1.5, "", [], {"a": 1}, ["a"] * 101, "x" * 256, "\0")] + [
            ("[1]", ["a", value]) for value in ("", 5, "\0", "x" * 256)
        ]
    if type_.words:
        word = type_.words[0]
        return [("", value) for value in (5, True, [], {"a": 1}, "", "nonsense", word.upper(), word + " ")]
    if name in ("integer", "number", "seconds", "moment", "moment_ms", "ms"):
        least, most = argument.least or 0, MOST.get(name, 2**53) if argument.most is None else argument.most
        return [("", value) for value in of_numbers(name, least, most)]
    if name == "text":
        short = [""] if argument.least else []
        return [
            ("", value) for value in (*NOT_TEXT, *short, *(["x" * int(argument.most + 1)] if argument.most else []))
        ]
    if type_.kind == "list" and type_.of:
        inner = Argument(name="", type=type_.of.name or "|".join(type_.of.words))
        good = example(inner)
        whole = [
            *LISTS,
            *([[]] if argument.least else []),
            *([[good] * int(argument.most + 1)] if argument.most else []),
        ]
        twice = [good] if type_.distinct else []
        entries = [] if inner.of.kind == "document" and inner.type not in BY_TYPE else [one for _, one in wrong(inner)]
        return [("", value) for value in whole] + [("[1]", [good, value]) for value in twice + entries[:9]]
    found = BY_TYPE.get(name, MAPS if type_.kind in ("map", "document") else [])
    return [("", value) for value in found]


def example(argument: Argument) -> Any:
    """A value of its type; of what is there in the namespace, one that is."""
    type_ = argument.of
    if type_.kind == "list" and type_.of:
        return [example(Argument(name="", type=type_.of.name or "|".join(type_.of.words)))]
    if type_.kind in ("map", "document"):
        return WAITING if type_.name == "Reference" else {}
    there = {"job": WAITING, "worker": WORKER, "name": "known", "queue": "a", "secret": SECRET}
    return type_.words[0] if type_.words else there.get(type_.name) or PLAIN[type_.name].example
