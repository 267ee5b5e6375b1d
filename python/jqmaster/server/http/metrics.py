"""`GET /metrics`, for Prometheus: what this server counted, and how the namespace stands by the operations that there
are. A scrape makes a bounded number of calls, whatever is stored."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import redis.exceptions
from prometheus_client import PLATFORM_COLLECTOR, PROCESS_COLLECTOR, core, generate_latest

from jqmaster import __version__
from jqmaster.engine import alerts
from jqmaster.engine.replies import Document
from jqmaster.errors import JQError
from jqmaster.server.http.calls import Own
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request

log = logging.getLogger("jqmaster.metrics")

TEXT = "text/plain; version=0.0.4; charset=utf-8"
MOST_QUEUES = 5000
MOST_SHOWN = 100  # of them, one by one
_AT_ONCE = 25  # which keep Redis busy for 3 ms
OTHERS = "*"  # no queue has this name
_MOST_LISTED = 200  # constraints, schedules
_MOST = 1000  # workers, attempts that run
_MOST_MARKS = 20
_MOST_S = 5.0  # half of what Prometheus waits
_DAY_MS = 86_400_000

_STATES = ("queued", "scheduled", "blocked", "running", "retrying", "done", "error", "cancelled", "skipped")
_WORKER_STATES = ("ready", "full", "busy", "unreachable", "pulling", "quiet")
_EVENTS = ("enqueued", "done", "failed", "lapsed", "error", "cancelled", "released", "moved", "skipped")
# Upper ends of the steps of waiting and running.
_ENDS_MS = (
    1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    1_800_000, 3_600_000, 21_600_000, 86_400_000,
)  # fmt: skip
_ENDS = (*(repr(end_ms / 1000) for end_ms in _ENDS_MS), "+Inf")
_GAUGE, _COUNTER, _HISTOGRAM = core.GaugeMetricFamily, core.CounterMetricFamily, core.HistogramMetricFamily
_FAMILIES: dict[str, tuple[Any, ...]] = {
    "up": (_GAUGE, "Whether Redis could be asked; if not, the namespace's figures are missing."),
    "queues": (_GAUGE, "How many queues there are."),
    "queue_jobs": (_GAUGE, "Jobs by state; ended ones that are kept. Queue * is all the others.", "queue", "state"),
    "queue_oldest_ready_timestamp_seconds": (_GAUGE, "Since when its oldest ready job waits, paused or not.", "queue"),
    "queue_paused": (_GAUGE, "Whether the queue starts no jobs.", "queue"),
    "constraint_running": (_GAUGE, "Jobs that run under the constraint, all keys together.", "constraint"),
    "constraint_limit": (_GAUGE, "How many may run at once, of each key.", "constraint"),
    "constraint_held": (_GAUGE, "Jobs that it holds, all keys together, as far as they were looked at.", "constraint"),
    "schedule_next_timestamp_seconds": (_GAUGE, "The next moment, if there is one.", "schedule"),
    "schedule_paused": (_GAUGE, "Whether it makes no jobs.", "schedule"),
    "mark_timestamp_seconds": (_GAUGE, "When it was made, of the last marks, such as deploys.", "mark"),
    "workers": (_GAUGE, "Workers that are registered, or pull and announce themselves, by state.", "state"),
    "worker_slots": (_GAUGE, "Jobs that workers may hold."),
    "worker_slots_taken": (_GAUGE, "Those of them that are."),
    "longest_running_seconds": (_GAUGE, "How long its longest attempt has run, of a thousand that run.", "name"),
    "alerts": (_GAUGE, "What is wrong now, as the operation `alerts` has it.", "kind", "level"),
    # What happened begins anew each day. For Prometheus that is as after a restart: rates stay right.
    "jobs": (_COUNTER, "What happened in the namespace, whoever did it, since midnight UTC.", "queue", "event"),
    "namespace_jobs": (_COUNTER, "What happened since midnight UTC, in all queues together.", "event"),
    "redis_commands": (_COUNTER, "Commands Redis carried out.", "command"),
    "redis_command_seconds": (_COUNTER, "Time Redis spent on them; the engine is fcall, evalsha.", "command"),
    "job_wait_seconds": (_HISTOGRAM, "From when a job was ready to its first start.", "queue"),
    "job_run_seconds": (_HISTOGRAM, "How long attempts took that were done.", "queue"),
}  # fmt: skip
"""What each tells, and its labels."""


class Figures:
    """Families of the table above. What is in seconds is given in milliseconds."""

    def __init__(self) -> None:
        self.families = {
            name: kind(f"jq_{name}", text, labels=labels) for name, (kind, text, *labels) in _FAMILIES.items()
        }

    def add(self, name: str, value: float | None, *labels: str) -> None:
        """One sample; None where there is no such figure."""
        if value is not None:
            self.families[name].add_metric(labels, value / 1000 if name.endswith("_seconds") else value)

    async def read(self, master: Master) -> None:
        """All of the namespace."""
        engine = master.engine
        now_ms = 1000 * (await engine.redis.time())[0]
        for day in await engine.stats("day", from_ms=now_ms // _DAY_MS * _DAY_MS):
            for event in _EVENTS:
                self.add("namespace_jobs", day[event], event)
        queues = await _first(MOST_QUEUES, engine.each("queues", count=200))
        largest = heapq.nlargest(MOST_SHOWN, queues, key=lambda queue: (sum(_counts(queue)), queue["name"]))
        shown: list[Document] = []
        for at in range(0, len(largest), _AT_ONCE):
            names = [queue["name"] for queue in largest[at : at + _AT_ONCE]]
            shown += (await engine.queues(names, today=True)).documents
        self._read_queues(queues, shown)
        for constraint in await _first(_MOST_LISTED, engine.each("constraints", count=_MOST_LISTED, busiest=0)):
            for name, field in (("running", "running"), ("limit", "concurrency"), ("held", "held")):
                self.add(f"constraint_{name}", constraint.get(field), constraint["id"])
        for schedule in await _first(_MOST_LISTED, engine.each("schedules", count=_MOST_LISTED)):
            self.add("schedule_next_timestamp_seconds", schedule.get("next_ms"), schedule["id"])
            self.add("schedule_paused", schedule.get("paused", False), schedule["id"])
        marks = (await engine.marks(count=_MOST_MARKS)).documents
        for text, time_ms in {mark["text"]: mark["time_ms"] for mark in reversed(marks)}.items():
            self.add("mark_timestamp_seconds", time_ms, text)
        running = (await engine.jobs({"status": "running"}, brief=True, count=_MOST)).documents
        self._read_workers((await engine.workers(count=_MOST)).documents, running)
        longest: dict[str, float] = {}
        for job in running:
            longest[job["name"]] = max(longest.get(job["name"], 0), now_ms - (job.get("started_ms") or now_ms))
        for name, since_ms in longest.items():
            self.add("longest_running_seconds", since_ms, name)
        every = await alerts.every(engine)
        for labels, count in Counter((alert["kind"], alert["level"]) for alert in every).items():
            self.add("alerts", count, *labels)
        with contextlib.suppress(redis.exceptions.ResponseError):  # this user may not ask
            for command, values in (await engine.redis.info("commandstats")).items():
                if isinstance(values, dict):
                    self.add("redis_commands", values["calls"], command.removeprefix("cmdstat_"))
                    self.add("redis_command_seconds", values["usec"] / 1000, command.removeprefix("cmdstat_"))

    def _read_queues(self, queues: Sequence[Document], shown: Sequence[Document]) -> None:
        self.add("queues", len(queues))
        others = [sum(counts) for counts in zip(*map(_counts, queues), strict=True)]
        for queue in shown:
            name, today, counts = queue["name"], queue["today"], _counts(queue)
            others = [other - count for other, count in zip(others, counts, strict=True)]
            for state, count in zip(_STATES, counts, strict=True):
                self.add("queue_jobs", count, name, state)
            self.add("queue_oldest_ready_timestamp_seconds", queue.get("oldest_ready_ms"), name)
            self.add("queue_paused", queue["paused"], name)
            for event in _EVENTS:
                self.add("jobs", today[event], name, event)
            for kind in ("wait", "run"):
                self._read_times(f"job_{kind}_seconds", name, today[kind])
        for state, count in zip(_STATES, others, strict=True) if len(queues) > len(shown) else ():
            self.add("queue_jobs", count, OTHERS, state)

    def _read_times(self, name: str, queue: str, times: Document) -> None:
        # Ends of steps with the count up to each. The engine's own, a fifth apart, go into the first that has room for
        # all of them.
        counts = [0.0] * len(_ENDS)
        for end_ms, count in times["histogram"]:
            counts[bisect_left(_ENDS_MS, end_ms)] += count
        buckets = list(zip(_ENDS, itertools.accumulate(counts), strict=True))
        self.families[name].add_metric((queue,), buckets, times["mean"] * times["count"] / 1000)

    def _read_workers(self, workers: Iterable[Document], running: Iterable[Document]) -> None:
        here = [worker for worker in workers if worker["state"] != "gone"]
        counts = Counter(dict.fromkeys(_WORKER_STATES, 0))
        counts.update(worker["state"] for worker in here)
        for state, count in counts.items():
            self.add("workers", count, state)
        # Who never said where it runs did not say either how many it takes: one is not the number then.
        known = [worker for worker in here if worker.get("url") or worker.get("host")]
        self.add("worker_slots", sum(worker["max_jobs"] or 0 for worker in known))
        # What a worker announced that pulls is up to a minute old.
        held = Counter(job.get("worker_id") for job in running)
        self.add("worker_slots_taken", sum(max(worker["held"], held[worker["id"]]) for worker in known))


def _counts(queue: Document) -> list[int]:
    return [queue[state] for state in _STATES]


async def _first(most: int, listing: AsyncIterator[Document]) -> list[Document]:
    documents: list[Document] = []
    async for document in listing:
        documents.append(document)
        if len(documents) == most:
            break
    return documents


@Own
async def metrics(master: Master, _request: Request) -> Reply:
    """Figures for Prometheus.

    @reply metrics
    @errors UNAVAILABLE
    @role viewer
    @http GET /metrics
    """
    # What the server itself has counted is told also without Redis.
    figures = Figures()
    try:
        async with asyncio.timeout(_MOST_S):
            await figures.read(master)
        figures.add("up", 1)
    except (JQError, redis.exceptions.RedisError, OSError) as error:
        log.warning("cannot look at the namespace: %s", error or "it takes too long")
        figures = Figures()
        figures.add("up", 0)
    families = list(figures.families.values())
    families.append(core.InfoMetricFamily("jq_build", "The version of this server.", {"version": __version__}))
    for part in (master.meters.registry, PROCESS_COLLECTOR, PLATFORM_COLLECTOR):
        families += part.collect()
    return Reply(200, generate_latest(SimpleNamespace(collect=lambda: families)), TEXT)
