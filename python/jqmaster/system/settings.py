"""Settings: what is the same in all partitions of a system. Partition 0 comes first, and what it has is right."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgpack

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, pack
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document
from jqmaster.errors import Invalid, JQError, NotFound, PartitionsAway, Unavailable
from jqmaster.system import merging
from jqmaster.system.moving import bring_schedule
from jqmaster.system.routes import is_placed, needs_place
from jqmaster.system.ways import Partitions, Way, all_of, come_since, spec_of

_REMOVING = ("unsubscribe", "revoke", "forget")
_PAGE = 1000
_AT_ONCE = 16


async def _everywhere(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """Partition 0 first, then all others at once; its reply. Repeating completes what some did not get."""
    return (await _carried(operation, system, lambda _: arguments))[0]


async def _carried(operation: str, system: Partitions, arguments: Callable[[Any], Sequence[Argument]]) -> list[Any]:
    """The answers. ``arguments`` of the others are made from the first's answer. What is to be removed need not be
    everywhere. Raises Unavailable, which names those that did not answer, once all others are through."""
    engines = list((await system.live()).values())

    async def ask(engine: Engine, told: Sequence[Argument]) -> Any:
        try:
            return await engine.call(operation, *told)
        except NotFound as problem:
            if operation not in _REMOVING:
                raise
            return problem

    first = await ask(engines[0], arguments(None))
    told = arguments(first)
    answers = [first, *await asyncio.gather(*(ask(one, told) for one in engines[1:]), return_exceptions=True)]
    while more := await come_since(system, engines):
        answers += await asyncio.gather(*(ask(one, told) for one in more), return_exceptions=True)
        engines = [*engines, *more]
    silent = [engine.namespace for engine, one in zip(engines, answers, strict=True) if isinstance(one, Unavailable)]
    for engine, one in zip(engines, answers, strict=True):
        if isinstance(one, BaseException) and not isinstance(one, Unavailable | NotFound):
            if isinstance(one, JQError):
                one.message += f" (in {engine.namespace}; others have it)"
            raise one
    if silent:
        applied = f"applied in {len(engines) - len(silent)} of {len(engines)} partitions"
        cause = next(one for one in answers if isinstance(one, Unavailable))
        raise PartitionsAway(f"{applied}; {', '.join(silent)} did not answer: repeat it", cause.cause) from cause
    found = [one for one in answers if not isinstance(one, NotFound)]
    if not found:
        raise first
    return found


async def _config(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """What is asked for is told as partition 0 has it."""
    if spec_of(arguments).keys() & {"set", "unset"}:
        return await _everywhere(system, operation, arguments)
    return await system.root_or_another(lambda engine: engine.call(operation, *arguments))


async def _queue(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """The document is that of all."""
    answers = await _carried(operation, system, lambda _: arguments)
    return msgpack.packb(merging.queue([replies.plain_document(one) for one in answers]))


async def _forget(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """Partitions that have jobs of the queue are asked first: they refuse."""
    engines = list((await system.live()).values())
    name: Any = spec_of(arguments).get("queue")
    with suppress(Invalid):  # of a name that cannot be, which is refused below
        for engine, page in zip(engines, await all_of(one.queues([name]) for one in engines), strict=True):
            if any(type(count) is int and count for field, count in _counts(page.documents)):
                await engine.call(operation, *arguments)
    return await _everywhere(system, operation, arguments)


def _counts(documents: Sequence[Document]) -> Iterator[tuple[str, Any]]:
    for document in documents:
        yield from ((field, value) for field, value in document.items() if field not in ("max_waiting", "paused"))


async def _mark(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """The moment is that of partition 0, so that it is one mark."""
    spec = spec_of(arguments)

    def told(first: Any) -> Sequence[Argument]:
        if not isinstance(first, bytes):
            return arguments
        return [pack({**spec, "time_ms": replies.plain_document(first)["time_ms"]})]

    return (await _carried(operation, system, told))[0]


async def _schedule(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """At the home of its id."""
    spec = spec_of(arguments)
    engines = await system.partitions()
    assert system.record is not None
    home = system.record.home(str(spec.get("id", "")).encode(errors="surrogatepass"))
    await bring_schedule(system, str(spec.get("id", "")))
    return await engines[home].call(operation, *arguments)


SETTINGS = frozenset({"config", "queue", "subscribe", "unsubscribe", "mark", "grant", "revoke", "forget"})
WAYS: Mapping[str, Way] = {
    **dict.fromkeys(SETTINGS, _everywhere),
    "config": _config,
    "forget": _forget,
    "mark": _mark,
    "queue": _queue,
    "schedule": _schedule,
    "unschedule": _schedule,
}


# -- bringing partitions that are behind up to partition 0 -----------------------------------------------


class Behind(NamedTuple):
    """A setting that a partition has otherwise than partition 0, and the call that brings it there."""

    what: str
    operation: str
    arguments: Sequence[Argument]


class _Settings(NamedTuple):
    """What one partition has."""

    config: Document
    queues: dict[str, Document]
    webhooks: dict[str, Document]
    keys: dict[str, Document]
    constraints: dict[str, Document]


async def _all(listing: Callable[..., Awaitable[replies.Page]], **more: Any) -> list[Document]:
    found: list[Document] = []
    cursor = ""
    while True:
        page = await listing(cursor=cursor, count=_PAGE, **more)
        found += page.documents
        cursor = page.cursor
        if not cursor:
            return found


async def _settings(engine: Engine, routes: Mapping[str, str]) -> _Settings:
    queues = {one["name"]: _of_queue(one) for one in await _all(engine.queues)}
    keys = {one["id"]: one for one in await _all(engine.keys, digests=True)}
    webhooks = {one["id"]: one for one in await engine.webhooks(secrets=True)}
    constraints = {
        one["id"]: _of_constraint(one)
        for one in await _all(engine.constraints)
        if "share" in one or is_placed(one, routes)
    }
    return _Settings(await engine.config(), queues, webhooks, keys, constraints)


def _of_queue(document: Document) -> Document:
    return {
        "paused": document["paused"], "max_waiting": document["max_waiting"], "fair": document.get("fair", []),
        "settings": document.get("settings", {}),
    }  # fmt: skip


_OF_CONSTRAINT = ("id", "match", "by", "concurrency", "rate", "cost", "order", "expires_ms", "hold_ms")


def _of_constraint(document: Document) -> Document:
    return {field: document[field] for field in _OF_CONSTRAINT if field in document}


_PLAIN: Document = {"paused": False, "max_waiting": 0, "fair": [], "settings": {}}


def _differing(right: _Settings, its: _Settings, now_ms: int) -> Iterator[Behind]:
    if its.config != right.config:
        yield Behind("settings", "config", [pack({"set": right.config})])
    for name in sorted(right.queues.keys() | its.queues.keys()):
        wanted, found = right.queues.get(name, _PLAIN), its.queues.get(name, _PLAIN)
        if wanted != found:
            unset = sorted(found["settings"].keys() - wanted["settings"].keys())
            spec = {"name": name, **{field: wanted[field] for field in ("paused", "max_waiting", "fair")}}
            more = {"set": wanted["settings"] or None, "unset": unset or None}
            yield Behind(f"queue {name}", "queue", [pack(spec | {key: one for key, one in more.items() if one})])
    for name in sorted(right.webhooks.keys() | its.webhooks.keys()):
        if (hook := right.webhooks.get(name)) is None:
            yield Behind(f"webhook {name}", "unsubscribe", [pack({"id": name})])
        elif hook != its.webhooks.get(name):
            if not hook["secrets"] and name in its.webhooks:
                yield Behind(f"webhook {name}", "unsubscribe", [pack({"id": name})])  # or its secrets would stay
            unsent = ("match",) if hook["secrets"] else ("match", "secrets")
            spec = {field: value for field, value in hook.items() if field not in unsent}
            matcher = msgpack.packb(hook["match"]) if "match" in hook else b""
            yield Behind(f"webhook {name}", "subscribe", [pack(spec), matcher])
    for name in sorted(right.keys.keys() ^ its.keys.keys()):
        if (key := right.keys.get(name)) is None:
            yield Behind(f"key {name}", "revoke", [pack({"id": name})])
            continue
        spec = {field: key[field] for field in ("id", "digest", "name", "roles", "queues", "rate") if field in key}
        left_s = (key["expires_ms"] - now_ms) / 1000 if "expires_ms" in key else None
        if left_s is None or left_s > 0:
            yield Behind(f"key {name}", "grant", [pack(spec | ({} if left_s is None else {"ttl": left_s}))])
    for name in sorted(right.constraints.keys() | its.constraints.keys()):
        yield from _of_limits(name, right.constraints.get(name), its.constraints.get(name), now_ms)


def _of_limits(name: str, right: Document | None, its: Document | None, now_ms: int) -> Iterator[Behind]:
    """Of one constraint of all partitions. Moments are those of each partition's clock, and of when it was
    told: whether there is one is compared."""
    if right is None:
        yield Behind(f"constraint {name}", "unconstrain", [pack({"id": name})])
        return
    moments = ("expires_ms", "hold_ms")

    def facts(one: Document) -> Document:
        return {field: field in moments or value for field, value in one.items() if field != "hold_ms"}

    if its is None or facts(its) != facts(right):
        spec = {field: value for field, value in right.items() if field not in ("match", *moments)}
        more = {"expires_in": max(0.001, (right["expires_ms"] - now_ms) / 1000)} if "expires_ms" in right else {}
        matcher = msgpack.packb(right["match"])
        shared = needs_place(right) is None
        yield Behind(f"constraint {name}", "constrain", [pack({**spec, **more, "shared": shared}), matcher])
    left_ms = right.get("hold_ms", 0) - now_ms
    if left_ms > 0 and (its is None or "hold_ms" not in its):
        yield Behind(f"hold of {name}", "hold", [pack({"id": name, "seconds": left_ms / 1000})])


async def behind(
    engines: Sequence[Engine], routes: Mapping[str, str], *, within_s: float | None = None
) -> list[list[Behind] | JQError]:
    """For each partition what it has otherwise than the first of them, which is partition 0, or why that is not known.
    Each has ``within_s`` to tell. Raises what partition 0 does."""

    turn = asyncio.Semaphore(_AT_ONCE)

    async def of(engine: Engine) -> _Settings:
        try:
            async with turn, asyncio.timeout(within_s):
                return await _settings(engine, routes)
        except TimeoutError as problem:
            raise PartitionsAway(f"{engine.namespace} did not tell its settings within {within_s:g} s") from problem

    right = await of(engines[0])
    now_ms = int(time.time() * 1000)

    async def found(engine: Engine) -> list[Behind] | JQError:
        try:
            return list(_differing(right, await of(engine), now_ms))
        except JQError as problem:
            return problem

    return [[], *await all_of(map(found, engines[1:]))]


async def sync(system: Partitions) -> list[list[str]]:
    """Bring each live partition to what partition 0 has: for each what was brought. Safe to repeat, and at any time.
    Raises Unavailable, which names those that did not answer, once all others have it."""
    engines = list((await system.live()).values())
    assert system.record is not None
    found = await behind(engines, system.record.routes)

    async def brought(engine: Engine, found: list[Behind] | JQError) -> list[str]:
        if isinstance(found, JQError):
            raise found
        for one in found:
            await engine.call(one.operation, *one.arguments)
        return [one.what for one in found]

    asked = (brought(engine, found) for engine, found in zip(engines, found, strict=True))
    answers = await asyncio.gather(*asked, return_exceptions=True)
    for one in answers:
        if isinstance(one, BaseException) and not isinstance(one, Unavailable):
            raise one
    silent = [engine.namespace for engine, one in zip(engines, answers, strict=True) if isinstance(one, Unavailable)]
    if silent:
        raise PartitionsAway(f"{', '.join(silent)} did not answer: repeat it; the others have what {system.root} has")
    return [one for one in answers if isinstance(one, list)]
