"""Making a system, reading what there is of it, and what all do who ask partitions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from redis.exceptions import RedisError, ResponseError

from jqmaster.engine import scripts
from jqmaster.engine.calls import connect
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document, Page
from jqmaster.errors import Conflict, JQError, NotFound, PartitionsAway, Unavailable, from_redis
from jqmaster.system.layout import SLOTS, lay_out
from jqmaster.system.record import System, new, unpack
from jqmaster.system.settled import NONE, version_key

_AT_ONCE = 16
ANSWER_S = 5.0
_TOLD_S = 30.0
_PAGE = 1000

T = TypeVar("T")


async def all_of(asked: Iterable[Awaitable[T]], *, but: type[JQError] | tuple[()] = ()) -> list[T]:
    """All answers. Raises the first problem, once all are through: one of the kind ``but`` only if there is no
    answer."""
    answers = await asyncio.gather(*asked, return_exceptions=True)
    found = [one for one in answers if not isinstance(one, BaseException)]
    problems = [one for one in answers if isinstance(one, BaseException)]
    severe = [one for one in problems if not isinstance(one, but)]
    if problems and (severe or not found):
        raise (severe or problems)[0]
    return found


async def or_problem(asked: Awaitable[T]) -> T | JQError:
    """An answer, or why there is none."""
    try:
        return await asked
    except JQError as problem:
        return problem


@asynccontextmanager
async def answering(namespace: str, within_s: float | None = ANSWER_S, what: str = "answer") -> AsyncIterator[None]:
    """What a partition is asked here is to come so soon. Raises PartitionsAway, and for what redis-py raises what JQ
    does."""
    try:
        async with asyncio.timeout(within_s):
            yield
    except TimeoutError as problem:
        raise PartitionsAway(f"{namespace} did not {what} within {within_s:g} s") from problem
    except RedisError as problem:
        raise from_redis(problem) from problem


@asynccontextmanager
async def at(url: str, namespace: str, *, form: scripts.Form = "auto") -> AsyncIterator[Engine]:
    """The engine of one partition. Raises what JQ raises."""
    async with connect(url) as client:
        try:
            yield Engine(client, namespace, form=form)
        except RedisError as problem:
            raise from_redis(problem) from problem


def _key(namespace: str) -> str:
    return f"{namespace}:system"


async def read_at(engine: Engine, *, known: System | None = None) -> System | None:
    """The record that a partition has; if that is the ``known`` one it is not taken apart again. Raises Version,
    RedisError."""
    data: Any = await engine.redis.get(_key(engine.namespace))
    if known is not None and data == known.packed():
        return known
    return None if data is None else unpack(data)


async def look_at(engine: Engine) -> tuple[System | None, str]:
    """The record that a partition has, and the version of its settings. Raises Version, RedisError."""
    found: Any = await engine.redis.mget(_key(engine.namespace), version_key(engine.namespace))
    data, version = found
    return None if data is None else unpack(data), NONE if version is None else version.decode()


async def version_of(engine: Engine, within_s: float | None = None) -> str:
    """Of a partition's settings. Raises Unavailable."""
    async with answering(engine.namespace, within_s, "tell the version of its settings"):
        found: Any = await engine.redis.get(version_key(engine.namespace))
    return NONE if found is None else found.decode()


async def versions(engines: Sequence[Engine], within_s: float | None = None) -> list[str | JQError]:
    """Of each, or why that is not known."""
    return await asyncio.gather(*(or_problem(version_of(one, within_s)) for one in engines))


async def documents_of(listing: Callable[..., Awaitable[Page]], *given: Any, **more: Any) -> AsyncIterator[Document]:
    """The documents of a listing, page by page."""
    cursor: str | None = ""
    while cursor is not None:
        page = await listing(*given, cursor=cursor, count=_PAGE, **more)
        for one in page.documents:
            yield one
        cursor = page.cursor or None


async def owners_of(engine: Engine) -> Sequence[str]:
    """The node of each slot, `host:port`; "" where there is none. A server that is no cluster has them all."""
    try:
        ranges = await engine.redis.execute_command("CLUSTER", "SLOTS")
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
    async with at(url, root, form=form) as engine:
        there = await read_at(engine)
        if there is None:
            system = new(lay_out(root, count, await owners_of(engine)))
            # Before the record: a server that does not suit, or data of another schema, is told here.
            await scripts.load(engine.redis, root, form=form)
            try:
                await put(engine, system, after=0)
            except Conflict:
                there = await read_at(engine)
        if there is not None:
            _check_same(there, root, count)
            system = there
    await tell(url, system, form=form)
    return system


async def put(engine: Engine, system: System, *, after: int | None = None) -> int:
    """Have a partition keep a record, if it is later than its own; the generation of what it then has. With ``after``
    it must follow the one of that generation: then raises Conflict where another is there."""
    generation, _ = await engine.system(system.packed(), after=after)
    return generation


async def tell(url: str, system: System, *, without: int | None = None, form: scripts.Form = "auto") -> None:
    """Have all partitions keep the record, but the one of a number; they are set up where they are not. Raises
    Unavailable, which names those that did not answer, once all others have it."""
    turn = asyncio.Semaphore(_AT_ONCE)

    async def set_up(namespace: str) -> None:
        async with turn, at(url, namespace, form=form) as engine, answering(namespace, _TOLD_S):
            await scripts.load(engine.redis, namespace, form=form)
            await put(engine, system)

    names = [system.partitions[number].namespace for number in system.live if number != without]
    answers = await asyncio.gather(*map(set_up, names), return_exceptions=True)
    silent = {}
    for name, one in zip(names, answers, strict=True):
        if isinstance(one, Unavailable):
            silent[name] = one
        elif isinstance(one, BaseException):
            raise one
    if silent:
        told = f"{len(names) - len(silent)} of {len(names)} partitions have generation {system.generation}"
        cause = next(iter(silent.values()))
        raise Unavailable(f"{told}; {', '.join(silent)} did not answer: repeat it") from cause


def _check_same(there: System, root: str, count: int) -> None:
    if there.root != root:
        raise Conflict(f"{root} is a partition of the system {there.root}")
    if len(there.partitions) != count:
        has = f"{len(there.partitions)} partitions, generation {there.generation}"
        raise Conflict(f"there is a system {root} already: {has}")


async def read(url: str, namespace: str) -> System:
    """The record of the system that a namespace belongs to. Raises NotFound, Version, Unavailable, ValueError."""
    async with at(url, namespace) as engine:
        system = await read_at(engine)
    if system is None:
        raise NotFound(f"{namespace} is no system; `jqmaster system create` makes one of several partitions")
    return system


async def latest(url: str, root: str, *, without: int | None = None) -> System:
    """The latest record that any partition has, but the one of a number. Partition 0 may have lost it in a failover: a
    change of an older one would make another system of the same generation. Raises Conflict (it is the name of a
    partition), NotFound, Version, ValueError, Unavailable, also where a partition does not answer that may have a later
    one."""
    found = await read(url, root)
    if found.root != root:
        raise Conflict(f"{root} is a partition of the system {found.root}: name that")
    turn = asyncio.Semaphore(_AT_ONCE)

    async def copy(namespace: str) -> System | None:
        async with turn, answering(namespace), at(url, namespace) as engine:
            return await read_at(engine)

    copies = await all_of(copy(found.partitions[number].namespace) for number in found.live if number != without)
    return max((found, *filter(None, copies)), key=lambda one: one.generation)
