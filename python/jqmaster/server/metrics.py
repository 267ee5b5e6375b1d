"""A namespace and its master as Prometheus' families."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from prometheus_client import PLATFORM_COLLECTOR, PROCESS_COLLECTOR
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from jqmaster import __version__
from jqmaster.engine.replies import Document
from jqmaster.server.figures import STATES, Look
from jqmaster.server.meters import Histogram, Meters

OTHERS = "*"  # no queue has this name
WORKER_STATES = ("ready", "full", "busy", "unreachable", "pulling", "quiet")

EVENTS = ("enqueued", "done", "failed", "lapsed", "error", "cancelled", "released", "moved", "skipped")
# Upper ends of the steps of waiting and running.
ENDS_MS = (
    1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    1_800_000, 3_600_000, 21_600_000, 86_400_000,
)  # fmt: skip

Values = tuple[str, ...]
"""Of a family's labels."""
Steps = tuple[Values, list[tuple[float, float]], float]
"""Values, the ends of steps with the count up to each, and the sum."""
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
}  # fmt: skip


@dataclass
class Families:
    """All there is to tell, as a collector. `look` is None while Redis cannot be asked. `days`: what was done in a
    queue since midnight UTC, and under None in all. `commands`: what Redis says of its own."""

    look: Look | None
    meters: Meters
    under_way: int
    days: Mapping[str | None, Document] = field(default_factory=dict)
    commands: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("jq_build", "The version of this master.", {"version": __version__})
        up = "Whether Redis could be asked; if not, the namespace's figures are missing."
        yield _gauge("up", up, 1 if self.look else 0)
        yield from _of_master(self.meters)
        yield _gauge("deliveries_under_way", "Deliveries that are not answered yet.", self.under_way)
        if self.look is not None:
            yield from _of_namespace(self.look)
            yield from _of_counters(self.days)
            yield from _of_commands(self.commands)
        yield from PROCESS_COLLECTOR.collect()
        yield from PLATFORM_COLLECTOR.collect()


def _of_master(meters: Meters) -> Iterator[Metric]:
    requests = (((method, path, str(status)), count) for (method, path, status), count in meters.requests.items())
    text = "Requests answered by this master."
    yield _family(CounterMetricFamily, "http_requests", text, ("method", "path", "status"), requests)
    text = "Time to answer; long polls wait on purpose."
    yield _histograms("http_request_seconds", text, ("method", "path"), _steps(meters.request_seconds.items()))
    text = "Calls of scripts by this master."
    yield _family(CounterMetricFamily, "script_calls", text, ("script", "code"), meters.calls.items())
    text = "Time until a script's reply was there, the way to Redis included."
    scripts = (((script,), histogram) for script, histogram in meters.call_seconds.items())
    yield _histograms("script_seconds", text, ("script",), _steps(scripts))
    deliveries = (((outcome,), count) for outcome, count in meters.deliveries.items())
    text = "Jobs this master offered to workers, by what came of it."
    yield _family(CounterMetricFamily, "deliveries", text, ("outcome",), deliveries)
    text = "Time until a worker answered an offer."
    yield _histograms("delivery_seconds", text, (), _steps([((), meters.delivery_seconds)]))
    yield _gauge("breakers_open", "Workers that this master pushes nothing for a while.", len(meters.breakers))


def _of_namespace(look: Look) -> Iterator[Metric]:
    queues = [{**queue, "max_waiting": queue["max_waiting"] or None} for queue in look.queues]
    jobs = [((queue["name"], state), queue[state]) for queue in queues for state in STATES]
    if look.count is not None:
        yield _gauge("queues", "How many queues there are.", look.count)
        yield _gauge("queues_round_age_seconds", "How long ago all queues were last looked through.", look.round_s)
        if look.count > len(queues):
            told = Counter[str]()
            told.update({state: sum(queue[state] for queue in queues) for state in STATES})
            jobs += [((OTHERS, state), max(0, look.sums[state] - told[state])) for state in STATES]
    text = "Jobs by state; of those that ended, the records kept. Queue * is all the others."
    yield _family(GaugeMetricFamily, "queue_jobs", text, ("queue", "state"), jobs)
    yield from _of_each("queue", {queue["name"]: queue for queue in queues})
    limits = [{**one, "rate_limit": (one.get("rate") or {}).get("limit")} for one in look.constraints]
    yield from _of_each("constraint", {constraint["id"]: constraint for constraint in limits})
    made = (((schedule["id"],), schedule["made"]) for schedule in look.schedules)
    yield _family(CounterMetricFamily, "schedule_jobs", "Jobs made, ever.", ("schedule",), made)
    yield from _of_each("schedule", {schedule["id"]: {"paused": False, **schedule} for schedule in look.schedules})
    yield from _of_workers(look.workers)
    yield from _of_running(look)
    counts = Counter((alert["kind"], alert["level"]) for alert in look.alerts)
    text = "What is wrong now, as the operation `alerts` has it."
    yield _family(GaugeMetricFamily, "alerts", text, ("kind", "level"), counts.items())
    yield _gauge("figures_age_seconds", "How old these figures are.", look.age_s)


