"""Which partition a job is enqueued in. docs/partitions.md has the rules."""

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
from jqmaster.system.routes import value_of

_PLACE = re.compile(r"(\w+)\[(\d+)\]")


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
    given = unpacked(arguments[0]) if len(arguments) % 2 else {}
    pairs = [(arguments[at], arguments[at + 1]) for at in range(len(arguments) % 2, len(arguments), 2)]
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
    return _options(arguments[: len(arguments) % 2], given, system), list(parts.values()) or [Part(chosen)]


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


def _read(packed: Argument) -> Any:
    try:
        return msgpack.unpackb(packed if isinstance(packed, bytes) else str(packed).encode())
    except (ValueError, msgpack.UnpackException):
        return None


def _some(system: System, token: Any) -> int:
    if isinstance(token, str):
        return system.home(token)
    return secrets.choice(system.takers)
