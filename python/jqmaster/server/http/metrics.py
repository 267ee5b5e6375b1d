"""`GET /metrics`, for Prometheus: what this master counted, and how the namespace stands by the operations that there
are. A scrape makes a bounded number of calls, whatever is stored."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import redis.exceptions
from prometheus_client import PLATFORM_COLLECTOR, PROCESS_COLLECTOR
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder

from jqmaster import __version__
from jqmaster.engine import alerts
from jqmaster.engine.replies import Document, Page
from jqmaster.errors import JQError
from jqmaster.server.http.own import own
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request

log = logging.getLogger("jqmaster.metrics")

MOST_QUEUES = 5000
OTHERS = "*"  # no queue has this name
_MOST_LISTED = 200  # constraints, schedules
_MOST = 1000  # workers, attempts that run
_MOST_MARKS = 20
_MOST_S = 5.0  # half of what Prometheus waits
_AT_ONCE = 10  # calls
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
# Gauges of each thing that has the field: the name behind `jq_<thing>_`, the field, and what it tells. Of a moment its
# seconds are told.
_OF_EACH = {
    "queue": (
        (
            "oldest_ready_timestamp_seconds", "oldest_ready_ms",
            "Since when the queue's oldest ready job waits, in a paused one and under constraints as well.",
        ),
        ("paused", "paused", "Whether the queue starts no jobs."),
        ("max_waiting", "max_waiting", "How many jobs may wait in it, if there is a limit."),
    ),
    "constraint": (
        ("running", "running", "Jobs that run under the constraint, all keys together."),
        ("limit", "concurrency", "How many may run at once, of each key."),
        ("rate_limit", "rate_limit", "How many may start in a period, of each key."),
        ("keys", "keys", "Keys in use."),
        ("held", "held", "Jobs that it holds, all keys together, as far as they were looked at."),
        ("full_keys", "full", "Keys that let nothing start now, with `by`."),
    ),
    "schedule": (
        ("next_timestamp_seconds", "next_ms", "The next moment, if there is one."),
        ("last_timestamp_seconds", "last_ms", "The moment of the last job."),
        ("paused", "paused", "Whether it makes no jobs."),
    ),
    "mark": (("timestamp_seconds", "time_ms", "When it was made, of the last marks, such as deploys."),),
}  # fmt: skip

Samples = Iterable[tuple[tuple[str, ...], float]]
"""A number for each combination of a family's labels."""


@own(
    "metrics",
    """Figures for Prometheus.
@reply metrics
@errors UNAVAILABLE
@role viewer
@http GET /metrics""",
)
async def metrics(master: Master, request: Request) -> Reply:
    """All figures, in Prometheus' text format or in OpenMetrics. What the master itself has counted is told
    also when Redis is out of reach."""
    families: list[Metric] = []
    try:
        async with asyncio.timeout(_MOST_S):
            families = await _of_namespace(master)
    except (JQError, redis.exceptions.RedisError, OSError) as error:
        log.warning("cannot look at the namespace: %s", error or "it takes too long")
    up = _gauge("up", "Whether Redis could be asked; if not, the namespace's figures are missing.", bool(families))
    build = InfoMetricFamily("jq_build", "The version of this master.", {"version": __version__})
    parts = (master.meters.registry, PROCESS_COLLECTOR, PLATFORM_COLLECTOR)
    families += [build, up, *(family for part in parts for family in part.collect())]
    # By its name alone: with a version it would answer in types that openapi/master.yaml has not.
    openmetrics = "application/openmetrics-text"
    encode, kind = choose_encoder(openmetrics if openmetrics in (request.header("accept") or "") else "")
    return Reply(200, encode(SimpleNamespace(collect=lambda: families)), kind)


