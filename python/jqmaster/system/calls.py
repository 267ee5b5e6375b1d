"""Making a system, and reading what there is of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from jqmaster.connection.place import place_of
from jqmaster.engine import scripts
from jqmaster.engine.calls import connect
from jqmaster.errors import Conflict, JQError, NotFound, from_redis
from jqmaster.system.layout import SLOTS, lay_out
from jqmaster.system.record import Partition, System, new, unpack

_AT_ONCE = 16
_ANSWER_S = 5.0


@dataclass(frozen=True)
class Seen:
    """A partition as it was found. ``copy`` is the generation of its copy of the record, None without one;
    ``missing`` says why nothing is known of it, "" when it answered."""

    number: int
    partition: Partition
    node: str
    buckets: int
    copy: int | None
    missing: str

    def problem(self, generation: int) -> str:
        """What is wrong with it, beside a record of this generation; "" when all is well."""
        if self.missing:
            return self.missing
        if self.copy is None:
            return "no copy of the record: repeat `system create`"
        if self.copy == generation:
            return ""
        return f"its copy is of generation {self.copy}, which is {'later' if self.copy > generation else 'earlier'}"


@asynccontextmanager
async def _at(url: str, namespace: str) -> AsyncIterator[Redis]:
    """A client for one partition. Raises what JQ raises."""
    async with connect(url) as client:
        place_of(client).serve(scripts.check_namespace(namespace))
        try:
            yield client
        except RedisError as problem:
            raise from_redis(problem) from problem


def _key(namespace: str) -> str:
    return f"{namespace}:system"


async def _read(client: Redis, namespace: str) -> System | None:
    data: Any = await client.get(_key(namespace))
    return None if data is None else unpack(data)


async def _owners(client: Redis) -> Sequence[str]:
    """The node of each slot, `host:port`; "" where there is none. A server that is no cluster has them all."""
    try:
        ranges = await client.execute_command("CLUSTER", "SLOTS")
    except ResponseError as refusal:
        if "cluster support disabled" not in str(refusal):
            raise
        return ["one server"] * SLOTS
    owners = [""] * SLOTS
    for first, last, primary, *_ in ranges:
        node = f"{(primary[0] or b'').decode()}:{primary[1]}"
        owners[first : last + 1] = [node] * (last + 1 - first)
    return owners


async def create(url: str, root: str, count: int, *, form: scripts.Form = "auto") -> System:
    """Make a system of ``count`` partitions, ``root`` the first, with what it has in it. Safe to repeat.

    The record at partition 0 comes first, and only where there is none: of two who create at once one makes it.
    Then each partition is set up and gets its copy; who repeats a call that broke off completes it.
    Raises Invalid (count, namespace), Conflict (there is a system of another size, or this is a partition of
    another), Version, Unavailable, ValueError.
    """
    async with _at(url, root) as client:
        there = await _read(client, root)
        if there is None:
            system = new(lay_out(root, count, await _owners(client)))
            # Before the record: a server that does not suit, or data of another schema, is told here.
            await scripts.load(client, root, form=form)
            if not await client.set(_key(root), system.packed(), nx=True):
                there = await _read(client, root)
        if there is not None:
            _check_same(there, root, count)
            system = there
    turn = asyncio.Semaphore(_AT_ONCE)

    async def set_up(namespace: str) -> None:
        async with turn:
            await _set_up(url, system, namespace, form)

    await asyncio.gather(*(set_up(one.namespace) for one in system.partitions))
    return system


def _check_same(there: System, root: str, count: int) -> None:
    if there.root != root:
        raise Conflict(f"{root} is a partition of the system {there.root}")
    if len(there.partitions) != count:
        has = f"{len(there.partitions)} partitions, generation {there.generation}"
        raise Conflict(f"there is a system {root} already: {has}")


async def _set_up(url: str, system: System, namespace: str, form: scripts.Form) -> None:
    async with _at(url, namespace) as client:
        await scripts.load(client, namespace, form=form)
        await client.set(_key(namespace), system.packed(), nx=True)


async def read(url: str, namespace: str) -> System:
    """The record of the system that a namespace belongs to. Raises NotFound, Version, Unavailable, ValueError."""
    async with _at(url, namespace) as client:
        return await _record(client, namespace)


async def _record(client: Redis, namespace: str) -> System:
    system = await _read(client, namespace)
    if system is None:
        raise NotFound(f"{namespace} is no system; `jqmaster system create` makes one of several partitions")
    return system


async def look(url: str, namespace: str) -> tuple[System, list[Seen]]:
    """The system that a namespace belongs to, and its partitions as they are found.

    ``namespace`` is the system's, or another of its partitions, which does while partition 0 is away. A partition
    that does not answer within five seconds is told as missing. Raises NotFound, Version, Unavailable, ValueError.
    """
    async with _at(url, namespace) as client:
        system = await _record(client, namespace)
        owners = await _owners(client)
    shares = Counter(system.buckets)
    turn = asyncio.Semaphore(_AT_ONCE)

    async def seen(number: int, one: Partition) -> Seen:
        copy, missing = None, ""
        async with turn:
            try:
                copy = await asyncio.wait_for(_generation(url, one.namespace), _ANSWER_S)
            except TimeoutError:
                missing = f"no answer within {_ANSWER_S:g} s"
            except JQError as problem:
                missing = str(problem)
        return Seen(number, one, owners[one.slot], shares[number], copy, missing)

    return system, list(await asyncio.gather(*(seen(*one) for one in enumerate(system.partitions))))


async def _generation(url: str, namespace: str) -> int | None:
    async with _at(url, namespace) as client:
        found = await _read(client, namespace)
        return None if found is None else found.generation
