"""Where jobs are enqueued. By the first of these that a job has: the value that its queue's route leads to, its unique
key, the first job that it depends on, the call's request token; else by chance."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgpack

from jqmaster.cluster.names import home_of, number_of
from jqmaster.engine.calls import Argument, pack
from jqmaster.engine.engine import Engine
from jqmaster.errors import Invalid, Unavailable

KNOWN_S = 5.0  # for so long a queue's route is not asked for again
QUEUE = "queue"
"""The route that keeps all jobs of a queue together."""
_ARGUMENT = "argument"
_SEGMENT = re.compile(r"(?:[^.\\]|\\[.\\])+")
_INTEGER = re.compile("-?[0-9]+")


class Routes:
    """The routes of queues, as they were some seconds ago."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self._engines = engines
        self._known: dict[str, tuple[float, str | None]] = {}

    async def of(self, queue: str) -> str | None:
        """A queue's route, None where it has none. Raises Unavailable where none is known and none can be asked for."""
        asked_at, route = self._known.get(queue, (-KNOWN_S, None))
        if time.monotonic() < asked_at + KNOWN_S:
            return route
        try:
            page = await self._engines[home_of(queue, len(self._engines))].queues([queue])
        except Unavailable:
            if queue not in self._known:
                raise
            return route
        [settings] = [document.get("settings", {}) for document in page.documents] or [{}]
        self._known[queue] = time.monotonic(), settings.get("route")
        return self._known[queue][1]

    def forget(self, queue: object) -> None:
        """It may have another one."""
        self._known.pop(str(queue), None)

    async def home(self, spec: Mapping[str, Any], argument: Argument) -> int | None:
        """The partition of a job that has a route, or a unique key; None where anyone would do."""
        count = len(self._engines)
        queue = spec.get("queue", spec.get("name"))
        route = await self.of(queue) if isinstance(queue, str) and 0 < len(queue.encode()) <= 255 else None
        if route is not None:
            return home_of(value_of(route, queue, argument), count)
        unique = spec.get("unique")
        return home_of(unique, count) if isinstance(unique, str) else None

    async def is_exact(self, by: Any, match: Any) -> bool:
        """Whether each key of a constraint is in one partition, by routes: all queues that it can match are named, and
        have the same route, which is among the paths of `by`; or there is one queue, all in one partition."""
        queues = _named(match)
        routes = {await self.of(queue) for queue in queues}
        if len(routes) != 1 or None in routes:
            return False
        return (routes == {QUEUE} and len(queues) == 1) or not routes.isdisjoint(by if isinstance(by, list) else [by])


def _named(match: Any) -> list[str]:
    """The queues whose jobs alone a matcher can fit; [] where it does not say."""
    wanted = match.get("queue") if isinstance(match, dict) else None
    if isinstance(wanted, dict):
        wanted = wanted.get("eq", wanted.get("in"))
    names = wanted if isinstance(wanted, list) else [wanted]
    known = [name for name in names if isinstance(name, str) and "*" not in name]
    return known if len(known) == len(names) else []


# -- a call of enqueue, taken apart --------------------------------------------------------------------------------


@dataclass
class Part:
    """What of a call goes to one partition. `indexes`: of its jobs in the call."""

    partition: int
    indexes: list[int] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)


async def split(arguments: Sequence[Argument], routes: Routes, count: int) -> tuple[Sequence[Argument], list[Part]]:
    """The options of a call of `enqueue`, and its parts.

    Jobs that depend on each other by their place in the call stay together; those that may be anywhere go to one
    partition. So a call of jobs without routes and unique keys is all or nothing. Raises Invalid where jobs that are
    linked belong to different partitions.
    """
    options, pairs = arguments[: len(arguments) % 2], arguments[len(arguments) % 2 :]
    specs = [unpacked(spec) for spec in pairs[::2]]
    groups = _groups(specs)
    homes: dict[int, int] = {}
    for index, spec in enumerate(specs):
        home = await routes.home(spec, pairs[2 * index + 1])
        if home is not None and homes.setdefault(groups[index], home) != home:
            raise Invalid("in another partition than a job that it is linked to; give both the same route",
                          f"jobs[{index}].{'queue' if 'unique' not in spec else 'unique'}")  # fmt: skip
    for index, spec in enumerate(specs):
        for parent in _links(spec):
            if isinstance(parent, str):
                homes.setdefault(groups[index], number_of(parent, count))
    request = unpacked(options[0]).get("request") if options else None
    anywhere = home_of(request, count) if isinstance(request, str) else secrets.randbelow(count)
    parts: dict[int, Part] = {}
    for index, spec in enumerate(specs):
        home = homes.get(groups[index], anywhere)
        part = parts.setdefault(home, Part(home))
        places = {at: place for place, at in enumerate(part.indexes)}
        part.indexes.append(index)
        part.arguments += (_renumbered(pairs[2 * index], spec, places), pairs[2 * index + 1])
    return options, list(parts.values()) or [Part(anywhere)]


def _links(spec: Mapping[str, Any]) -> list[Any]:
    depends = spec.get("depends")
    return depends if isinstance(depends, list) else []


def _groups(specs: Sequence[Mapping[str, Any]]) -> list[int]:
    """For each job the first of those of the call that it is linked to."""
    groups = list(range(len(specs)))
    for index, spec in enumerate(specs):
        for parent in _links(spec):
            if type(parent) is int and 0 <= parent < index:
                first, second = sorted((groups[index], groups[parent]))
                groups = [first if group == second else group for group in groups]
    return groups


def _renumbered(packed: Argument, spec: Mapping[str, Any], places: Mapping[int, int]) -> Argument:
    """Indexes in `depends` are those within the part."""
    links = _links(spec)
    if not any(type(one) is int and places.get(one, one) != one for one in links):
        return packed
    return pack({**spec, "depends": [places.get(one, one) if type(one) is int else one for one in links]})


def unpacked(packed: Argument) -> dict[str, Any]:
    """A spec; what is none has no fields, and the script says what is wrong with it."""
    with suppress(ValueError, TypeError, msgpack.UnpackException):
        spec = msgpack.unpackb(packed)  # it may be the id of a job
        if isinstance(spec, dict):
            return spec
    return {}


# -- what a route leads to -------------------------------------------------------------------------------------------


class _Map(tuple[tuple[Any, Any], ...]):
    """A map as it came: of a key that is there twice, the first counts."""


def value_of(route: str, queue: str, argument: Argument) -> bytes:
    """The value by which a job has its home: a text, or an integer as it is written. What the route does not find, and
    all else that it may find, counts as empty text."""
    if route == QUEUE:
        return queue.encode(errors="surrogatepass")
    found: Any = None
    with suppress(ValueError, TypeError, msgpack.UnpackException):
        found = msgpack.unpackb(
            argument, strict_map_key=False, unicode_errors="surrogateescape", object_pairs_hook=_Map
        )
    for segment in _SEGMENT.findall(route[len(_ARGUMENT) + 1 :]):
        found = _inside(found, re.sub(r"\\(.)", r"\1", segment))
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, str):
        return found.encode(errors="surrogateescape")
    return str(found).encode() if type(found) is int else b""


def _inside(found: Any, segment: str) -> Any:
    number = int(segment) if _INTEGER.fullmatch(segment) else None
    if isinstance(found, _Map):
        keys = (segment,) if number is None else (segment, number)
        return next((value for key, value in found if type(key) in (str, int) and key in keys), None)
    if isinstance(found, list) and number is not None and 0 <= number < len(found):
        return found[number]
    return None
