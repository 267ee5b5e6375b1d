"""Enqueueing over the partitions of a system: a call is taken apart, and its answers are put together.

While buckets have moved, what the partitions that had them still know comes first. A key that a job there has stays its
until that ends, and a call that was answered there has its answer there. From when such a partition knows the record it
makes nothing new for these buckets: so what it does not know it never will, and whoever has the bucket now may make the
job.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, pack
from jqmaster.engine.engine import Engine
from jqmaster.errors import Invalid, NotFound, Outdated
from jqmaster.system.calls import all_of
from jqmaster.system.partitions import Partitions
from jqmaster.system.record import System
from jqmaster.system.routing import Moving, Part, belonging, part_of, split, taken_apart, unpacked

_MOVES_S = 10.0  # how long a bucket may be about to move
_MOVES_AGAIN_S = 0.1
_LEARNS_S = 10.0  # until when a partition has to know the record; whoever changes it tells it at once
_LEARNS_AGAIN_S = 0.05

Ask = Callable[[Engine, Sequence[Argument]], Awaitable[Any]]
"""How a part of the call is made at its partition."""
Made = dict[int, tuple[Any, Any]]
"""Jobs of a call, by their places in it: id, and whether it was created."""


async def enqueue(system: Partitions, call: Ask, arguments: Sequence[Argument]) -> Any:
    """Enqueue, each partition by ``call``; the reply as the script gives it."""
    _, record = await system.known()
    try:
        if not record.former and not record.of_state("draining"):
            return await _enqueue_parts(system, call, arguments)
        made = await _met(system, arguments)
        rest, left = _without(arguments, made)
        if left:
            with part_of("jobs", left):
                reply = await _enqueue_parts(system, call, rest)
            made |= zip(left, replies.pairs(reply), strict=True)
        return [one for index in sorted(made) for one in made[index]]
    except Outdated:
        if system.record is None or system.record.generation <= record.generation:
            raise
    except Moving as problem:
        await _wait_for_moves(system, problem)
    return await enqueue(system, call, arguments)


async def _enqueue_parts(system: Partitions, call: Ask, arguments: Sequence[Argument]) -> Any:
    """Each where it belongs."""
    engines, record = await system.known()
    options, parts = split(arguments, record)

    async def ask(part: Part) -> Any:
        engine = engines[part.partition]
        told = [*options, *part.arguments]
        with part_of("jobs", part.indexes):
            try:
                return await call(engine, told)
            except Outdated as problem:  # nothing has happened
                await system.catch_up(engine, problem)
            return await enqueue(system, call, told)

    answers = await all_of(ask(part) for part in parts)
    if len(parts) == 1:
        return answers[0]
    reply: list[Any] = [None] * (2 * sum(len(part.indexes) for part in parts))
    for part, answer in zip(parts, answers, strict=True):
        for index, (job_id, created) in zip(part.indexes, replies.pairs(answer), strict=True):
            reply[2 * index : 2 * index + 2] = job_id, created
    return reply


async def _wait_for_moves(system: Partitions, problem: Moving) -> None:
    """Until no bucket is about to move."""
    deadline = time.monotonic() + _MOVES_S
    while system.record is not None and system.record.moving:
        if time.monotonic() > deadline:
            raise problem
        await asyncio.sleep(_MOVES_AGAIN_S)
        await system.look()


# -- what partitions know that had buckets before --------------------------------------------------------


async def _met(system: Partitions, arguments: Sequence[Argument]) -> Made:
    """Those of a call of `enqueue` that the partitions know which had their buckets. Raises Outdated when the record
    is not the last, which has been read then; and what these partitions raise: one that does not answer may know."""
    _, record = await system.known()
    sent, pairs = taken_apart(arguments)
    given = unpacked(sent[0]) if sent else {}
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
    now = _parts(arguments, record)
    return [one for one in _parts(arguments, record.before) if one not in now]


def _parts(arguments: Sequence[Argument], record: System) -> list[tuple[int, tuple[int, ...]]]:
    """Partitions, and the places of the jobs that each gets; none where there can be no such call."""
    with suppress(Invalid, NotFound):
        return [(part.partition, tuple(part.indexes)) for part in split(arguments, record)[1]]
    return []


def _by_key(pairs: Sequence[Any], record: System) -> list[tuple[int, tuple[int, ...]]]:
    """Jobs with keys whose buckets have moved, by the partitions that had them."""
    places: dict[int, list[int]] = {}
    for index, (packed, argument) in enumerate(pairs):
        spec = unpacked(packed)
        now, then = belonging(spec, argument, record), belonging(spec, argument, record.before)
        if isinstance(spec.get("unique"), str) and now and then and now != then:
            places.setdefault(then[0], []).append(index)
    return [(place, tuple(indexes)) for place, indexes in places.items()]


async def _ask(system: Partitions, place: int, arguments: Sequence[Argument]) -> Any:
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
                await asyncio.sleep(_LEARNS_AGAIN_S)
                continue
            raise


def _without(arguments: Sequence[Argument], found: Made) -> tuple[list[Argument], list[int]]:
    """The rest of the call, and the places of its jobs in the whole. What depends on a job that is known names its
    id."""
    sent, pairs = taken_apart(arguments)
    left = [index for index in range(len(pairs)) if index not in found]
    rest = list(sent)
    for index in left:
        packed, argument = pairs[index]
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
