"""Figures and meters as Prometheus' families."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from prometheus_client.exposition import generate_latest as as_text
from prometheus_client.openmetrics.exposition import generate_latest as as_openmetrics

from jqmaster import __version__
from jqmaster.engine.replies import Document
from jqmaster.server.figures import STATES, WORKER_STATES, Look
from jqmaster.server.meters import Histogram, Meters
from jqmaster.server.tally import EVENTS, TIMES, cumulative

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_LEVELS = ("problem", "warning", "note")
_INFINITE = float("inf")

Kind = type[CounterMetricFamily] | type[GaugeMetricFamily]
Values = tuple[str, ...]
"""Of a family's labels."""
_COUNTER, _GAUGE = CounterMetricFamily, GaugeMetricFamily
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
        ("held", "held", "Jobs that it holds; absent with `by`."),
    ),
    "schedule": (
        ("next_timestamp_seconds", "next_ms", "The next moment, if there is one."),
        ("last_timestamp_seconds", "last_ms", "The moment of the last job."),
        ("paused", "paused", "Whether it makes no jobs."),
    ),
}  # fmt: skip


@dataclass
class Families:
    """All there is to tell, as a collector. `look` is None while Redis cannot be asked."""

    look: Look | None
    meters: Meters
    under_way: int

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("jq_build", "The version of this master.", {"version": __version__})
        up = "Whether Redis could be asked; if not, the namespace's figures are missing."
        yield GaugeMetricFamily("jq_up", up, 1 if self.look else 0)
        yield from _of_master(self.meters, self.under_way)
        if self.look is not None:
            yield from _of_namespace(self.look)
        yield from PROCESS_COLLECTOR.collect()
        yield from PLATFORM_COLLECTOR.collect()


def _of_master(meters: Meters, under_way: int) -> Iterator[Metric]:
    yield _family(
        _COUNTER, "http_requests", "Requests answered by this master.", ("method", "path", "status"),
        (((method, path, str(status)), count) for (method, path, status), count in sorted(meters.requests.items())),
    )  # fmt: skip
    yield _histograms(
        "http_request_seconds", "Time to answer; long polls wait on purpose.", ("method", "path"),
        ((values, *_steps(histogram)) for values, histogram in sorted(meters.request_seconds.items())),
    )  # fmt: skip
    yield _family(
        _COUNTER, "script_calls", "Calls of scripts by this master.", ("script", "code"), sorted(meters.calls.items())
    )
    yield _histograms(
        "script_seconds", "Time until a script's reply was there, the way to Redis included.", ("script",),
        (((script,), *_steps(histogram)) for script, histogram in sorted(meters.call_seconds.items())),
    )  # fmt: skip
    yield _family(
        _COUNTER, "deliveries", "Jobs this master offered to workers, by what came of it.", ("outcome",),
        (((outcome,), count) for outcome, count in sorted(meters.deliveries.items())),
    )  # fmt: skip
    deliveries = [((), *_steps(meters.delivery_seconds))]
    yield _histograms("delivery_seconds", "Time until a worker answered an offer.", (), deliveries)
    breakers = len(meters.breakers)
    yield GaugeMetricFamily("jq_breakers_open", "Workers that this master pushes nothing for a while.", breakers)
    yield GaugeMetricFamily("jq_deliveries_under_way", "Deliveries that are not answered yet.", under_way)


def _of_namespace(look: Look) -> Iterator[Metric]:
    yield _family(
        _GAUGE, "queue_jobs", "Jobs by state; of those that ended, the records kept. Queue * is all the others.",
        ("queue", "state"), (((queue["name"], state), queue[state]) for queue in look.queues for state in STATES),
    )  # fmt: skip
    limits = {document["name"]: document["max_waiting"] or None for document in look.queues}
    yield from _of_each(
        "queue", {document["name"]: {**document, "max_waiting": limits[document["name"]]} for document in look.queues}
    )
    yield GaugeMetricFamily("jq_queues", "How many queues there are.", look.known_queues)
    yield GaugeMetricFamily(
        "jq_queues_round_age_seconds", "How long ago all queues were last looked through.", look.round_s
    )
    yield from _of_counters(look)
    rates = {document["id"]: (document.get("rate") or {}).get("limit") for document in look.constraints}
    yield from _of_each(
        "constraint",
        {document["id"]: {**document, "rate_limit": rates[document["id"]]} for document in look.constraints},
    )
    made = (((document["id"],), document["made"]) for document in look.schedules)
    yield _family(_COUNTER, "schedule_jobs", "Jobs made, ever.", ("schedule",), made)
    yield from _of_each("schedule", {document["id"]: {"paused": False, **document} for document in look.schedules})
    yield from _of_workers(look.workers)
    yield from _of_commands(look.commands)
    counts: Counter[tuple[str, str]] = Counter((document.check, document.level) for document in look.findings)
    checks = sorted({check for check, _ in counts})
    yield _family(
        _GAUGE, "doctor_findings", "What `jqmaster doctor` finds, at most a minute old.", ("check", "level"),
        (((check, level), counts[check, level]) for check in checks for level in _LEVELS),
    )  # fmt: skip


