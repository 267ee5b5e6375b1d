"""What `doctor` looks at in a namespace: a bounded number of calls, whatever its size."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgpack

from . import doctor_paths
from .engine import Engine
from .errors import NotFound
from .replies import Document

_HOUR_MS = 3_600_000
# Of queues, groups, … one looks at so many, those most likely to matter first.
MOST_QUEUES, MOST_GROUPS, MOST_BLOCKED, MOST_CONSTRAINTS, MOST_KEYS = 200, 20, 20, 100, 1000
MOST_SAMPLES = 20
RECENT = 100


class Source(Protocol):
    """Where facts come from: `EngineSource`, or `jqmaster.client.AsyncClient`, which has all of it."""

    async def queues(self) -> list[Document]: ...
    async def workers(self) -> list[Document]: ...
    async def constraints(self) -> list[Document]: ...
    async def usage(self, constraint_id: str) -> list[Document]: ...
    async def schedules(self) -> list[Document]: ...
    async def failures(self) -> list[Document]: ...
    async def series(self, by: str, **period: Any) -> list[Document]: ...
    async def explain(self, job_id: str) -> Document: ...
    async def get(self, job_id: str) -> Document: ...
    def jobs(self, **where: Any) -> Any: ...


class EngineSource:
    """By the scripts."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def queues(self) -> list[Document]:
        return await self._all(self._engine.queues)

    async def workers(self) -> list[Document]:
        return await self._all(self._engine.workers)

    async def constraints(self) -> list[Document]:
        return await self._all(self._engine.constraints)

    async def usage(self, constraint_id: str) -> list[Document]:
        return (await self._engine.usage(constraint_id, count=MOST_KEYS)).documents

    async def schedules(self) -> list[Document]:
        return await self._all(self._engine.schedules)

    async def failures(self) -> list[Document]:
        return await self._all(self._engine.failures)

    async def series(self, by: str, **period: Any) -> list[Document]:
        return await self._all(lambda **page: self._engine.series(by, **period, **page))

    async def explain(self, job_id: str) -> Document:
        return await self._engine.explain(job_id)

    async def get(self, job_id: str) -> Document:
        [document] = await self._engine.get(job_id)
        if document is None:
            raise NotFound(f"no such job: {job_id}")
        return document

    async def jobs(self, *, newest: bool = False, brief: bool = False, count: int = 100, **where: Any) -> Any:
        cursor = None
        while cursor != "":
            page = await self._engine.jobs(where, newest=newest, brief=brief, count=count, cursor=cursor)
            for document in page.documents:
                if "argument" in document:
                    document["argument"] = _opened(document["argument"])
                yield document
            cursor = page.cursor

    async def _all(self, ask: Any) -> list[Document]:
        found: list[Document] = []
        cursor = None
        while cursor != "":
            page = await ask(cursor=cursor, count=1000)
            found += page.documents
            cursor = page.cursor
        return found


def _opened(argument: bytes) -> Any:
    """The argument as a client shows it; None where that is not to be had."""
    try:
        return msgpack.unpackb(argument, strict_map_key=False, unicode_errors="surrogateescape")
    except (ValueError, TypeError, msgpack.UnpackException):
        return None


@dataclass
class Head:
    """The job of a queue that is next, since when it could run, and what `explain` says of it."""

    queue: Document
    since_ms: int
    explained: Document


@dataclass
class Facts:
    """`now_ms`: of the clock that all moments here are of, as near as it is known."""

    now_ms: int
    queues: list[Document] = field(default_factory=list)
    workers: list[Document] = field(default_factory=list)
    schedules: list[Document] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    due: list[Document] = field(default_factory=list)  # jobs that are the first due of their queue and state
    stuck: list[tuple[Document, Document]] = field(default_factory=list)  # blocked, and what it waits for
    keys: list[tuple[Document, Document]] = field(default_factory=list)  # constraint, and one of its keys
    keepers: list[tuple[str, Document]] = field(
        default_factory=list
    )  # strict constraint, job that keeps a key
    # constraint, its field, a path there that leads nowhere, in so many jobs
    nowhere: list[tuple[Document, str, str, int]] = field(default_factory=list)
    lapsed: dict[str, int] = field(default_factory=dict)  # by queue, in the last hour
    failing: list[tuple[Document, int, bool]] = field(
        default_factory=list
    )  # group, how many lately, and more


