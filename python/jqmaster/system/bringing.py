"""What partitions of a system have otherwise than they should, and bringing them in line. docs/partitions.md,
"Settings", tells when that is done."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgpack

from jqmaster.engine.calls import Argument, Spec, pack
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document
from jqmaster.errors import Forbidden, JQError, NotFound, PartitionsAway, Stale, Unavailable
from jqmaster.system import settled
from jqmaster.system.calls import ANSWER_S, all_of, answering, documents_of, or_problem, version_of, versions
from jqmaster.system.partitions import Partitions
from jqmaster.system.routing import is_placed, needs_place

_AT_ONCE = 16
_LOOKS = 20
_VERSION_S = 2.0
_DEAD_S = (2.0, 6.0)  # who brings a partition in line is given so long, by chance, before another takes over
_AGAIN_S = 0.05

CHECK_S = 60.0  # how often each process compares them
_EACH_S = 5.0  # for each partition, of which there may be many
_RETURN_S = 3.0  # of a partition that is back, within
_STALE_S = 0.5  # of one that starts nothing before that
_PAUSE_S = 5.0  # however often one goes and comes back
_LASTS_S = 1.0  # who sets something has told all within this, or they did not answer

log = logging.getLogger("jqmaster.system")


class Behind(NamedTuple):
    """A setting that a partition has otherwise than it should, and the call that brings it there."""

    what: str
    operation: str
    spec: Spec
    matcher: Sequence[Argument] = ()


class Settings(NamedTuple):
    """What one partition has, and of which version that is."""

    version: str
    config: Document
    queues: dict[str, Document]
    webhooks: dict[str, Document]
    keys: dict[str, Document]
    constraints: dict[str, Document]


async def _settings(engine: Engine, routes: Mapping[str, str]) -> Settings:
    """All of one version."""
    for _ in range(_LOOKS):
        version = await version_of(engine)
        queues = {one["name"]: _PLAIN | _those(one, _PLAIN) async for one in documents_of(engine.queues)}
        keys = {one["id"]: one async for one in documents_of(engine.keys, digests=True)}
        webhooks = {one["id"]: one for one in await engine.webhooks(secrets=True)}
        constraints = {
            one["id"]: _those(one, _OF_CONSTRAINT)
            async for one in documents_of(engine.constraints)
            if "share" in one or is_placed(one, routes)
        }
        config = await engine.config()
        if await version_of(engine) == version:
            return Settings(version, config, queues, webhooks, keys, constraints)
    raise Unavailable(f"the settings of {engine.namespace} change all the time")


_PLAIN: Document = {"paused": False, "max_waiting": 0, "fair": [], "settings": {}}  # a queue
_OF_CONSTRAINT = ("id", "match", "by", "concurrency", "rate", "cost", "order", "expires_ms", "hold_ms")


def _those(document: Document, fields: Iterable[str]) -> Document:
    return {field: document[field] for field in fields if field in document}


def _differing(right: Settings, its: Settings, now_ms: int) -> Iterator[Behind]:
    if its.config != right.config:
        yield Behind("settings", "config", {"set": right.config})
    for name in sorted(right.queues.keys() | its.queues.keys()):
        wanted, found = right.queues.get(name, _PLAIN), its.queues.get(name, _PLAIN)
        if wanted != found:
            unset = sorted(found["settings"].keys() - wanted["settings"].keys())
            spec = {"name": name, **{field: wanted[field] for field in ("paused", "max_waiting", "fair")}}
            more = {"set": wanted["settings"] or None, "unset": unset or None}
            yield Behind(f"queue {name}", "queue", spec | {key: one for key, one in more.items() if one})
    for name in sorted(right.webhooks.keys() | its.webhooks.keys()):
        if (hook := right.webhooks.get(name)) is None:
            yield Behind(f"webhook {name}", "unsubscribe", {"id": name})
        elif hook != its.webhooks.get(name):
            if not hook["secrets"] and name in its.webhooks:
                yield Behind(f"webhook {name}", "unsubscribe", {"id": name})  # or its secrets would stay
            unsent = ("match",) if hook["secrets"] else ("match", "secrets")
            spec = {field: value for field, value in hook.items() if field not in unsent}
            matcher = msgpack.packb(hook["match"]) if "match" in hook else b""
            yield Behind(f"webhook {name}", "subscribe", spec, [matcher])
    for name in sorted(right.keys.keys() ^ its.keys.keys()):
        if (key := right.keys.get(name)) is None:
            yield Behind(f"key {name}", "revoke", {"id": name})
            continue
        spec = _those(key, ("id", "digest", "name", "roles", "queues", "rate"))
        left_s = (key["expires_ms"] - now_ms) / 1000 if "expires_ms" in key else None
        if left_s is None or left_s > 0:
            yield Behind(f"key {name}", "grant", spec | ({} if left_s is None else {"ttl": left_s}))
    for name in sorted(right.constraints.keys() | its.constraints.keys()):
        yield from _of_limits(name, right.constraints.get(name), its.constraints.get(name), now_ms)


def _of_limits(name: str, right: Document | None, its: Document | None, now_ms: int) -> Iterator[Behind]:
    """Of one constraint of all partitions. Moments are those of each partition's clock, and of when it was
    told: whether there is one is compared."""
    if right is None:
        yield Behind(f"constraint {name}", "unconstrain", {"id": name})
        return
    moments = ("expires_ms", "hold_ms")

    def facts(one: Document) -> Document:
        return {field: field in moments or value for field, value in one.items() if field != "hold_ms"}

    if its is None or facts(its) != facts(right):
        spec = {field: value for field, value in right.items() if field not in ("match", *moments)}
        more = {"expires_in": max(0.001, (right["expires_ms"] - now_ms) / 1000)} if "expires_ms" in right else {}
        matcher = msgpack.packb(right["match"])
        shared = needs_place(right) is None
        yield Behind(f"constraint {name}", "constrain", {**spec, **more, "shared": shared}, [matcher])
    left_ms = right.get("hold_ms", 0) - now_ms
    if left_ms > 0 and (its is None or "hold_ms" not in its):
        yield Behind(f"hold of {name}", "hold", {"id": name, "seconds": left_ms / 1000})


# -- all partitions --------------------------------------------------------------------------------------

_Found = list[list[Behind] | JQError]


async def behind(engines: Sequence[Engine], routes: Mapping[str, str], *, within_s: float | None = None) -> _Found:
    """For each partition what it has otherwise than the one with the latest settings, or why that is not known. Of one
    version that is as the first of them has it, which is partition 0. Each has ``within_s`` to tell. Raises what the
    one with the latest does."""
    return (await _look(engines, routes, within_s))[1]


async def _look(
    engines: Sequence[Engine], routes: Mapping[str, str], within_s: float | None, *, are_versions_enough: bool = False
) -> tuple[Settings, _Found]:
    """The latest settings, and what ``behind`` tells; where versions are enough, only of those of another one."""
    turn = asyncio.Semaphore(_AT_ONCE)

    async def of(engine: Engine) -> Settings:
        async with turn, answering(engine.namespace, within_s, "tell its settings"):
            return await _settings(engine, routes)

    known = await versions(engines, within_s)
    latest = settled.latest(known)
    if are_versions_enough and {known[latest]} == set(known):
        return Settings(str(known[latest]), {}, {}, {}, {}, {}), [[] for _ in engines]
    right = await of(engines[latest])
    now_ms = int(time.time() * 1000)

    async def found(index: int, engine: Engine, version: str | JQError) -> list[Behind] | JQError:
        if isinstance(version, JQError):
            return version
        if index == latest or (version == right.version and (latest or are_versions_enough)):
            return []
        its = await or_problem(of(engine))
        if isinstance(its, JQError):
            return its
        other = [Behind("version", "config", {})] if its.version != right.version else []
        return [*_differing(right, its, now_ms), *other]

    return right, await all_of(found(*one) for one in zip(range(len(engines)), engines, known, strict=True))


async def align(engine: Engine, right: Settings, routes: Mapping[str, str]) -> list[str]:
    """Bring a partition's settings in line with those of another, as a whole: what was brought. Until that is done they
    are of no version, so that nobody starts jobs by a part of them, nor brings something older meanwhile. Raises Stale
    where somebody else is at it, and what the partition refuses."""
    own, mark = await _unclaimed(engine), settled.unsettled()
    await engine.call("config", pack({"settings": [own, mark]}))
    found = list(_differing(right, await _settings(engine, routes), int(time.time() * 1000)))
    for one in found:
        spec = one.spec if one.operation == "hold" else {**one.spec, "settings": [mark, mark]}
        with suppress(NotFound):  # its time is over
            await engine.call(one.operation, pack(spec), *one.matcher)
    await engine.call("config", pack({"settings": [mark, right.version]}))
    return [*(one.what for one in found), *(["version"] if own != right.version else [])]


async def _unclaimed(engine: Engine) -> str:
    """The version from which a partition may be brought on. Raises Stale once somebody else has brought it further."""
    own = await version_of(engine)
    deadline = time.monotonic() + random.uniform(*_DEAD_S)
    while settled.is_unsettled(own) and time.monotonic() < deadline:
        await asyncio.sleep(_AGAIN_S)
        if (now := await version_of(engine)) != own:
            raise Stale(now)
    return own


async def front(system: Partitions) -> str:
    """The version of partition 0's settings, from which the next one comes. It is brought in line before if it has lost
    some. Raises Stale where somebody else does that just now."""
    first, *_ = engines = list((await system.live()).values())
    found = await versions(engines, _VERSION_S)
    if isinstance(found[0], JQError):
        raise found[0]
    if found[latest := settled.latest(found)] == found[0]:
        return found[0]
    await bring_to(system, first, engines[latest])
    return await version_of(first)


async def bring_to(system: Partitions, engine: Engine, right: Engine) -> None:
    """Bring a partition in line with another. Raises as ``align`` does."""
    _, record = await system.known()
    await align(engine, await _settings(right, record.routes), record.routes)


async def bring(
    system: Partitions, *, within_s: float | None = None, lasting_s: float = 0.0, are_versions_enough: bool = False
) -> dict[int, list[str] | JQError]:
    """Bring each live partition in line with the one that has the latest settings: by its number what was brought, or
    why that is not known. With ``lasting_s`` what differs now and so much later. Raises what the one with the latest
    does."""
    live = await system.live()
    _, record = await system.known()
    engines, routes, known = list(live.values()), record.routes, system.settled.version
    right, found = await _look(engines, routes, within_s, are_versions_enough=are_versions_enough)
    if lasting_s and any(isinstance(one, list) and one for one in found):
        await asyncio.sleep(lasting_s)
        before = [{(one.operation, one.what) for one in each} if isinstance(each, list) else set() for each in found]
        right, now = await _look(engines, routes, within_s, are_versions_enough=are_versions_enough)
        found = [
            each if isinstance(each, JQError) else [one for one in each if (one.operation, one.what) in lasts]
            for each, lasts in zip(now, before, strict=True)
        ]
    if not any(isinstance(one, JQError) for one in found) and known == system.settled.version != right.version:
        system.settled.version = right.version  # what was known is lost, or older

    async def brought(engine: Engine, found: list[Behind] | JQError) -> list[str] | JQError:
        if isinstance(found, JQError):
            return found
        return await or_problem(align(engine, right, routes)) if found else []

    answers = await asyncio.gather(*map(brought, engines, found))
    return dict(zip(live, answers, strict=True))


async def sync(system: Partitions) -> list[list[str]]:
    """Bring each live partition to the latest settings: for each what was brought. Safe to repeat, and at any time.
    Raises Unavailable, which names those that did not answer, once all others have them."""
    answers = await bring(system)
    for one in answers.values():
        if isinstance(one, JQError) and not isinstance(one, Unavailable | Stale):
            raise one
    live = await system.live()
    silent = [live[number].namespace for number, one in answers.items() if isinstance(one, Unavailable)]
    if silent:
        raise PartitionsAway(f"{', '.join(silent)} did not answer: repeat it; the others have the latest settings")
    return [["version"] if isinstance(one, JQError) else one for one in answers.values()]


# -- whoever carries mail does so now and then -------------------------------------------------------------


async def keep_in_line(system: Partitions) -> None:
    """Until it is cancelled: now and then, and soon after a partition that did not answer does so again, or has older
    settings, compare the settings of all, and bring what one misses. Ends where the user of Redis may not do so."""
    while True:
        try:
            most_s = max(CHECK_S, _EACH_S * len(system.record.partitions if system.record else ()))
            async with asyncio.timeout(most_s * random.uniform(0.75, 1.25)):
                await system.settled.wrong.wait()
            within_s = _STALE_S if system.settled.is_behind else _RETURN_S
            await asyncio.sleep(within_s * random.random())  # others have seen it, too
        except TimeoutError:
            pass
        is_behind, system.settled.is_behind = system.settled.is_behind, False
        system.settled.wrong.clear()
        try:
            await _bring(system, is_behind)
        except Forbidden as problem:
            log.info("settings are compared by others: %s", problem)
            return
        except JQError as problem:
            log.info("settings are not compared now: %s", problem)
        await asyncio.sleep(_STALE_S if is_behind else _PAUSE_S)


async def _bring(system: Partitions, is_behind: bool) -> None:
    """What differs now and a moment later: a call that was under way meanwhile is left alone. So are those that do not
    answer."""
    lasting_s = _STALE_S if is_behind else _LASTS_S
    answers = await bring(system, within_s=ANSWER_S, lasting_s=lasting_s, are_versions_enough=is_behind)
    for number, one in answers.items():
        if isinstance(one, Forbidden):
            raise one
        if one and not isinstance(one, JQError):
            log.warning("partition %d was behind, and has now: %s", number, ", ".join(one))