async def _of_namespace(master: Master) -> list[Metric]:
    engine = master.engine
    seconds, _ = await engine.redis.time()
    queues = await _list(engine.queues, MOST_QUEUES)
    shown = heapq.nlargest(master.metrics_queues, queues, key=lambda queue: (sum(_counts(queue)), queue["name"]))
    days = await _days(master, [None, *(queue["name"] for queue in shown)], seconds * 1000 // _DAY_MS * _DAY_MS)
    running = await engine.jobs({"status": "running"}, brief=True, count=_MOST)
    counts = Counter((alert["kind"], alert["level"]) for alert in await alerts.every(engine.alerts))
    text = "What is wrong now, as the operation `alerts` has it."
    return [
        *_of_queues(queues, shown),
        *_of_days(days),
        *_of_constraints(await _list(engine.constraints, _MOST_LISTED, busiest=0)),
        *_of_schedules(await _list(engine.schedules, _MOST_LISTED)),
        *_of_each("mark", "text", reversed((await engine.marks(count=_MOST_MARKS)).documents)),
        *_of_workers((await engine.workers(count=_MOST)).documents, running.documents),
        _of_running(running.documents, seconds),
        _family(GaugeMetricFamily, "alerts", text, ("kind", "level"), counts.items()),
        *_of_commands(await _commands(master)),
    ]


async def _list(ask: Callable[..., Awaitable[Page]], most: int, **options: Any) -> list[Document]:
    """The first of a listing; a call keeps Redis busy for milliseconds."""
    documents: list[Document] = []
    cursor: str | None = None
    while cursor != "" and len(documents) < most:
        page = await ask(cursor=cursor, count=200, **options)
        documents, cursor = documents + page.documents, page.cursor
    return documents


async def _days(master: Master, names: list[str | None], begin_ms: int) -> dict[str | None, Document]:
    """What happened since then in each of these queues; None: in all."""

    async def day_of(name: str | None) -> list[Document]:
        return await master.engine.stats("day", queue=name, from_ms=begin_ms)

    found: dict[str | None, Document] = {}
    for at in range(0, len(names), _AT_ONCE):
        some = names[at : at + _AT_ONCE]
        days = await asyncio.gather(*map(day_of, some))
        found |= {name: documents[0] for name, documents in zip(some, days, strict=True) if documents}
    return found


async def _commands(master: Master) -> dict[str, dict[str, Any]]:
    """What Redis says of commands; nothing where this user may not ask."""
    try:
        stats = await master.engine.redis.info("commandstats")
    except redis.exceptions.ResponseError:
        return {}
    of_commands = {name: values for name, values in stats.items() if isinstance(values, dict)}
    return {name.removeprefix("cmdstat_"): values for name, values in of_commands.items()}


# -- families -------------------------------------------------------------------------------------


def _counts(queue: Document) -> list[int]:
    return [queue[state] for state in _STATES]


def _of_queues(queues: Sequence[Document], shown: Sequence[Document]) -> Iterator[Metric]:
    yield _gauge("queues", "How many queues there are.", len(queues))
    counts = {queue["name"]: _counts(queue) for queue in shown}
    if len(queues) > len(shown):
        others = [queue for queue in queues if queue["name"] not in counts]
        counts[OTHERS] = [sum(queue[state] for queue in others) for state in _STATES]
    jobs = [((name, state), n) for name, each in counts.items() for state, n in zip(_STATES, each, strict=True)]
    text = "Jobs by state; of those that ended, the records kept. Queue * is all the others."
    yield _family(GaugeMetricFamily, "queue_jobs", text, ("queue", "state"), jobs)
    yield from _of_each("queue", "name", ({**queue, "max_waiting": queue["max_waiting"] or None} for queue in shown))


def _of_constraints(constraints: Iterable[Document]) -> Iterator[Metric]:
    limits = ({**constraint, "rate_limit": (constraint.get("rate") or {}).get("limit")} for constraint in constraints)
    return _of_each("constraint", "id", limits)


def _of_schedules(schedules: Sequence[Document]) -> Iterator[Metric]:
    made = (((schedule["id"],), schedule["made"]) for schedule in schedules)
    yield _family(CounterMetricFamily, "schedule_jobs", "Jobs made, ever.", ("schedule",), made)
    yield from _of_each("schedule", "id", ({"paused": False, **schedule} for schedule in schedules))


def _of_workers(workers: Sequence[Document], running: Sequence[Document]) -> Iterator[Metric]:
    counts = Counter(dict.fromkeys(_WORKER_STATES, 0))
    counts.update(worker["state"] for worker in workers if worker["state"] != "gone")
    text = "Workers that are registered, or pull and announce themselves, by state."
    states = (((state,), count) for state, count in counts.items())
    yield _family(GaugeMetricFamily, "workers", text, ("state",), states)
    # Who never said where it runs did not say either how many it takes: one is not the number then.
    known = [worker for worker in workers if worker["state"] != "gone" and (worker.get("url") or worker.get("host"))]
    yield _gauge("worker_slots", "Jobs that workers may hold.", sum(worker["max_jobs"] or 0 for worker in known))
    # What a worker announced that pulls is up to a minute old.
    held = Counter(job.get("worker_id") for job in running)
    taken = sum(max(worker["held"], held[worker["id"]]) for worker in known)
    yield _gauge("worker_slots_taken", "Those of them that are.", taken)


def _of_running(jobs: Iterable[Document], now: float) -> Metric:
    longest: dict[str, float] = {}
    for job in jobs:
        since = now - (job.get("started_ms") or now * 1000) / 1000
        longest[job["name"]] = max(longest.get(job["name"], 0), since)
    text = "For how long the attempt has run that has run for longest, of the names among a thousand that run."
    samples = (((name,), seconds) for name, seconds in longest.items())
    return _family(GaugeMetricFamily, "longest_running_seconds", text, ("name",), samples)


def _of_days(days: Mapping[str | None, Document]) -> Iterator[Metric]:
    """They begin anew each day. For Prometheus that is as after a restart: rates stay right."""
    queues = {name: day for name, day in days.items() if name is not None}
    text = "What happened in the namespace, whoever did it, since midnight UTC."
    by_queue = (((queue, event), day[event]) for queue, day in queues.items() for event in _EVENTS)
    yield _family(CounterMetricFamily, "jobs", text, ("queue", "event"), by_queue)
    whole = [((event,), days[None][event]) for event in _EVENTS if None in days]
    yield _family(CounterMetricFamily, "namespace_jobs", f"{text} Of all queues together.", ("event",), whole)
    texts = {"wait": "From when a job was ready to its first start.", "run": "How long attempts took that were done."}
    for kind, text in texts.items():
        family = HistogramMetricFamily(f"jq_job_{kind}_seconds", text, labels=("queue",))
        for queue, day in queues.items():
            family.add_metric((queue,), _cumulative(day[kind]), day[kind]["mean"] * day[kind]["count"] / 1000)
        yield family


def _cumulative(times: Document) -> list[tuple[str, float]]:
    """Ends of steps with the count up to each. The engine's own, a fifth apart, go into the first that has room for
    all of them."""
    counts = [0.0] * len(_ENDS)
    for end_ms, count in times["histogram"]:
        counts[bisect_left(_ENDS_MS, end_ms)] += count
    return list(zip(_ENDS, itertools.accumulate(counts), strict=True))


def _of_commands(commands: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    texts = {
        "commands": ("calls", 1, "Commands Redis carried out."),
        "command_seconds": ("usec", 1e6, "Time Redis spent on them; fcall and evalsha have all of the engine."),
    }
    for name, (field, unit, text) in texts.items():
        samples = (((command,), values[field] / unit) for command, values in sorted(commands.items()))
        yield _family(CounterMetricFamily, f"redis_{name}", text, ("command",), samples)


def _of_each(thing: str, label: str, documents: Iterable[Document]) -> Iterator[Metric]:
    by_label = {document[label]: document for document in documents}
    for name, field, text in _OF_EACH[thing]:
        unit = 1000 if field.endswith("_ms") else 1
        values = ((value, document.get(field)) for value, document in by_label.items())
        samples = [((value,), number / unit) for value, number in values if number is not None]
        yield _family(GaugeMetricFamily, f"{thing}_{name}", text, (thing,), samples)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"jq_{name}", text, value)


def _family(
    kind: type[CounterMetricFamily | GaugeMetricFamily],
    name: str,
    text: str,
    labels: tuple[str, ...],
    samples: Samples,
) -> Metric:
    family = kind(f"jq_{name}", text, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family
