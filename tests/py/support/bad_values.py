"""Wrong values for each kind of field, and a data set's well-known ids."""

import struct
from typing import NamedTuple

import msgpack

from driving.driver import START_MS

NAN, INFINITE = float("nan"), float("inf")
BLOB = b"\xc0"


def id_of(number):
    """The engine's ids are the moment times 1024, counted up."""
    return format(START_MS * 1024 + number, "014x")


RUNNING, DONE, WAITING, UNKNOWN = id_of(0), id_of(1), id_of(2), "00000000000001"
HOLD = "1-0123456789ab"  # a token as one should be
SCHEDULED = id_of(4)
HEAVY, HEAVY_CANCELLED = id_of(10), id_of(11)  # a thousand of these take more matching than a call may do
WORKER, NO_WORKER = "w" + id_of(3), "w00000000000001"


class Case(NamedTuple):
    title: str
    script: str
    args: list
    code: str
    path: str | None
    says: str = ""  # a part of the message
    value: object = None  # that the message is to show


class Raw(bytes):
    """Bytes that go into a MessagePack value as they are."""


def encode(value):
    if isinstance(value, str):
        return msgpack.packb(value)
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, dict):
        parts = [encode(part) for item in value.items() for part in item]
        return b"\xdf" + struct.pack(">I", len(value)) + b"".join(parts)
    if isinstance(value, list):
        parts = {id(part): encode(part) for part in {id(part): part for part in value}.values()}  # most repeat one
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join([parts[id(part)] for part in value])
    return msgpack.packb(value)


def show(value):
    if isinstance(value, str) and len(value) > 1000:  # of a megabyte it would take long
        return f"{value[:20]!r}...{len(value)}"
    text = repr(value)
    return text if len(text) < 30 else f"{text[:20]}...{len(text)}"


def shown(value):
    """A scalar as the engine shows it; None for others, of which it shows the part that is wrong."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        number = float(value if value < 2**63 or not isinstance(value, int) else value - 2**64)
        short = f"{number:.15g}"
        return None if number != number else short if float(short) == number else f"{number:.17g}"
    if isinstance(value, str):
        data = value.encode()
        printable = "".join(chr(byte) if 32 <= byte < 127 else "?" for byte in data[:40])
        return f'"{printable}"' + (f" ({len(data)} bytes)" if len(data) > 40 else "")
    return None


# ---- wrong values, by what a field expects ----

NOT_TEXT = [5, -1, 1.5, True, [], ["a"], {"a": 1}]
NAMES = [*NOT_TEXT, "", "x" * 256, "x" * 2**20, "a\0b", "a\nb", "\x1f", "a\x7f", Raw(b"\xa2\xc3\x28")]
NAMES += [
    Raw(b"\xa3\xed\xa0\x80"),
    Raw(b"\xa2\xc0\x80"),
    Raw(b"\xa1\xff"),
    Raw(b"\xa4\xf5\x80\x80\x80"),
    Raw(b"\xa1\xe3"),
]
TOKENS = [*NOT_TEXT, "", "x" * 201, "x" * 2**20]
BOOLEANS = [0, 1, 1.5, "true", "", [], {"a": True}]
IDS = [
    *NOT_TEXT, "", "x", RUNNING[:13], RUNNING + "0", RUNNING.upper(), " " + RUNNING[1:], RUNNING[:13] + "\n",
]  # fmt: skip
URLS = [
    *NOT_TEXT, "", "x", "worker:8080", "ftp://host/", "http://", "http:///path", "https:// host", "http://a b/",
    "http://host/?to=", "http://host/#", "http://user@host/", "http://user:secret@host:80",
]  # fmt: skip
URLS += ["javascript:alert(1)", "http://host/\n", "http://" + "x" * 2**20, "//host/", " http://host/"]
WEBHOOK_URLS = [url for url in URLS if not isinstance(url, str) or "?" not in url]  # a query may tell who sends
TIMES = [
    *NOT_TEXT, "", "now", "2026-01-31", "2026-01-31T12:00:00", "2026-02-29T12:00:00Z", "2026-13-01T12:00:00Z",
]  # fmt: skip
TIMES += ["2026-01-31T25:00:00Z", "2026-01-31T12:60:00Z", "2026-01-31T12:00:00+25:00", "31.01.2026 12:00"]
TIMES += ["1900-02-29T12:00:00Z", "2026-01-00T12:00:00Z", "2026-01-31T12:00:61Z", "2026-01-31T12:00:00+01:60"]
TIMES += ["2026-01-31T12:00:00." + "0" * 40 + "Z"]
TIMES += ["2026-01-31T12:00:00Zx", "2026-01-31T12:00:00.Z", "2026-1-31T12:00:00Z", "x" * 2**20]
QUEUES = [5, True, 1.5, "", [], {"a": 1}, ["a"] * 101, "x" * 256, "x" * 2**20, "\0", Raw(b"\xa1\xff")]


def integers(least, most):
    return [least - 1, most + 1, least + 0.5, "1", "", True, False, [], [1], {"a": 1}, NAN, INFINITE,
            -INFINITE, -0.0, 2**63, -(2**63), 2**64 - 1, 1e300]  # fmt: skip


def numbers(least, most):
    below = least / 2 if least else -0.001
    return [
        below, -1, most * 1.001, most * 1e6, "1", "", True, False, [], [1], {"a": 1}, NAN, INFINITE, -INFINITE, -0.0,
    ]  # fmt: skip


def words(*known):
    return [5, True, [], {"a": 1}, "", "nonsense", known[0].upper(), known[0] + " "]
