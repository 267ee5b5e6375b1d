"""Where jobs are enqueued. By the first of these that a job has: the value that its queue's route leads to, its unique
key, the first job that it depends on, the call's request token; else by chance."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgpack

from jqmaster.cluster.names import home_of, number_of
from jqmaster.engine.calling import Argument
from jqmaster.engine.engine import Engine
from jqmaster.errors import Invalid

KNOWN_S = 5.0  # for so long a queue's route is not asked for again
MOST_KNOWN = 10_000  # queues: whoever enqueues may name any
QUEUE = "queue"
"""The route that keeps all jobs of a queue together."""
_SEGMENT = re.compile(r"(?:[^.\\]|\\[.\\])+")
_INTEGER = re.compile("-?[0-9]+")


class Routes:
    """The routes of queues, as they were some seconds ago."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self._engines = engines
        self._known: dict[str, tuple[float, str | None]] = {}

    async def of(self, queue: str) -> str | None:
        """A queue's route, None where it has none. Raises Unavailable."""
        asked_at, route = self._known.get(queue, (-KNOWN_S, None))
        if time.monotonic() < asked_at + KNOWN_S:
            return route
        page = await self._engines[home_of(queue, len(self._engines))].queues(names=[queue])
        [settings] = [document.get("settings", {}) for document in page.documents] or [{}]
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[queue] = time.monotonic(), settings.get("route")
        return self._known[queue][1]

    def forget(self, queue: object) -> None:
        """It may have another one."""
        self._known.pop(str(queue), None)

    async def homes(self, jobs: Sequence[tuple[Mapping[str, Any], Argument]]) -> list[int | None]:
        """The partitions of jobs that have a route, a unique key, or a job that they wait for; None where anyone would
        do."""
        homes: list[int | None] = []
        for spec, argument in jobs:
            queue, value = spec.get("queue", spec.get("name")), spec.get("unique")
            if isinstance(queue, str) and 0 < len(queue) <= 255 and (route := await self.of(queue)) is not None:
                value = value_of(route, queue, argument)
            places = [number_of(one, len(self._engines)) for one in _list(spec.get("depends")) if isinstance(one, str)]
            if isinstance(value, str | bytes):
                places = [home_of(value, len(self._engines))]
            homes.append(next(iter(places), None))
        return homes

    async def parts(self, jobs: Sequence[tuple[Argument, Argument]], request: object) -> dict[int, list[int]]:
        """Which jobs of a call, by index, go to which partition.

        Jobs that may be anywhere go to one, so a call without routes and unique keys is all or nothing. So do all jobs
        of a call in which one depends on another by its index. Raises Invalid where these belong to several.
        """
        specs = [(unpacked(spec), argument) for spec, argument in jobs]
        count = len(self._engines)
        anywhere = home_of(request, count) if isinstance(request, str) else secrets.randbelow(count)
        homes = await self.homes(specs)
        if any(type(one) is int for spec, _ in specs for one in _list(spec.get("depends"))):
            chosen = {home for home in homes if home is not None} or {anywhere}
            if len(chosen) > 1:
                raise Invalid("jobs of the call are linked and in several partitions; give all the same route", "jobs")
            homes = [*chosen] * len(specs)
        parts: dict[int, list[int]] = {}
        for index, home in enumerate(homes):
            parts.setdefault(anywhere if home is None else home, []).append(index)
        return parts or {anywhere: []}

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


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def unpacked(packed: Argument) -> dict[str, Any]:
    """A spec; what is none has no fields, and the script says what is wrong with it."""
    spec = _read(packed)
    return spec if isinstance(spec, dict) else {}


def _read(packed: Argument) -> Any:
    with suppress(ValueError, TypeError, msgpack.UnpackException):
        return msgpack.unpackb(packed, strict_map_key=False, unicode_errors="surrogateescape")
    return None


def value_of(route: str, queue: str, argument: Argument) -> bytes:
    """The value by which a job has its home: a text, or an integer as it is written. What the route does not find, and
    all else that it may find, counts as empty text."""
    if route == QUEUE:
        return queue.encode(errors="surrogatepass")
    found = _read(argument)
    for part in _SEGMENT.findall(route.removeprefix("argument")):
        segment = re.sub(r"\\(.)", r"\1", part)
        number = int(segment) if _INTEGER.fullmatch(segment) else None
        if isinstance(found, dict):
            found = found.get(segment, found.get(number))
        else:
            is_index = isinstance(found, list) and number is not None and 0 <= number < len(found)
            found = found[number] if is_index else None
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, str):
        return found.encode(errors="surrogateescape")
    return str(found).encode() if type(found) is int else b""