def _of_counters(look: Look) -> Iterator[Metric]:
    yield _family(
        _COUNTER, "jobs", "What happened in the namespace, whoever did it, since this master was first asked.",
        ("queue", "event"),
        (((queue, event), counted.totals.get(event, 0)) for queue, counted in look.tallies.items() for event in EVENTS),
    )  # fmt: skip
    texts = {"wait": "From when a job was ready to its first start.", "run": "How long attempts took that were done."}
    for kind in TIMES:
        samples = (((queue,), *cumulative(tally.totals, kind)) for queue, tally in look.tallies.items())
        yield _histograms(f"job_{kind}_seconds", texts[kind], ("queue",), samples)


def _of_workers(workers: Sequence[Document]) -> Iterator[Metric]:
    counts = Counter(dict.fromkeys(WORKER_STATES, 0))
    counts.update(worker["state"] for worker in workers)
    states = (((state,), count) for state, count in counts.items())
    yield _family(_GAUGE, "workers", "Registered workers by state.", ("state",), states)
    pushed = [worker for worker in workers if worker.get("url")]
    slots, taken = (sum(worker[what] for worker in pushed) for what in ("max_jobs", "held"))
    yield GaugeMetricFamily("jq_worker_slots", "Jobs that workers that are pushed to may hold.", slots)
    yield GaugeMetricFamily("jq_worker_slots_taken", "Those of them that are.", taken)


def _of_commands(commands: dict[str, dict[str, Any]]) -> Iterator[Metric]:
    by_command = sorted(commands.items())
    yield _family(
        _COUNTER, "redis_commands", "Commands Redis carried out.", ("command",),
        (((name,), values["calls"]) for name, values in by_command),
    )  # fmt: skip
    yield _family(
        _COUNTER, "redis_command_seconds",
        "Time Redis spent on them; fcall and evalsha have all of the engine.", ("command",),
        (((name,), values["usec"] / 1e6) for name, values in by_command),
    )  # fmt: skip


def _of_each(thing: str, documents: Mapping[str, Document]) -> Iterator[Metric]:
    for name, field, text in _OF_EACH[thing]:
        samples = (((label,), _number(field, document.get(field))) for label, document in documents.items())
        yield _family(_GAUGE, f"{thing}_{name}", text, (thing,), samples)


def _number(field: str, value: float | None) -> float | None:
    if field.endswith("_ms"):
        return value / 1000 if value else None
    return value


def _family(kind: Kind, name: str, text: str, labels: Values, samples: Iterable[tuple[Values, float | None]]) -> Metric:
    family = kind(f"jq_{name}", text, labels=labels)
    for values, number in samples:
        if number is not None:
            family.add_metric(values, number)
    return family


def _histograms(
    name: str, text: str, labels: Values, of: Iterable[tuple[Values, Iterable[tuple[float, float]], float]]
) -> Metric:
    """`of`: values of the labels, steps (their ends in seconds, the last infinite, and the count up to there), sum."""
    family = HistogramMetricFamily(f"jq_{name}", text, labels=labels)
    for values, steps, total in of:
        ends = (("+Inf" if end == _INFINITE else repr(float(end)), count) for end, count in steps)
        family.add_metric(values, list(ends), total)
    return family


def _steps(histogram: Histogram) -> tuple[list[tuple[float, float]], float]:
    return list(zip((*histogram.ends, _INFINITE), accumulate(histogram.counts), strict=True)), histogram.sum


def render(families: Families, *, openmetrics: bool) -> bytes:
    """All of it, in one of the two formats."""
    text: bytes = as_openmetrics(families) if openmetrics else as_text(families)  # type: ignore[no-untyped-call]
    return text
