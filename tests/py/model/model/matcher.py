"""Matchers, paths and values, as docs/limits.md words them: no indexes, no compiling.

Values are what msgpack decodes, but: a map is a list of pairs (its keys may be anything), binary data and ext are texts
of their bytes, large integers are rounded to floats, and an argument that is not one whole value is `Broken`.
"""

import hashlib
import re
from functools import lru_cache

import msgpack

MISSING = object()  # what a path that leads nowhere leads to


NOT_WHOLE = (b"\xc1", b"\xd9\xffcut off")  # arguments that are not one whole value


class Pairs(list):
    """A map."""


class Broken(bytes):
    """An argument that is not one whole MessagePack value."""


def decode(blob):
    unpacker = msgpack.Unpacker(
        strict_map_key=False, object_pairs_hook=Pairs, unicode_errors="surrogateescape", max_buffer_size=0
    )
    unpacker.feed(blob)
    try:
        value = unpacker.unpack()
    except (ValueError, msgpack.UnpackException):
        return Broken(blob)
    return readable(value) if unpacker.tell() == len(blob) else Broken(blob)


def readable(value):
    if isinstance(value, Pairs):
        return Pairs((readable(key), readable(inner)) for key, inner in value)
    if isinstance(value, list):
        return [readable(inner) for inner in value]
    if isinstance(value, msgpack.ExtType):
        value = bytes([value.code & 255]) + value.data
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return float(value) if isinstance(value, int) and abs(value) >= 2**53 else value


# Many paths are looked up in one argument, one path in many. Nobody changes what comes of it.
_looked_into = lru_cache(1000)(decode)


def pack(value):
    """A matcher or an argument written in plain Python; a tuple `(code, bytes)` stands for an ext."""
    return msgpack.packb(value, strict_types=True, default=lambda ext: msgpack.ExtType(*ext))


def kind(value):
    """What may be compared with each other; None for maps, arrays and what cannot be read."""
    if isinstance(value, Broken | list):
        return None
    return {type(None): "nil", bool: "boolean", int: "number", float: "number", str: "text"}.get(type(value))


def equal(a, b):
    return kind(a) == kind(b) is not None and a == b


def ordered(a, b):
    """Both as something that Python compares, or None."""
    if kind(a) == kind(b) == "number":
        return a, b
    if kind(a) == kind(b) == "text":
        return tuple(text.encode("utf-8", "surrogateescape") for text in (a, b))
    return None


def fits(pattern, text):
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


# ---- paths ----


@lru_cache(1000)
def split(path):
    """`argument.a\\.b.0` -> ["argument", "a.b", "0"]"""
    segments = re.findall(r"(?:\\.|[^.\\])+", path)
    return [re.sub(r"\\(.)", r"\1", segment) for segment in segments]


def step(value, segment):
    """What is nil is missing."""
    inner = None
    if isinstance(value, Pairs):
        inner = {key: inner for key, inner in value if type(key) is str}.get(segment)
    elif isinstance(value, list) and segment.isdigit() and str(int(segment)) == segment:
        inner = value[int(segment)] if int(segment) < len(value) else None
    return MISSING if inner is None else inner


def value_at(job, path):
    first = split(path)[0]
    if first != "argument":
        return getattr(job, first)
    return value_in(job.argument, path)


# One path is looked up in an argument again and again.
@lru_cache(10_000)
def value_in(argument, path):
    value = _looked_into(argument)
    for segment in split(path)[1:]:
        value = MISSING if value is MISSING else step(value, segment)
    return value


# ---- conditions ----


def is_one(value, operand, patterns):
    """Equals it; or, on a name or queue, fits it."""
    if patterns and kind(operand) == kind(value) == "text" and "*" in operand:
        return fits(operand, value)
    return value is not MISSING and equal(value, operand)


OPERATORS = {
    "eq": lambda value, operand: equal(value, operand),
    "in": lambda value, operand: any(equal(value, one) for one in operand),
    "lt": lambda value, operand: (both := ordered(value, operand)) is not None and both[0] < both[1],
    "le": lambda value, operand: (both := ordered(value, operand)) is not None and both[0] <= both[1],
    "gt": lambda value, operand: (both := ordered(value, operand)) is not None and both[0] > both[1],
    "ge": lambda value, operand: (both := ordered(value, operand)) is not None and both[0] >= both[1],
    "glob": lambda value, operand: kind(value) == "text" and fits(operand, value),
}


def operator_holds(name, operand, values):
    """`values`: none where a path leads nowhere, one, or the tags."""
    if name == "ne":
        return not any(equal(value, operand) for value in values)
    if name == "exists":
        return bool(values) == operand
    return any(OPERATORS[name](value, operand) for value in values)


def condition_holds(condition, values, patterns):
    if isinstance(condition, Pairs):
        # Of the tags, one and the same must satisfy all that asks for one.
        denials = [pair for pair in condition if pair[0] == "ne" or pair[0] == "exists"]
        others = [pair for pair in condition if pair not in denials]
        return all(operator_holds(*pair, values) for pair in denials) and (
            not others or any(all(operator_holds(*pair, [value]) for pair in others) for value in values)
        )
    operands = condition if isinstance(condition, list) else [condition]
    return any(is_one(value, operand, patterns) for value in values for operand in operands)


def matches_job(matcher, job):
    """`matcher`: as `decode` gives it."""
    return all(entry_holds(about, condition, job) for about, condition in matcher)


def entry_holds(about, condition, job):
    if about == "any":
        return any(matches_job(matcher, job) for matcher in condition)
    if about == "not":
        return not matches_job(condition, job)
    value = job.tags or [] if about == "tags" else value_at(job, about)
    values = value if about == "tags" else [] if value is MISSING else [value]
    return condition_holds(condition, values, about in ("name", "queue"))


# ---- keys ----


def key_part(value):
    """What is the same for equal values alone. Of maps and lists a digest, whatever the order of keys."""
    if isinstance(value, list):
        entries = value if isinstance(value, Pairs) else enumerate(value, 1)
        parts = [sized(str(key)) + sized(key_part(inner)) for key, inner in entries if inner is not None]
        return "hm" + sha1("".join(sorted(parts)))
    if value is MISSING or value is None or isinstance(value, Broken):
        return "n"
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, bytes):  # as documents show what is no text
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return "s" + value
    return "dnan" if value != value else f"d{value + 0.0:.17g}"


def sized(text):
    return f"{len(text.encode('utf-8', 'surrogateescape'))}:{text}"


def sha1(text):
    return hashlib.sha1(text.encode("utf-8", "surrogateescape")).hexdigest()


def shown_part(value):
    """How a key's value is shown: long ones, maps and lists as their SHA-1."""
    part = key_part(value)
    if part.startswith("h"):
        return "ssha1:" + part[2:]
    return "ssha1:" + sha1(part[1:]) if len(part.encode("utf-8", "surrogateescape")) > 65 else part


def as_text(value):
    """As a weight is looked up: a text, the text of a number, or None."""
    return key_part(value)[1:] if kind(value) in ("text", "number") else None
