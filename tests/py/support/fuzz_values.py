"""Values for the fuzzer: right ones, borders, odd ones, and bytes that are broken."""

from __future__ import annotations

import copy
import random
from typing import Any

import msgpack

from jqmaster.manifest.contract import Argument
from jqmaster.manifest.fields import FIELDS
from refusal_values import HOLD, RUNNING, UNKNOWN, Raw, encode
from refusals import JOB

NAMES = ("a", "b", "mail", "full", "limited", "x.y", "é", "a b", "[", "%s", "{jq}", "..", "0")
TEXTS = ("", "*", "a*", "\0", "a\nb", "\x7f", "x" * 255, "x" * 256, "x" * 70_000, "\u202e", "\U0001f600", "1", "-1",
         "nil", "argument.a", "a.b.c", "__proto__", "'; DROP", "..%2f", "%00", "\\", '"', "]]", "%d%n")  # fmt: skip
NUMBERS = (0, -1, 1, 2, 255, 256, 1000, 1001, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63,
           2**64 - 1, -(2**63), 0.5, -0.0, 1e-9, 1e10, 1.1e10, 1e15, 1e300, float("inf"), float("nan"))  # fmt: skip
RAW = (b"\xc1", b"\xc4\x01a", b"\xc7\x01\x05a", b"\xd6\xff\0\0\0\1", b"\xa2\xc3\x28", b"\xdf\xff\xff\xff\xff",
       b"\xdd\x00\x0f\xff\xff", b"\xdb\xff\xff\xff\xffa", b"\x91" * 300 + b"\xc0", b"\x81\x01\x02", b"\xca\x7f\xc0\0\0",
       b"\xd9\x01a", b"\xc0", b"\xc2")  # fmt: skip
OTHER = (None, True, False, [], {}, [[]], {"": {}}, {"a": {"b": [1]}}, [None], ["a"] * 1001, {1: 2})
MAPS = ({}, {"name": "a"}, {"queue": "b"}, {"limit": 1, "period": 1}, {"done_max": 5}, {"path": "argument.a"})


class Values:
    """What is known of the namespace grows with the replies: ids with their tokens, workers."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.jobs: dict[str, str] = {}  # token by id
        self.workers = ["w"]

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def knows_job(self, job_id: str, token: str = HOLD) -> None:
        self.jobs.pop(job_id, None)
        self.jobs[job_id] = token

    def job(self) -> tuple[str, str]:
        if not self.jobs or self.chance(0.03):
            return UNKNOWN, HOLD
        return self.random.choice(list(self.jobs.items())[-50:])

    def name(self) -> str:
        return self.random.choice(NAMES[:5] if self.chance(0.8) else NAMES)

    def number(self, argument: Argument) -> float:
        """Within the bounds, often at them, and now and then beyond."""
        least, most, chance = argument.least or 0, 1e6 if argument.most is None else argument.most, self.random.random()
        if chance < 0.1:
            return self.random.choice(NUMBERS)
        if chance < 0.25:
            number = self.random.choice((least, most, least - 1, most + 1))
        else:
            number = min(most, max(least, least + self.random.expovariate(1 / 20)))
        return int(number) if argument.type in ("integer", "moment_ms", "ms") else number

    def of_job(self) -> dict[str, Any]:
        """A job's spec: mostly right."""
        spec: dict[str, Any] = {"name": self.name()}
        for field in self.random.sample(FIELDS[1:], self.random.choice((0, 0, 1, 2, 3, 6))):
            spec[field.name] = self.of_argument(JOB[field.name])
            if field.needs and self.chance(0.9):
                spec.setdefault(field.needs, self.name())
        return spec

    def of_argument(self, argument: Argument) -> Any:
        """A value of an argument's type, mostly."""
        of, kind = argument.of, argument.type
        if of.words:
            return self.random.choice(of.words)
        if kind in ("integer", "number", "seconds", "moment", "moment_ms", "ms"):
            return self.number(argument)
        if kind == "flag":
            return self.chance(0.5)
        if kind == "worker":
            return self.random.choice(self.workers)
        if kind in ("job", "Reference"):
            return self.job()[0] if kind == "job" or self.chance(0.7) else 0
        if argument.name == "jobs":
            return [list(self.job()) for _ in range(self.random.randint(0, 3))]
        if of.kind == "list" and of.of:
            inner = Argument(name="", type=of.of.name or "|".join(of.of.words))
            return [self.of_argument(inner) for _ in range(self.random.randint(1, 3))]
        if kind in ("value", "any", "Matcher"):
            return self.random.choice((None, {"name": self.name()}, {"a": 1}, 1, [1, {"b": "c"}], self.odd()))
        return copy.deepcopy(self.random.choice(MAPS)) if of.kind in ("map", "document") else self.name()

    def odd(self) -> Any:
        """Any value that nobody expects."""
        values = self.random.choice((TEXTS, NUMBERS, tuple(map(Raw, RAW)), OTHER))
        return copy.deepcopy(self.random.choice(values))

    def refer(self, value: Any) -> Any:
        """The same with ids, tokens and workers that are there."""
        if isinstance(value, dict):
            found = {name: self.refer(part) for name, part in value.items()}
            if "token" in found and "id" in found and self.chance(0.9):
                found["id"], found["token"] = self.job()
            return found
        if isinstance(value, list):
            if len(value) >= 2 and value[1] == HOLD:
                return [*self.job(), *value[2:]]
            return [self.refer(part) for part in value[:20]]
        if isinstance(value, str):
            if len(value) == 14 and value[:6] == RUNNING[:6]:
                return self.job()[0]
            if len(value) == 15 and value[:6] == "w" + RUNNING[:5]:
                return self.random.choice(self.workers)
        return value

    def changed(self, value: Any) -> Any:
        """The same with one thing different, somewhere in it."""
        chance = self.random.random()
        if not isinstance(value, dict | list) or not value or chance < 0.1:
            return self.odd()
        value = copy.copy(value)
        key = self.random.choice([*value] if isinstance(value, dict) else range(len(value)))
        if chance < 0.5:
            value[key] = self.changed(value[key])
        elif chance < 0.6:
            del value[key]
        elif isinstance(value, list):
            return self.random.choice((value * 2, [*value, self.odd()], [value]))
        else:
            value[self.random.choice((*TEXTS[:8], str(key) + "x", str(key).upper()))] = value[key]
        return value

    def broken(self, data: bytes) -> bytes:
        """Bytes as a bad line would bring them."""
        data, at = bytearray(data), self.random.randrange(len(data) + 1)
        chance = self.random.random()
        if chance < 0.4 and data:
            data[at % len(data)] = self.random.randrange(256)
        elif chance < 0.6:
            del data[at:]
        else:
            data[at:at] = self.random.choice((*RAW, bytes(data[:50])))
        return bytes(data)


def packed(value: Any) -> bytes:
    """MessagePack of nearly anything, `Raw` as it stands."""
    try:
        return encode(value)
    except (OverflowError, ValueError, UnicodeError, TypeError):
        return b"\xc0"


def opened(data: bytes) -> Any:
    """What was packed; as it is, where it is no MessagePack."""
    try:
        return msgpack.unpackb(data, strict_map_key=False)
    except (ValueError, msgpack.UnpackException):
        return Raw(data)