async def gather(source: Source, now_ms: int | None = None) -> Facts:
    """Raises what the source does. Jobs that vanish meanwhile are passed over."""
    facts = Facts(int(time.time() * 1000) if now_ms is None else now_ms)
    facts.queues = await source.queues()
    facts.workers = await source.workers()
    facts.schedules = await source.schedules()
    waiting = sorted(facts.queues, key=lambda queue: -queue["queued"])
    for queue in [queue for queue in waiting if queue["queued"]][:MOST_QUEUES]:
        await _add_head(facts, source, queue)
    for queue in facts.queues[:MOST_QUEUES]:
        for state in ("running", "scheduled", "retrying"):
            if queue[state]:
                facts.due += await _first(source, 1, queue=queue["name"], status=state)
        if queue["blocked"] and len(facts.stuck) < MOST_BLOCKED:
            await _add_stuck(facts, source, queue["name"])
    constraints = (await source.constraints())[:MOST_CONSTRAINTS]
    for constraint in constraints:
        if constraint["keys"] or constraint.get("opens_ms"):
            try:
                facts.keys += [(constraint, key) for key in await source.usage(constraint["id"])]
            except NotFound:
                continue
    await _add_nowhere(facts, source, constraints)
    await _add_keepers(facts, source)
    hour = facts.now_ms // 60_000 * 60_000 - _HOUR_MS
    for one in await source.series("minute", from_ms=hour):
        if one["lapsed"]:
            facts.lapsed[one["queue"]] = facts.lapsed.get(one["queue"], 0) + one["lapsed"]
    await _add_failing(facts, source)
    return facts


async def _first(source: Source, count: int, *, brief: bool = True, **where: Any) -> list[Document]:
    found = []
    async for job in source.jobs(brief=brief, count=count, **where):
        found.append(job)
        if len(found) == count:
            break
    return found


async def _add_head(facts: Facts, source: Source, queue: Document) -> None:
    for job in await _first(source, 1, queue=queue["name"], status="queued"):
        try:
            explained = await source.explain(job["id"])
        except NotFound:
            continue
        since_ms = max(job.get("ready_ms") or 0, job.get("started_ms") or 0, job["created_ms"])
        facts.heads.append(Head(queue, since_ms, explained))


async def _add_stuck(facts: Facts, source: Source, queue: str) -> None:
    for job in await _first(source, MOST_BLOCKED, queue=queue, status="blocked"):
        if job.get("if_failed") not in (None, "wait"):
            continue
        for job_id in _few(job.get("waits_for")):
            try:
                other = await source.get(job_id)
            except NotFound:
                continue
            if other["status"] in ("error", "cancelled"):
                facts.stuck.append((job, other))
                break


def _few(ids: Sequence[str] | None) -> Sequence[str]:
    return (ids or [])[:5]


async def _add_keepers(facts: Facts, source: Source) -> None:
    """Jobs that wait for a retry and keep a key under which others are held meanwhile."""
    strict = {one["id"] for one, key in facts.keys if one.get("order") and key.get("held")}
    if not strict:
        return
    for job in await _first(source, MOST_BLOCKED, status="retrying"):
        try:
            told = await source.explain(job["id"])
        except NotFound:
            continue
        facts.keepers += [(one["id"], job) for one in told.get("constraints") or [] if one["id"] in strict]


async def _add_nowhere(facts: Facts, source: Source, constraints: list[Document]) -> None:
    """A job's queue is named like it, unless somebody said otherwise: there one looks, not everywhere."""
    samples: dict[str | None, list[Document]] = {}
    for constraint in constraints:
        is_one_name, name = doctor_paths.text_of(constraint, "name")
        is_one_queue, queue = doctor_paths.text_of(constraint, "queue")
        if not (is_one_name and is_one_queue and any(doctor_paths.paths_of(constraint))):
            continue
        place = queue or name
        if place not in samples:
            if len(samples) == MOST_SAMPLES:
                continue
            where = {"queue": place} if place else {}
            samples[place] = await _first(source, doctor_paths.SAMPLED, brief=False, newest=True, **where)
        arguments = [job.get("argument") for job in samples[place] if name in (None, job["name"])]
        for field_name, path in doctor_paths.that_lead_nowhere(constraint, arguments):
            facts.nowhere.append((constraint, field_name, path, len(arguments)))


async def _add_failing(facts: Facts, source: Source) -> None:
    begin = facts.now_ms - _HOUR_MS
    groups = sorted(await source.failures(), key=lambda group: -group["last_ms"])
    for group in [group for group in groups if group["last_ms"] >= begin][:MOST_GROUPS]:
        recent = 0
        async for job in source.jobs(group=group["group"], newest=True, brief=True, count=RECENT):
            if (job.get("ended_ms") or 0) < begin or recent == RECENT:
                break
            recent += 1
        if recent:
            facts.failing.append((group, recent, recent == RECENT and group["count"] > RECENT))