def _of_workers(workers: Sequence[Document]) -> Iterator[Metric]:
    counts = Counter(dict.fromkeys(WORKER_STATES, 0))
    counts.update(worker["state"] for worker in workers)
    text = "Workers that are registered, or pull and announce themselves, by state."
    yield _family(
        GaugeMetricFamily, "workers", text, ("state",), (((state,), count) for state, count in counts.items())
    )
    # Who never said where it runs did not say either how many it takes: one is not the number then.
    known = [worker for worker in workers if worker.get("url") or worker.get("host")]
    slots, taken = (sum(worker[what] or 0 for worker in known) for what in ("max_jobs", "held"))
    yield _gauge("worker_slots", "Jobs that workers may hold.", slots)
    yield _gauge("worker_slots_taken", "Those of them that are.", taken)


def _of_running(look: Look) -> Iterator[Metric]:
    oldest: dict[str, float] = {}
    for job in look.running:
        ms = look.now_ms - (job.get("started_ms") or look.now_ms)
        oldest[job["name"]] = max(oldest.get(job["name"], 0), ms / 1000)
    text = "For how long the attempt has run that has run for longest, of the names among a thousand that run."
    yield _family(
        GaugeMetricFamily, "longest_running_seconds", text, ("name",), (((name,), s) for name, s in oldest.items())
    )


def _of_counters(days: Mapping[str | None, Document]) -> Iterator[Metric]:
    """They begin anew each day. For Prometheus that is as after a restart: rates stay right."""
    queues = {name: day for name, day in days.items() if name is not None}
    text = "What happened in the namespace, whoever did it, since midnight UTC."
    by_queue = (((queue, event), day[event]) for queue, day in queues.items() for event in EVENTS)
    yield _family(CounterMetricFamily, "jobs", text, ("queue", "event"), by_queue)
    whole = [((event,), days[None][event]) for event in EVENTS if None in days]
    yield _family(CounterMetricFamily, "namespace_jobs", f"{text} Of all queues together.", ("event",), whole)
    texts = {"wait": "From when a job was ready to its first start.", "run": "How long attempts took that were done."}
    for kind in texts:
        samples = [((queue,), *_cumulative(day[kind])) for queue, day in queues.items()]
        yield _histograms(f"job_{kind}_seconds", texts[kind], ("queue",), samples)


def _cumulative(times: Document) -> tuple[list[tuple[float, float]], float]:
    """Ends in seconds with the count up to each, the last infinite, and the sum in seconds. The engine's own steps, a
    fifth apart, go into the first that has room for all of them."""
    counts = [0.0] * (len(ENDS_MS) + 1)
    for end_ms, count in times["histogram"]:
        counts[bisect_left(ENDS_MS, end_ms)] += count
    ends = (*(end_ms / 1000 for end_ms in ENDS_MS), float("inf"))
    return list(zip(ends, accumulate(counts), strict=True)), times["mean"] * times["count"] / 1000


def _of_commands(commands: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    for name, field_name, text, unit in (
        ("redis_commands", "calls", "Commands Redis carried out.", 1),
        (
            "redis_command_seconds", "usec",
            "Time Redis spent on them; fcall and evalsha have all of the engine.", 1e6,
        ),
    ):  # fmt: skip
        samples = (((command,), values[field_name] / unit) for command, values in sorted(commands.items()))
        yield _family(CounterMetricFamily, name, text, ("command",), samples)


def _of_each(thing: str, documents: Mapping[str, Document]) -> Iterator[Metric]:
    for name, field_name, text in _OF_EACH[thing]:
        unit = 1000 if field_name.endswith("_ms") else 1
        samples = (
            ((label,), document[field_name] / unit)
            for label, document in documents.items()
            if document.get(field_name) is not None
        )
        yield _family(GaugeMetricFamily, f"{thing}_{name}", text, (thing,), samples)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"jq_{name}", text, value)


def _steps(histograms: Iterable[tuple[Values, Histogram]]) -> Iterator[Steps]:
    for values, histogram in histograms:
        ends = (*histogram.ends, float("inf"))
        yield values, list(zip(ends, accumulate(histogram.counts), strict=True)), histogram.sum


def _histograms(name: str, text: str, labels: Values, samples: Iterable[Steps]) -> Metric:
    family = HistogramMetricFamily(f"jq_{name}", text, labels=labels)
    for values, steps, total in samples:
        ends = [("+Inf" if end == float("inf") else repr(float(end)), count) for end, count in steps]
        family.add_metric(values, ends, total)
    return family


def _family(
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily],
    name: str,
    text: str,
    labels: Values,
    samples: Iterable[tuple[Values, float]],
) -> Metric:
    family = kind(f"jq_{name}", text, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family
