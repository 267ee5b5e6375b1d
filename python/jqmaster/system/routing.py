"""Which partition a job is enqueued in. docs/partitions.md has the rules."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgpack

from jqmaster.engine.calls import Argument, pack
from jqmaster.errors import Invalid, JQError, NotFound
from jqmaster.system.record import System, partition_of

_PLACE = re.compile(r"jobs\[(\d+)\]")


@dataclass
class Part:
    """What of a call goes to one partition. ``indexes``: of its jobs in the call."""

    partition: int
    indexes: list[int] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)

    def told(self, problem: JQError) -> JQError:
        """The problem, its path that of the whole call."""
        path = problem.path and _PLACE.sub(lambda found: f"jobs[{self.indexes[int(found[1])]}]", problem.path)
        if path != problem.path:
            problem.path = path
        return problem


def split(arguments: Sequence[Argument], system: System) -> tuple[list[Argument], list[Part]]:
    """A call of `enqueue`: its options, as they go to each partition, and the parts.

    A job goes where the bucket of its unique key is, else where the first job is that it depends on; jobs of the call
    that depend on each other stay together, where the first of these rules has one of them. All others go to one
    partition, by chance, which a request token decides: so without such jobs a call is all or nothing. Raises Invalid
    where unique keys of jobs that stay together are at odds, NotFound for a partition that there is not.
    """
    options = list(arguments[: len(arguments) % 2])
    pairs = [(arguments[at], arguments[at + 1]) for at in range(len(options), len(arguments), 2)]
    specs = [unpacked(spec) for spec, _ in pairs]
    token = unpacked(options[0]).get("request") if options else None
    chosen = _some(len(system.partitions), token)
    groups = _groups(specs)
    homes: dict[int, tuple[int, str]] = {}
    for index, spec in enumerate(specs):
        if isinstance(spec.get("unique"), str):
            place, path = system.home(spec["unique"].encode(errors="surrogatepass")), f"jobs[{index}].unique"
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
    return options, list(parts.values()) or [Part(chosen)]


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
    """The partitions of what a job depends on, with the argument that says so."""
    for position, one in enumerate(_linked(spec)):
        if isinstance(one, str):
            place, path = partition_of(one), f"jobs[{index}].depends[{position}]"
            if place >= len(system.partitions):
                raise NotFound(f"no such job: {one}, the system has no partition {place}", path)
            yield place, path


def _renumbered(packed: Argument, spec: dict[str, Any], own: dict[int, int]) -> Argument:
    """Indexes in `depends` are those within the part."""
    depends = _linked(spec)
    if not any(type(one) is int and own.get(one, one) != one for one in depends):
        return packed
    return pack({**spec, "depends": [own.get(one, one) if type(one) is int else one for one in depends]})


def unpacked(packed: Argument) -> dict[str, Any]:
    """A spec; what is none has no fields, and the script says what is wrong with it."""
    try:
        spec = msgpack.unpackb(packed if isinstance(packed, bytes) else str(packed).encode())
    except (ValueError, msgpack.UnpackException):
        return {}
    return spec if isinstance(spec, dict) else {}


def _some(count: int, token: Any) -> int:
    if not isinstance(token, str):
        return secrets.randbelow(count)
    digest = hashlib.sha1(token.encode(errors="surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big") % count
