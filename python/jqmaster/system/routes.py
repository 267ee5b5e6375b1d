"""Routes: queues whose jobs belong to the bucket of a value of theirs, so that jobs of one value share a partition.

What a limit by such a value, or an order among such jobs, needs to know is in one place then. Any hash would do that
gives equal values one bucket; that some others come along is harmless.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgpack

from jqmaster.engine.calls import Argument
from jqmaster.errors import Invalid

QUEUE = "queue"
"""The route that keeps all jobs of a queue together."""
_ARGUMENT = "argument."
_SEGMENT = re.compile(r"(?:[^.\\]|\\[.\\])+")
_INTEGER = re.compile("-?[0-9]+")
_MOST_BYTES, _MOST_SEGMENTS = 1024, 32


class _Map(tuple[tuple[Any, Any], ...]):
    """A map as it came: of a key that is there twice, the first counts."""


def segments_of(path: str) -> list[str]:
    """The keys that a path into the argument leads through, [] for ``queue``. Raises Invalid for what is no route."""
    if path == QUEUE:
        return []
    rest = path.removeprefix(_ARGUMENT)
    segments = _SEGMENT.findall(rest)
    if path == rest or ".".join(segments) != rest or not 0 < len(segments) <= _MOST_SEGMENTS:
        raise Invalid(f"expected {QUEUE}, or a path into the argument as {_ARGUMENT}customer, got {path!r}", "path")
    if len(path.encode(errors="surrogatepass")) > _MOST_BYTES:
        raise Invalid(f"expected a path of at most {_MOST_BYTES} bytes", "path")
    return [re.sub(r"\\(.)", r"\1", one) for one in segments]


def value_of(path: str, queue: str, argument: Argument) -> bytes:
    """The value whose bucket a job belongs to: a text, or an integer as it is written. What the path does not find,
    and all else that it may find, counts as empty text."""
    if path == QUEUE:
        return queue.encode(errors="surrogatepass")
    found = _unpacked(argument)
    for segment in segments_of(path):
        found = _inside(found, segment)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, str):
        return found.encode(errors="surrogateescape")
    return str(found).encode() if type(found) is int else b""


def _unpacked(argument: Argument) -> Any:
    packed = argument if isinstance(argument, bytes) else str(argument).encode()
    try:
        return msgpack.unpackb(packed, strict_map_key=False, unicode_errors="surrogateescape", object_pairs_hook=_Map)
    except (ValueError, msgpack.UnpackException):  # has no paths
        return None


def _inside(found: Any, segment: str) -> Any:
    number = int(segment) if _INTEGER.fullmatch(segment) else None
    if isinstance(found, _Map):
        keys: tuple[Any, ...] = (segment,) if number is None else (segment, number)
        return next((value for key, value in found if type(key) in (str, int) and key in keys), None)
    if isinstance(found, list) and number is not None and 0 <= number < len(found):
        return found[number]
    return None


def needs_place(spec: Mapping[str, Any]) -> str | None:
    """The field of a constraint that asks for its jobs to be in one partition: a share of the limit would not do."""
    for name in ("by", "cost", "order"):
        if spec.get(name) is not None:
            return name
    rate = spec.get("rate")
    return "rate.smooth" if isinstance(rate, dict) and rate.get("smooth") else None


def check_place(spec: Mapping[str, Any], match: Any, routes: Mapping[str, str]) -> None:
    """Raise Invalid unless all jobs of each key of such a constraint are in one partition, by routes."""
    field = needs_place(spec)
    queues = _named(match)
    paths = {routes.get(queue) for queue in queues}
    if not queues or None in paths:
        raise Invalid(
            "the jobs of a key have to be in one partition of the system: have match name queues with a route "
            "(jqmaster system route)",
            field,
        )
    by = spec.get("by")
    paths_by = by if isinstance(by, list) else [by]
    if paths == {QUEUE} and len(queues) == 1:
        return
    if len(paths) > 1 or paths == {QUEUE}:
        raise Invalid(f"the queues that match names have different routes: {', '.join(sorted(queues))}", field)
    (path,) = paths
    if path not in paths_by:
        raise Invalid(f"expected {path} among them, which is the route of {queues[0]}", "by")


def is_placed(constraint: Mapping[str, Any], routes: Mapping[str, str]) -> bool:
    """Whether a constraint, as its document tells it, is in force in all partitions by routes."""
    try:
        if needs_place(constraint) is None:
            return False
        check_place(constraint, constraint["match"], routes)
    except Invalid:
        return False
    return True


def _named(match: Any) -> list[str]:
    """The queues whose jobs alone a matcher can fit; [] where it does not say."""
    wanted = match.get("queue") if isinstance(match, dict) else None
    if isinstance(wanted, dict):
        wanted = wanted.get("eq", wanted.get("in"))
    names = wanted if isinstance(wanted, list) else [wanted]
    known = [one for one in names if isinstance(one, str) and "*" not in one]
    return known if len(known) == len(names) else []
