"""Which partition a job is enqueued in. docs/partitions.md has the rules.

Queues may have routes: their jobs belong to the bucket of a value of theirs, so that jobs of one value share a
partition. What a limit by such a value, or an order among such jobs, needs to know is in one place then. Any hash would
do that gives equal values one bucket; that some others come along is harmless.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgpack

from jqmaster.engine.calls import Argument, pack
from jqmaster.errors import Invalid, JQError, NotFound, Unavailable
from jqmaster.system.record import System, bucket_of, partition_of

_PLACE = re.compile(r"(\w+)\[(\d+)\]")
QUEUE = "queue"
"""The route that keeps all jobs of a queue together."""
_ARGUMENT = "argument."
_SEGMENT = re.compile(r"(?:[^.\\]|\\[.\\])+")
_INTEGER = re.compile("-?[0-9]+")
_MOST_BYTES, _MOST_SEGMENTS = 1024, 32


@contextmanager
def part_of(name: str, indexes: Sequence[int]) -> Iterator[None]:
    """Problems with a part of a call have the path in the whole call: what the part's list ``name`` begins with is at
    ``indexes`` there."""
    try:
        yield
    except JQError as problem:
        found = _PLACE.match(problem.path or "")
        if problem.path and found and found[1] == name:
            problem.path = f"{name}[{indexes[int(found[2])]}]{problem.path[found.end() :]}"
        raise


class Moving(Unavailable):
    """Jobs of a bucket may go nowhere now. There is another record in a moment."""


@dataclass
class Part:
    """What of a call goes to one partition. ``indexes``: of its jobs in the call."""

    partition: int
    indexes: list[int] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)


def split(arguments: Sequence[Argument], system: System) -> tuple[list[Argument], list[Part]]:
    """A call of `enqueue`: its options, as they go to each partition, and the parts.

    A job goes where its queue's route leads, else where the bucket of its unique key is, else where the first job is
    that it depends on; jobs of the call that depend on each other stay together, where the first of these rules has one
    of them. All others go to one partition: by chance, or where the bucket of the request token is, so that repeating
    the call finds it also when partitions have come since. So without such jobs a call is all or nothing. Raises
    Invalid where routes and unique keys of jobs that stay together are at odds, NotFound for a partition that there is
    not.
    """
    sent, pairs = taken_apart(arguments)
    given = unpacked(sent[0]) if sent else {}
    specs = [unpacked(spec) for spec, _ in pairs]
    chosen = _some(system, given.get("request"))
    groups = _groups(specs)
    homes: dict[int, tuple[int, str]] = {}
    for index, (spec, (_, argument)) in enumerate(zip(specs, pairs, strict=True)):
        if (belongs := belonging(spec, argument, system)) is not None:
            place, path = belongs[0], f"jobs[{index}].{belongs[1]}"
            home, first = homes.setdefault(groups[index], (place, path))
            if home != place:
                raise Invalid(f"it belongs to partition {place}, and {first}, which goes with it, to {home}", path)
    for index, spec in enumerate(specs):
        for place, path in _parents(spec, index, system):
            homes.setdefault(groups[index], (place, path))
    parts: dict[int, Part] = {}
    for index, (spec, pair) in enumerate(zip(specs, pairs, strict=True)):
        place, _ = homes.get(groups[index], (chosen, ""))
        part = parts.setdefault(place, Part(place))
        own = {at: position for position, at in enumerate(part.indexes)}
        part.indexes.append(index)
        part.arguments += (_renumbered(pair[0], spec, own), pair[1])
    return _options(sent, given, system), list(parts.values()) or [Part(chosen)]


def taken_apart(arguments: Sequence[Argument]) -> tuple[Sequence[Argument], list[tuple[Argument, Argument]]]:
    """Of a call of `enqueue`: its options, where it has some, and spec and argument of each job."""
    first = len(arguments) % 2
    return arguments[:first], list(zip(arguments[first::2], arguments[first + 1 :: 2], strict=True))


def belonging(spec: dict[str, Any], argument: Argument, system: System) -> tuple[int, str] | None:
    """The number of the partition that alone may have a job, and the field that says so; None for any of them. Raises
    Moving."""
    by = value_for(spec, argument, system)
    if by is None:
        return None
    value, path = by
    if path == "queue" and bucket_of(value) in system.moving:
        raise Moving(f"bucket {bucket_of(value)} is about to move: repeat `jqmaster system rebalance`")
    return system.home(value), path


def value_for(spec: Mapping[str, Any], argument: Argument, system: System) -> tuple[bytes, str] | None:
    """The value by whose bucket a job belongs to a partition, and the field that says so; None for any partition."""
    queue = queue_of(spec)
    if queue in system.routes:
        return value_of(system.routes[queue], queue, argument), "queue"
    unique = spec.get("unique")
    return (unique.encode(errors="surrogatepass"), "unique") if isinstance(unique, str) else None


def queue_of(spec: Mapping[str, Any]) -> str:
    """That a job waits in. Of a spec that says it wrongly, "", and the script says what is wrong."""
    queue = spec.get("queue", spec.get("name"))
    return queue if isinstance(queue, str) else ""


def _options(sent: Sequence[Argument], given: dict[str, Any], system: System) -> list[Argument]:
    """With the record that the call is routed by. What is no map is sent as it is: the script says what is wrong."""
    if sent and not given and sent[0] != pack({}):
        return [*sent]
    return [pack({**given, "generation": system.generation})]


def _linked(spec: dict[str, Any]) -> list[Any]:
    depends = spec.get("depends")
    return depends if isinstance(depends, list) else []


def _groups(specs: Sequence[dict[str, Any]]) -> list[int]:
    """For each job the first of those of the call that it is linked to."""
    groups = list(range(len(specs)))
    for index, spec in enumerate(specs):
        for one in _linked(spec):
            if type(one) is int and 0 <= one < index:
                ours, theirs = sorted((groups[index], groups[one]))
                groups = [ours if group == theirs else group for group in groups]
    return groups


def _parents(spec: dict[str, Any], index: int, system: System) -> Iterator[tuple[int, str]]:
    """The partitions of what a job depends on, if they take any, with the argument that says so."""
    for position, one in enumerate(_linked(spec)):
        if isinstance(one, str):
            place, path = partition_of(one), f"jobs[{index}].depends[{position}]"
            if place >= len(system.partitions):
                raise NotFound(f"no such job: {one}, the system has no partition {place}", path)
            if place in system.takers:
                yield place, path


def _renumbered(packed: Argument, spec: dict[str, Any], own: dict[int, int]) -> Argument:
    """Indexes in `depends` are those within the part."""
    depends = _linked(spec)
    if not any(type(one) is int and own.get(one, one) != one for one in depends):
        return packed
    return pack({**spec, "depends": [own.get(one, one) if type(one) is int else one for one in depends]})


def unpacked(packed: Argument) -> dict[str, Any]:
    """A spec; what is none has no fields, and the script says what is wrong with it."""
    spec = _read(packed)
    return spec if isinstance(spec, dict) else {}


def is_spec(packed: Argument) -> bool:
    """Whether it is a map; an empty list is one as well, for languages that have one empty table."""
    spec = _read(packed)
    return isinstance(spec, dict) or spec == []


def _read(packed: Argument, **how: Any) -> Any:
    try:
        return msgpack.unpackb(packed if isinstance(packed, bytes) else str(packed).encode(), **how)
    except (ValueError, msgpack.UnpackException):
        return None


def _some(system: System, token: Any) -> int:
    if isinstance(token, str):
        return system.home(token)
    return secrets.choice(system.takers)


# -- routes ----------------------------------------------------------------------------------------------


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
    found = _read(argument, strict_map_key=False, unicode_errors="surrogateescape", object_pairs_hook=_Map)
    for segment in segments_of(path):
        found = _inside(found, segment)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, str):
        return found.encode(errors="surrogateescape")
    return str(found).encode() if type(found) is int else b""


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
