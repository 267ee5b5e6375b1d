"""Enqueueing while buckets have moved: what the partitions that had them still know comes first.

A key that a job there has stays its until that ends, and a call that was answered there has its answer there. From when
such a partition knows the record it makes nothing new for these buckets: so what it does not know it never will, and
whoever has the bucket now may make the job.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Protocol

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, pack
from jqmaster.engine.engine import Engine
from jqmaster.errors import Invalid, NotFound, Outdated
from jqmaster.system.record import System
from jqmaster.system.routing import belonging, split, unpacked

_LEARNS_S = 10.0  # until when a partition has to know the record; whoever changes it tells it at once
_AGAIN_S = 0.05

Made = dict[int, tuple[Any, Any]]
"""Jobs of a call, by their places in it: id, and whether it was created."""


class _System(Protocol):
    record: System | None

    async def partitions(self) -> Sequence[Engine]: ...

    async def catch_up(self, engine: Engine, problem: Outdated) -> None: ...


async def met(system: _System, arguments: Sequence[Argument]) -> Made:
    """Those of a call of `enqueue` that the partitions know which had their buckets. Raises Outdated when the record
    is not the last, which has been read then; and what these partitions raise: one that does not answer may know."""
    record, first = system.record, len(arguments) % 2
    assert record is not None
    pairs = [tuple(arguments[at : at + 2]) for at in range(first, len(arguments), 2)]
    given = unpacked(arguments[0]) if first else {}
    request = {"request": given["request"]} if isinstance(given.get("request"), str) else {}
    options = pack({**request, "generation": record.generation})
    found: Made = {}
    asked = [*(_by_token(arguments, record) if request else []), *_by_key(pairs, record)]
    for place, indexes in dict.fromkeys(asked):
        if not found.keys() >= set(indexes):
            reply = await _ask(system, place, [options, *(one for index in indexes for one in pairs[index])])
            for index, (job_id, created) in zip(indexes, replies.pairs(reply), strict=True):
                if job_id and index not in found:
                    found[index] = job_id, created
    return found


def _by_token(arguments: Sequence[Argument], record: System) -> list[tuple[int, tuple[int, ...]]]:
    """The parts that the call had before, and has not any more: they may have been answered."""
    try:
        before = split(arguments, record.before)[1]
    except (Invalid, NotFound):  # then there was no such call
        return []
    try:
        now = {(part.partition, tuple(part.indexes)) for part in split(arguments, record)[1]}
    except (Invalid, NotFound):
        now = set()
    parts = [(part.partition, tuple(part.indexes)) for part in before]
    return [one for one in parts if one not in now]


def _by_key(pairs: Sequence[Any], record: System) -> list[tuple[int, tuple[int, ...]]]:
    """Jobs with keys whose buckets have moved, by the partitions that had them."""
    places: dict[int, list[int]] = {}
    for index, (packed, argument) in enumerate(pairs):
        spec = unpacked(packed)
        now, then = belonging(spec, argument, record), belonging(spec, argument, record.before)
        if isinstance(spec.get("unique"), str) and now and then and now != then:
            places.setdefault(then[0], []).append(index)
    return [(place, tuple(indexes)) for place, indexes in places.items()]


async def _ask(system: _System, place: int, arguments: Sequence[Argument]) -> Any:
    engine = (await system.partitions())[place]
    deadline = time.monotonic() + _LEARNS_S
    while True:
        try:
            return await engine.call("meet", *arguments)
        except Outdated as problem:
            try:
                await system.catch_up(engine, problem)
            except Outdated:  # it does not know the record yet
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(_AGAIN_S)
                continue
            raise


def without(arguments: Sequence[Argument], found: Made) -> tuple[list[Argument], list[int]]:
    """The rest of the call, and the places of its jobs in the whole. What depends on a job that is known names its
    id."""
    first = len(arguments) % 2
    count = (len(arguments) - first) // 2
    left = [index for index in range(count) if index not in found]
    rest: list[Argument] = list(arguments[:first])
    for index in left:
        packed, argument = arguments[first + 2 * index : first + 2 * index + 2]
        spec = unpacked(packed)
        if isinstance(spec.get("depends"), list):
            packed = pack({**spec, "depends": [_named(one, found, left) for one in spec["depends"]]})
        rest += (packed, argument)
    return rest, left


def _named(one: Any, found: Made, left: Sequence[int]) -> Any:
    if type(one) is not int:
        return one
    if one in found:
        return replies.text(found[one][0])
    return left.index(one) if one in left else one


def together(made: Made, left: Sequence[int], rest: Any) -> list[Any]:
    """The reply to the whole call."""
    whole = {**made, **dict(zip(left, replies.pairs(rest), strict=True))}
    return [one for index in sorted(whole) for one in whole[index]]
