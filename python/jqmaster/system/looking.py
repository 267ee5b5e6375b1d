"""How the partitions of a system are found: which answer, and what each has of the record, of settings and of jobs.
Each gets at most so many calls, all of them at once; those that do not answer in time are told as such."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from redis.exceptions import RedisError

from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document
from jqmaster.errors import JQError, PartitionsAway, Unavailable, from_redis
from jqmaster.system import bringing
from jqmaster.system.calls import ANSWER_S, answering, owners_of, read_at
from jqmaster.system.partitions import Partitions
from jqmaster.system.record import OVER, Partition, System

_PAGES = 10  # of queues, that are added up of each partition: some hundred each, as far as a call's budget goes
_AT_ONCE = 16
_MINUTE_MS = 60_000
_FAILED = ("failed", "lapsed", "error")


@dataclass(frozen=True)
class Seen:
    """A partition as it was found. ``copy``: the generation of its copy of the record, None without one. ``trouble``:
    why more is not known, "" when all is. ``jobs``: as `document` tells them, nothing where they are not known."""

    number: int
    partition: Partition
    answers: bool = False
    copy: int | None = None
    trouble: str = ""
    jobs: Document = field(default_factory=dict)

    def problem(self, generation: int) -> str:
        """What is wrong with it, beside a record of this generation; "" when all is well."""
        if self.trouble or self.partition.state in OVER:
            return self.trouble
        if self.copy is None:
            return "no copy of the record: repeat `system create`"
        if self.copy == generation:
            return ""
        return f"its copy is of generation {self.copy}, which is {'later' if self.copy > generation else 'earlier'}"


@dataclass(frozen=True)
class Look:
    """The record, the node of each slot, and the partitions in order, as they were found at ``now_ms``, and their jobs
    at ``jobs_ms``."""

    system: System
    owners: Sequence[str]
    partitions: Sequence[Seen]
    now_ms: int
    jobs_ms: int
    took_s: float  # to count jobs

    @property
    def missing(self) -> list[int]:
        """The numbers of the partitions that did not answer."""
        return [one.number for one in self.partitions if not one.answers and one.partition.state not in OVER]

    def document(self, behind: Mapping[int, Sequence[str]]) -> Document:
        """As `GET /partitions` and `jqmaster system` tell it; ``behind`` as of `compare`."""
        generation = self.system.generation
        shares = Counter(self.system.buckets)
        partitions = [
            {
                "number": one.number, "namespace": one.partition.namespace, "state": one.partition.state,
                "node": self.owners[one.partition.slot] or None, "slot": one.partition.slot,
                "buckets": shares[one.number], "answers": one.answers, "generation": one.copy,
                "problem": one.problem(generation) or None, "behind": behind.get(one.number) if one.answers else None,
                **one.jobs,
            }
            for one in self.partitions
        ]  # fmt: skip
        return {
            "system": self.system.root, "generation": generation, "now_ms": self.now_ms, "jobs_ms": self.jobs_ms,
            "partitions": partitions, "missing": self.missing, "routes": dict(self.system.routes),
        }  # fmt: skip


async def look(system: Partitions, *, within_s: float = ANSWER_S, known: Look | None = None) -> Look:
    """All partitions as they are now; each has ``within_s`` to answer. With a ``known`` look jobs are told as they were
    then. Raises what reading the record does, and Unavailable where none answers."""
    engines, record = await system.known()
    now_ms = int(time.time() * 1000)
    found = await asyncio.gather(
        *(_seen(number, one, engines[number], record, within_s) for number, one in enumerate(record.partitions))
    )
    for one in found:
        if one.partition.state not in OVER:
            system.heard(one.number, answers=one.answers)
    there = [engines[one.number] for one in found if one.answers]
    if not there:
        raise PartitionsAway(f"no partition of {record.root} answers")
    jobs_ms, asked = now_ms, found
    if known is not None:
        jobs_ms, jobs = known.jobs_ms, {one.number: one.jobs for one in known.partitions}
        asked = [replace(one, jobs=jobs.get(one.number, {})) if one.answers else one for one in found]
    owners = await _owners(there[0], within_s)
    turn, began = asyncio.Semaphore(_AT_ONCE), time.monotonic()
    told = await asyncio.gather(*(_counted(one, engines[one.number], now_ms, within_s, turn) for one in asked))
    return Look(record, owners, told, now_ms, jobs_ms, time.monotonic() - began)


async def _owners(engine: Engine, within_s: float) -> Sequence[str]:
    async with answering(engine.namespace, within_s):
        return await owners_of(engine)


async def _seen(number: int, partition: Partition, engine: Engine, record: System, within_s: float) -> Seen:
    """Whether it answers, and with what copy of the record."""
    if partition.state in OVER:
        return Seen(number, partition)
    try:
        async with asyncio.timeout(within_s):
            copy = await read_at(engine, known=record)
    except TimeoutError:
        return Seen(number, partition, trouble=f"no answer within {within_s:g} s")
    except RedisError as problem:
        return Seen(number, partition, trouble=f"no answer: {from_redis(problem).message}")
    except JQError as problem:
        return Seen(number, partition, answers=True, trouble=str(problem))
    return Seen(number, partition, answers=True, copy=None if copy is None else copy.generation)


async def _counted(one: Seen, engine: Engine, now_ms: int, within_s: float, turn: asyncio.Semaphore) -> Seen:
    """With its jobs, if it has none yet. Some at a time: what the caller itself is slow with is no fault of theirs."""
    # One that has vanished would be set up by being asked.
    if one.copy is None or one.jobs or one.trouble:
        return one
    async with turn:
        try:
            async with asyncio.timeout(within_s):
                return replace(one, jobs=await _jobs(engine, now_ms))
        except (TimeoutError, Unavailable):
            return one  # which answered just now, so that the next look tells more
        except JQError as problem:
            return replace(one, trouble=str(problem))


async def _jobs(engine: Engine, now_ms: int) -> Document:
    """``queued`` and ``running``, of the first thousand queues (``more``: there are others); ``oldest_ready_ms``, of
    those that are not paused, where a job waits; ``rates``: per second, over the last whole minute and this one."""
    from_ms = (now_ms // _MINUTE_MS - 1) * _MINUTE_MS
    minutes = await engine.stats("minute", from_ms=from_ms, brief=True)
    queues: list[Document] = []
    cursor = ""
    for _ in range(_PAGES):
        page = await engine.queues(cursor=cursor, count=1000)
        queues += page.documents
        cursor = page.cursor
        if not cursor:
            break
    oldest = [one["oldest_ready_ms"] for one in queues if one.get("oldest_ready_ms") and not one["paused"]]

    def rate(*kinds: str) -> float:
        count: int = sum(one[kind] for one in minutes for kind in kinds)
        return round(count * 1000 / (now_ms - from_ms), 3)

    found: dict[str, Any] = {name: sum(one[name] for one in queues) for name in ("queued", "running")}
    found |= {"oldest_ready_ms": min(oldest)} if oldest else {}
    rates = {"enqueued": rate("enqueued"), "done": rate("done"), "failed": rate(*_FAILED)}
    return {**found, "more": bool(cursor), "rates": rates}


async def compare(system: Partitions, found: Look, *, within_s: float) -> dict[int, list[str]]:
    """Which settings a partition has otherwise than the latest, by its number; without those of which that is not
    known, and of none where partition 0 does not tell. Each has ``within_s``."""
    there = [one.number for one in found.partitions if one.answers and one.copy is not None]
    if 0 not in there:
        return {}
    engines = await system.partitions()
    try:
        told = await bringing.behind([engines[number] for number in there], found.system.routes, within_s=within_s)
    except JQError:
        return {}
    pairs = zip(there, told, strict=True)
    return {number: [each.what for each in one] for number, one in pairs if not isinstance(one, JQError)}
