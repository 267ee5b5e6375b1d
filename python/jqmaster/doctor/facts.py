"""What `doctor` looks at in a namespace. Each part ends after a while, whatever the namespace's size."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import msgpack

from jqmaster.doctor import paths
from jqmaster.engine.engine import Operations
from jqmaster.engine.replies import Document
from jqmaster.errors import NotFound

_HOUR_MS = 3_600_000
# Of queues, groups, … one looks at so many, those most likely to matter first.
MOST_QUEUES, MOST_GROUPS, MOST_BLOCKED, MOST_CONSTRAINTS, MOST_KEYS = 200, 20, 20, 100, 1000
MOST_SAMPLES = 20
MOST_HEADS = 3  # of one queue, as one after the other starts
UNSERVED_MS = 10_000  # a queue that is served may have none at work for so long
RECENT = 100
PART_S = 1.0  # for each part
OVERRAN = "it ran for max_runtime"  # what the engine says then, of jobs whose lease a worker renewed to the end

Thing = TypeVar("Thing")
What = Literal["queues", "workers", "constraints", "schedules", "failures", "series"]


class Source:
    """Where facts come from."""

    def __init__(self, engine: Operations) -> None:
        self._engine = engine
        self.stats, self.explain = engine.stats, engine.explain

    def every(self, what: What, **period: Any) -> AsyncIterator[Document]:
        """All there is, page by page."""
        return self._pages(getattr(self._engine, what), **period)

    def keys(self, constraint_id: str) -> AsyncIterator[Document]:
        """The keys of a constraint that are in use."""
        return self._pages(self._engine.usage, constraint_id)

    async def get(self, job_id: str) -> Document | None:
        [document] = await self._engine.get([job_id])
        return document

    async def jobs(self, *, newest: bool = False, brief: bool = False, count: int = 100, **where: Any) -> Any:
        async for document in self._pages(self._engine.jobs, where, newest=newest, brief=brief, count=count):
            if "argument" in document:
                document["argument"] = _opened(document["argument"])
            yield document

    async def _pages(self, ask: Any, *given: Any, count: int = 1000, **options: Any) -> AsyncIterator[Document]:
        cursor = None
        while cursor != "":
            page = await ask(*given, **options, cursor=cursor, count=count)
            for document in page.documents:
                yield document
            cursor = page.cursor


def _opened(argument: bytes) -> Any:
    """The argument as a client shows it; None where that is not to be had."""
    try:
        return msgpack.unpackb(argument, strict_map_key=False, unicode_errors="surrogateescape")
    except (ValueError, TypeError, msgpack.UnpackException):
        return None


@dataclass
class Head:
    """The job of a queue that is next, since when it could run, and what `explain` says of it. `was_active`: somebody
    works there, though neither registered nor seen to wait or to run: between two jobs a worker that pulls is none
    of these."""

    queue: Document
    since_ms: int
    explained: Document
    was_active: bool = False

    @property
    def is_served(self) -> bool:
        return self.was_active or any(self.explained.get(told) for told in ("workers", "waiting", "running", "unknown"))


@dataclass
class Facts:
    """`now_ms`: of the clock that all moments here are of, as near as it is known."""

    now_ms: int
    part_s: float = PART_S
    left_out: dict[str, int] = field(default_factory=dict)  # what took too long, and how many were looked at
    queues: list[Document] = field(default_factory=list)
    workers: list[Document] = field(default_factory=list)
    schedules: list[Document] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    due: list[Document] = field(default_factory=list)  # jobs that are the first due of their queue and state
    stuck: list[tuple[Document, Document]] = field(default_factory=list)  # blocked, and what it waits for
    keys: list[tuple[Document, Document]] = field(default_factory=list)  # constraint, and one of its keys
    keepers: list[tuple[str, Document]] = field(default_factory=list)  # strict constraint, job that keeps a key
    # constraint, its field, a path there that leads nowhere, in so many jobs
    nowhere: list[tuple[Document, str, str, int]] = field(default_factory=list)
    lapsed: dict[str, int] = field(default_factory=dict)  # by queue, in the last hour
    overran: dict[str, int] = field(default_factory=dict)  # of these, jobs that last ran for their max_runtime
    failing: list[tuple[Document, int, bool]] = field(default_factory=list)  # group, how many lately, and more


def _timed(facts: Facts, what: str, things: Iterable[Thing]) -> Iterator[Thing]:
    """As many as one part has time for, the first always; that some are left is noted in `facts`."""
    ends = time.monotonic() + facts.part_s
    for done, thing in enumerate(things):
        if done and time.monotonic() >= ends:
            facts.left_out[what] = done
            return
        yield thing


async def _there(asked: Awaitable[Document]) -> Document | None:
    """None for what has vanished meanwhile."""
    try:
        return await asked
    except NotFound:
        return None


async def gather(source: Source, now_ms: int | None = None, *, part_s: float = PART_S) -> Facts:
    """Raises what the source does. Jobs that vanish meanwhile are passed over."""
    facts = Facts(int(time.time() * 1000) if now_ms is None else now_ms, part_s)
    facts.queues = await _every(facts, source, "queues")
    facts.workers = await _every(facts, source, "workers")
    facts.schedules = await _every(facts, source, "schedules")
    waiting = sorted(facts.queues, key=lambda queue: -queue["queued"])
    for queue in _timed(facts, "heads", [queue for queue in waiting if queue["queued"]][:MOST_QUEUES]):
        await _add_head(facts, source, queue)
    await _add_due(facts, source)
    constraints = (await _every(facts, source, "constraints"))[:MOST_CONSTRAINTS]
    facts.keys = await _in_time(facts, "keys", _keys(source, constraints))
    await _add_nowhere(facts, source, constraints)
    await _add_keepers(facts, source)
    await _add_lapsed(facts, source)
    await _add_failing(facts, source)
    return facts


async def _every(facts: Facts, source: Source, what: What, **period: Any) -> list[Document]:
    return await _in_time(facts, what, source.every(what, **period))


async def _in_time(facts: Facts, what: str, things: AsyncIterator[Thing]) -> list[Thing]:
    """As `_timed`."""
    found: list[Thing] = []
    ends = time.monotonic() + facts.part_s
    async for thing in things:
        if found and time.monotonic() >= ends:
            facts.left_out[what] = len(found)
            break
        found.append(thing)
    return found


async def _add_due(facts: Facts, source: Source) -> None:
    for queue in _timed(facts, "due", facts.queues[:MOST_QUEUES]):
        for state in ("running", "scheduled", "retrying"):
            if queue[state]:
                facts.due += await _first(source, 1, queue=queue["name"], status=state)
        if queue["blocked"] and len(facts.stuck) < MOST_BLOCKED:
            await _add_stuck(facts, source, queue["name"])


async def _keys(source: Source, constraints: list[Document]) -> AsyncIterator[tuple[Document, Document]]:
    for constraint in constraints:
        if constraint["keys"] or constraint.get("opens_ms"):
            keys = 0
            with contextlib.suppress(NotFound):
                async for key in source.keys(constraint["id"]):
                    yield constraint, key
                    keys += 1
                    if keys == MOST_KEYS:
                        break


async def _add_lapsed(facts: Facts, source: Source) -> None:
    """Where none lapsed at all there is no need to look queue by queue."""
    hour = facts.now_ms // 60_000 * 60_000 - _HOUR_MS
    if not any(minute["lapsed"] for minute in await source.stats("minute", from_ms=hour)):
        return
    for one in await _every(facts, source, "series", by="minute", from_ms=hour):
        if one["lapsed"]:
            facts.lapsed[one["queue"]] = facts.lapsed.get(one["queue"], 0) + one["lapsed"]
    await _add_overran(facts, source, hour)


async def _add_overran(facts: Facts, source: Source, since_ms: int) -> None:
    done = 0
    try:
        async with asyncio.timeout(facts.part_s):
            for queue in facts.lapsed:
                overran = 0
                async for job in source.jobs(queue=queue, message=OVERRAN, brief=True):
                    overran += (job.get("ended_ms") or job.get("started_ms") or 0) >= since_ms
                if overran:
                    facts.overran[queue] = min(overran, facts.lapsed[queue])
                done += 1
    except TimeoutError:
        facts.left_out["overran"] = done


async def _first(source: Source, count: int, *, brief: bool = True, **where: Any) -> list[Document]:
    found = []
    async for job in source.jobs(brief=brief, count=count, **where):
        found.append(job)
        if len(found) == count:
            break
    return found


async def _add_head(facts: Facts, source: Source, queue: Document) -> None:
    """One that starts while it is looked at says nothing of the queue: then the next is looked at."""
    for _ in range(MOST_HEADS):
        for job in await _first(source, 1, queue=queue["name"], status="queued"):
            explained = await _there(source.explain(job["id"]))
            if explained is not None and explained["status"] == "queued":
                since_ms = max(job.get("ready_ms") or 0, job.get("started_ms") or 0, job["created_ms"])
                head = Head(queue, since_ms, explained)
                if not head.is_served and facts.now_ms - since_ms >= UNSERVED_MS:
                    head.was_active = await _was_active(facts, source, queue["name"])
                facts.heads.append(head)
                return


async def _was_active(facts: Facts, source: Source, queue: str) -> bool:
    """Whether an attempt ended there just now. Jobs that expire fail, too, and say nothing of workers."""
    begin = facts.now_ms - UNSERVED_MS
    for minute in await source.stats("minute", queue=queue, from_ms=begin // 60_000 * 60_000):
        if minute["done"] or minute["failed"] or minute["released"]:
            return True
    failed = await _first(source, 1, queue=queue, status="error", newest=True)
    return any(job.get("attempt") and (job.get("ended_ms") or 0) >= begin for job in failed)


async def _add_stuck(facts: Facts, source: Source, queue: str) -> None:
    for job in await _first(source, MOST_BLOCKED, queue=queue, status="blocked"):
        if job.get("if_failed") not in (None, "wait"):
            continue
        for job_id in (job.get("waits_for") or [])[:5]:
            other = await source.get(job_id)
            if other and other["status"] in ("error", "cancelled"):
                facts.stuck.append((job, other))
                break


async def _add_keepers(facts: Facts, source: Source) -> None:
    """Jobs that wait for a retry and keep a key under which others are held meanwhile."""
    strict = {one["id"] for one, key in facts.keys if one.get("order") and key.get("held")}
    if not strict:
        return
    for job in await _first(source, MOST_BLOCKED, status="retrying"):
        told = await _there(source.explain(job["id"])) or {}
        facts.keepers += [(one["id"], job) for one in told.get("constraints") or [] if one["id"] in strict]


async def _add_nowhere(facts: Facts, source: Source, constraints: list[Document]) -> None:
    """A job's queue is named like it, unless somebody said otherwise: there one looks, not everywhere."""
    samples: dict[str | None, list[Document]] = {}
    ends = time.monotonic() + facts.part_s
    for constraint in constraints:
        is_one_name, name = paths.text_of(constraint, "name")
        is_one_queue, queue = paths.text_of(constraint, "queue")
        if not (is_one_name and is_one_queue and any(paths.paths_of(constraint))):
            continue
        place = queue or name
        if place not in samples:
            if len(samples) == MOST_SAMPLES:
                continue
            if samples and time.monotonic() >= ends:
                facts.left_out["samples"] = len(samples)
                continue
            where = {"queue": place} if place else {}
            samples[place] = await _first(source, paths.SAMPLED, brief=False, newest=True, **where)
        arguments = [job.get("argument") for job in samples[place] if name in (None, job["name"])]
        for field_name, path in paths.that_lead_nowhere(constraint, arguments):
            facts.nowhere.append((constraint, field_name, path, len(arguments)))


async def _add_failing(facts: Facts, source: Source) -> None:
    begin = facts.now_ms - _HOUR_MS
    found = await _every(facts, source, "failures")
    groups = sorted(found, key=lambda group: -group["last_ms"])
    recently = [group for group in groups if group["last_ms"] >= begin]
    for group in _timed(facts, "groups", recently[:MOST_GROUPS]):
        recent = 0
        async for job in source.jobs(group=group["group"], newest=True, brief=True, count=RECENT):
            if (job.get("ended_ms") or 0) < begin or recent == RECENT:
                break
            recent += 1
        if recent:
            facts.failing.append((group, recent, recent == RECENT and group["count"] > RECENT))
