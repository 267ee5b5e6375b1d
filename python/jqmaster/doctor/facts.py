"""What `doctor` looks at in a namespace. Each part ends after a while, whatever the namespace's size."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from jqmaster.engine.engine import Operations
from jqmaster.engine.replies import Document
from jqmaster.errors import NotFound

HOUR_MS = 3_600_000
# Of queues, groups, … one looks at so many, those most likely to matter first.
MOST_QUEUES, MOST_GROUPS, MOST_BLOCKED, MOST_CONSTRAINTS, MOST_KEYS = 200, 20, 20, 100, 100
RECENT = 100
MINUTES = 5  # in which a queue may have done something
ENOUGH = 3  # jobs: of fewer one cannot tell that a path leads nowhere
PART_S = 1.0  # for each part

Thing = TypeVar("Thing")


class Source:
    """Where facts come from."""

    def __init__(self, engine: Operations) -> None:
        self.engine = engine

    async def every(self, what: str, *given: Any, count: int = 1000, **options: Any) -> AsyncIterator[Document]:
        """All documents of an operation that gives pages."""
        cursor: str | None = None
        while cursor != "":
            page = await getattr(self.engine, what)(*given, **options, cursor=cursor, count=count)
            for document in page.documents:
                yield document
            cursor = page.cursor

    async def first(self, count: int, *, newest: bool = False, **where: Any) -> list[Document]:
        """So many jobs that fit, without their values."""
        found: list[Document] = []
        async for job in self.every("jobs", where, newest=newest, brief=True, count=count):
            found.append(job)
            if len(found) == count:
                break
        return found


@dataclass
class Facts:
    """`now_ms`: of the clock that all moments here are of, as near as it is known."""

    now_ms: int
    part_s: float = PART_S
    left_out: dict[str, int] = field(default_factory=dict)  # what took too long, and how many were looked at
    queues: list[Document] = field(default_factory=list)  # with how they did lately
    workers: list[Document] = field(default_factory=list)
    schedules: list[Document] = field(default_factory=list)
    due: list[Document] = field(default_factory=list)  # jobs that are the first due of their queue and state
    stuck: list[tuple[Document, Document]] = field(default_factory=list)  # blocked, and what it waits for
    keys: list[tuple[Document, Document]] = field(default_factory=list)  # constraint, and itself or one of its keys
    keepers: list[tuple[str, Document]] = field(default_factory=list)  # strict constraint, job that keeps a key
    # constraint, its field, a path there that leads nowhere, in so many jobs
    nowhere: list[tuple[Document, str, str, int]] = field(default_factory=list)
    lapsed: dict[str, int] = field(default_factory=dict)  # by queue, in the last hour
    failing: list[tuple[Document, int, bool]] = field(default_factory=list)  # group, how many lately, and more

    async def take(self, what: str, things: AsyncIterator[Thing], most: int | None = None) -> list[Thing]:
        """As many as one part has time for, the first always; that some are left is noted."""
        found: list[Thing] = []
        ends = time.monotonic() + self.part_s
        async for thing in things:
            if found and time.monotonic() >= ends:
                self.left_out[what] = len(found)
                break
            found.append(thing)
            if len(found) == most:
                break
        return found


async def gather(source: Source, now_ms: int | None = None, *, part_s: float = PART_S) -> Facts:
    """Raises what the source does. Jobs that vanish meanwhile are passed over."""
    facts = Facts(int(time.time() * 1000) if now_ms is None else now_ms, part_s)
    facts.queues = await facts.take("queues", source.every("queues", minutes=MINUTES))
    facts.workers = await facts.take("workers", source.every("workers"))
    facts.schedules = await facts.take("schedules", source.every("schedules"))
    for due, stuck in await facts.take("due", _of_queues(source, facts.queues[:MOST_QUEUES])):
        facts.due += due
        facts.stuck += stuck
    constraints = await facts.take("constraints", source.every("constraints", busiest=MOST_KEYS), MOST_CONSTRAINTS)
    facts.keys = [(one, key) for one in constraints for key in one.get("busiest") or [one]]
    facts.nowhere = [one for some in await facts.take("paths", _nowhere(source, constraints)) for one in some]
    facts.keepers = await facts.take("keepers", _keepers(source, facts.keys))
    hour = facts.now_ms // 60_000 * 60_000 - HOUR_MS
    # Where none lapsed at all there is no need to look queue by queue.
    if any(minute["lapsed"] for minute in await source.engine.stats("minute", from_ms=hour)):
        for one in await facts.take("series", source.every("stats", "minute", from_ms=hour, series=True)):
            if one["lapsed"]:
                facts.lapsed[one["queue"]] = facts.lapsed.get(one["queue"], 0) + one["lapsed"]
    groups = sorted(await facts.take("failures", source.every("failures")), key=lambda group: -group["last_ms"])
    facts.failing = await facts.take("groups", _failing(source, groups, facts.now_ms - HOUR_MS))
    return facts


async def _of_queues(source: Source, queues: list[Document]) -> AsyncIterator[tuple[list[Document], list[Any]]]:
    left = MOST_BLOCKED
    for queue in queues:
        due, stuck = [], []
        for state in ("running", "scheduled", "retrying"):
            if queue[state]:
                due += await source.first(1, queue=queue["name"], status=state)
        if queue["blocked"] and left > 0:
            stuck = [pair async for pair in _stuck(source, queue["name"])]
            left -= len(stuck)
        yield due, stuck


async def _stuck(source: Source, queue: str) -> AsyncIterator[tuple[Document, Document]]:
    for job in await source.first(MOST_BLOCKED, queue=queue, status="blocked"):
        if job.get("if_failed") in (None, "wait"):
            waits_for = (job.get("waits_for") or [])[:5]
            for other in await source.engine.get(waits_for) if waits_for else ():
                if other and other["status"] in ("error", "cancelled"):
                    yield job, other
                    break


async def _keepers(source: Source, keys: list[tuple[Document, Document]]) -> AsyncIterator[tuple[str, Document]]:
    """Jobs that wait for a retry and keep a key under which others are held meanwhile."""
    strict = {one["id"] for one, key in keys if one.get("order") and key.get("held")}
    for job in await source.first(MOST_BLOCKED, status="retrying") if strict else ():
        with contextlib.suppress(NotFound):
            for one in (await source.engine.explain(job["id"])).get("constraints") or []:
                if one["id"] in strict:
                    yield one["id"], job


async def _nowhere(source: Source, constraints: list[Document]) -> AsyncIterator[list[tuple[Document, str, str, int]]]:
    """Paths that no job has a value at: most likely they are misspelt."""
    for constraint in constraints:
        is_one_name, name = _text_of(constraint, "name")
        is_one_queue, queue = _text_of(constraint, "queue")
        paths = [("match", path) for path, condition in constraint["match"].items() if needs_value(path, condition)]
        paths += [("cost", constraint["cost"])] if isinstance(constraint.get("cost"), str) else []
        by = constraint.get("by") or []
        paths += [("by", path) for path in ([by] if isinstance(by, str) else by) if path.startswith("argument.")]
        if is_one_name and is_one_queue and paths:
            # A job's queue is named like it, unless somebody said otherwise: there one looks, not everywhere.
            where: dict[str, Any] = {
                key: value for key, value in (("name", name), ("queue", queue or name)) if value is not None
            }
            jobs = len(await source.first(RECENT, newest=True, **where))
            found = []
            for place, path in paths if jobs >= ENOUGH else ():
                if not await source.first(1, **where, match={path: {"exists": True}}):
                    found.append((constraint, place, path, jobs))
            yield found


def _text_of(constraint: Document, subject: str) -> tuple[bool, str | None]:
    """Whether one text, or none, is all that a constraint wants of `name` or `queue`; and that text."""
    wanted = constraint["match"].get(subject)
    if isinstance(wanted, dict) and wanted.keys() == {"eq"}:
        wanted = wanted["eq"]
    return wanted is None or (isinstance(wanted, str) and "*" not in wanted), wanted


def needs_value(path: str, condition: Any) -> bool:
    """Whether a job that has nothing at a path does not meet a condition there."""
    if not path.startswith("argument.") or not isinstance(condition, dict):
        return path.startswith("argument.")
    return not all(one == "ne" or (one, operand) == ("exists", False) for one, operand in condition.items())


async def _failing(source: Source, groups: list[Document], since_ms: int) -> AsyncIterator[tuple[Document, int, bool]]:
    for group in islice(groups, MOST_GROUPS):
        if group["last_ms"] >= since_ms:
            jobs = await source.first(RECENT, newest=True, group=group["group"])
            recent = sum((job.get("ended_ms") or 0) >= since_ms for job in jobs)
            if recent:
                yield group, recent, recent == RECENT and group["count"] > RECENT
