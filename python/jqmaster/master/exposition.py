"""Figures and meters as Prometheus' families. Needs prometheus-client; nothing else here does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from jqmaster.master.figures import STATES, Look
from jqmaster.master.meters import Histogram, Meters
from jqmaster.master.tally import EVENTS, TIMES, cumulative

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
WORKER_STATES = ("ready", "full", "busy", "unreachable", "pulling", "quiet")
_LEVELS = ("problem", "warning", "note")


class Families:
    """All there is to tell, as a collector. `look` is None while Redis cannot be asked; `partitions`, as of
    `Lookout.document`, is None of a namespace alone as well."""

    def __init__(
        self, look: Look | None, meters: Meters, under_way: int | None, partitions: Document | None = None
    ) -> None:
        self._look = look
        self._partitions = partitions
        self._meters = meters
        self._under_way = under_way

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("jq_build", "The version of this master.", {"version": __version__})
        yield GaugeMetricFamily(
            "jq_up", "Whether Redis could be asked; if not, the namespace's figures are missing.",
            1 if self._look else 0,
        )  # fmt: skip
        yield from self._of_master()
        if self._look is not None:
            yield from _of_queues(self._look)
            yield from _of_counters(self._look)
            yield from _of_constraints(self._look.constraints)
            yield from _of_schedules(self._look.schedules)
            yield from _of_workers(self._look.workers)
            yield from _of_commands(self._look.commands)
            yield from _of_findings(self._look.findings)
        if self._partitions is not None:
            yield from _of_partitions(self._partitions)
        yield from PROCESS_COLLECTOR.collect()
        yield from PLATFORM_COLLECTOR.collect()

    def _of_master(self) -> Iterator[Metric]:
        meters = self._meters
        requests = CounterMetricFamily(
            "jq_http_requests", "Requests answered by this master.", labels=("method", "path", "status")
        )
        for (method, path, status), count in sorted(meters.requests.items()):
            requests.add_metric((method, path, str(status)), count)
        yield requests
        yield _histograms(
            "jq_http_request_seconds", "Time to answer; long polls wait on purpose.", ("method", "path"),
            sorted(meters.request_seconds.items()),
        )  # fmt: skip
        calls = CounterMetricFamily("jq_script_calls", "Calls of scripts by this master.", labels=("script", "code"))
        for (script, code), count in sorted(meters.calls.items()):
            calls.add_metric((script, code), count)
        yield calls
        yield _histograms(
            "jq_script_seconds", "Time until a script's reply was there, the way to Redis included.",
            ("script",), sorted(((script,), one) for script, one in meters.call_seconds.items()),
        )  # fmt: skip
        deliveries = CounterMetricFamily(
            "jq_deliveries", "Jobs this master offered to workers, by what came of it.", labels=("outcome",)
        )
        for outcome, count in sorted(meters.deliveries.items()):
            deliveries.add_metric((outcome,), count)
        yield deliveries
        told = [((), meters.delivery_seconds)]
        yield _histograms("jq_delivery_seconds", "Time until a worker answered an offer.", (), told)
        yield GaugeMetricFamily(
            "jq_breakers_open", "Workers that this master pushes nothing for a while.", len(meters.breakers)
        )  # fmt: skip
        if self._under_way is not None:
            yield GaugeMetricFamily("jq_deliveries_under_way", "Deliveries that are not answered yet.", self._under_way)


def _histograms(name: str, text: str, labels: Sequence[str], of: Sequence[tuple[tuple[str, ...], Histogram]]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=labels)
    for values, histogram in of:
        count = 0
        steps = []
        for end, here in zip((*histogram.ends, float("inf")), histogram.counts, strict=True):
            count += here
            steps.append((_end(end), count))
        family.add_metric(values, steps, histogram.sum)
    return family


def _end(seconds: float) -> str:
    return "+Inf" if seconds == float("inf") else repr(float(seconds))


def _of_queues(look: Look) -> Iterator[Metric]:
    jobs = GaugeMetricFamily(
        "jq_queue_jobs", "Jobs by state; of those that ended, the records kept. Queue * is all the others.",
        labels=("queue", "state"),
    )  # fmt: skip
    paused = GaugeMetricFamily("jq_queue_paused", "Whether the queue starts no jobs.", labels=("queue",))
    limit = GaugeMetricFamily(
        "jq_queue_max_waiting", "How many jobs may wait in it, if there is a limit.", labels=("queue",)
    )
    oldest = GaugeMetricFamily(
        "jq_queue_oldest_ready_timestamp_seconds",
        "Since when the queue's oldest ready job waits, in a paused one and under constraints as well.",
        labels=("queue",),
    )
    for queue in look.queues:
        for state in STATES:
            jobs.add_metric((queue["name"], state), queue[state])
        if "oldest_ready_ms" in queue:
            oldest.add_metric((queue["name"],), queue["oldest_ready_ms"] / 1000)
        paused.add_metric((queue["name"],), int(queue["paused"]))
        if queue["max_waiting"]:
            limit.add_metric((queue["name"],), queue["max_waiting"])
    yield jobs
    yield oldest
    yield paused
    yield limit
    yield GaugeMetricFamily("jq_queues", "How many queues there are.", look.known_queues)
    yield GaugeMetricFamily(
        "jq_queues_round_age_seconds", "How long ago all queues were last looked through.", look.round_s
    )


def _of_counters(look: Look) -> Iterator[Metric]:
    jobs = CounterMetricFamily(
        "jq_jobs", "What happened in the namespace, whoever did it, since this master was first asked.",
        labels=("queue", "event"),
    )  # fmt: skip
    for queue, tally in look.tallies.items():
        for event in EVENTS:
            jobs.add_metric((queue, event), tally.totals.get(event, 0))
    yield jobs
    texts = {
        "wait": "From when a job was ready to its first start.",
        "run": "How long attempts took that were done.",
    }
    for kind in TIMES:
        family = HistogramMetricFamily(f"jq_job_{kind}_seconds", texts[kind], labels=("queue",))
        for queue, tally in look.tallies.items():
            steps, total = cumulative(tally.totals, kind)
            family.add_metric((queue,), [(_end(end), count) for end, count in steps], total)
        yield family


def _of_constraints(constraints: Sequence[dict[str, Any]]) -> Iterator[Metric]:
    texts = {
        "running": "Jobs that run under the constraint, all keys together.",
        "limit": "How many may run at once, of each key.",
        "rate_limit": "How many may start in a period, of each key.",
        "keys": "Keys in use.",
        "held": "Jobs that it holds; absent with `by`.",
    }
    families = {
        name: GaugeMetricFamily(f"jq_constraint_{name}", text, labels=("constraint",)) for name, text in texts.items()
    }
    for one in constraints:
        rate = one.get("rate") or {}
        values = {
            "running": one["running"], "limit": one.get("concurrency"), "rate_limit": rate.get("limit"),
            "keys": one["keys"], "held": one.get("held"),
        }  # fmt: skip
        for name, value in values.items():
            if value is not None:
                families[name].add_metric((one["id"],), value)
    yield from families.values()


def _of_schedules(schedules: Sequence[dict[str, Any]]) -> Iterator[Metric]:
    made = CounterMetricFamily("jq_schedule_jobs", "Jobs made, ever.", labels=("schedule",))
    following = GaugeMetricFamily(
        "jq_schedule_next_timestamp_seconds", "The next moment, if there is one.", labels=("schedule",)
    )
    last = GaugeMetricFamily("jq_schedule_last_timestamp_seconds", "The moment of the last job.", labels=("schedule",))
    paused = GaugeMetricFamily("jq_schedule_paused", "Whether it makes no jobs.", labels=("schedule",))
    for one in schedules:
        labels = (one["id"],)
        made.add_metric(labels, one["made"])
        paused.add_metric(labels, int(bool(one.get("paused"))))
        for family, moment in ((following, one.get("next_ms")), (last, one.get("last_ms"))):
            if moment:
                family.add_metric(labels, moment / 1000)
    yield from (made, following, last, paused)


def _of_workers(workers: Sequence[dict[str, Any]]) -> Iterator[Metric]:
    states = GaugeMetricFamily("jq_workers", "Registered workers by state.", labels=("state",))
    counts = dict.fromkeys(WORKER_STATES, 0)
    for worker in workers:
        counts[worker["state"]] = counts.get(worker["state"], 0) + 1
    for state, count in counts.items():
        states.add_metric((state,), count)
    yield states
    pushed = [worker for worker in workers if worker.get("url")]
    yield GaugeMetricFamily(
        "jq_worker_slots", "Jobs that workers that are pushed to may hold.",
        sum(worker["max_jobs"] for worker in pushed),
    )  # fmt: skip
    yield GaugeMetricFamily(
        "jq_worker_slots_taken", "Those of them that are.", sum(worker["held"] for worker in pushed)
    )


def _of_commands(commands: dict[str, dict[str, Any]]) -> Iterator[Metric]:
    calls = CounterMetricFamily("jq_redis_commands", "Commands Redis carried out.", labels=("command",))
    spent = CounterMetricFamily(
        "jq_redis_command_seconds", "Time Redis spent on them; fcall and evalsha have all of the engine.",
        labels=("command",),
    )  # fmt: skip
    for name, values in sorted(commands.items()):
        calls.add_metric((name,), values["calls"])
        spent.add_metric((name,), values["usec"] / 1e6)
    yield calls
    yield spent


def _of_partitions(told: Document) -> Iterator[Metric]:
    texts = {
        "up": "Whether the partition answers.",
        "ready": "Jobs that are ready to start, of its first thousand queues.",
        "running": "Jobs that run, of the same queues.",
        "oldest_ready_timestamp_seconds": "Since when its oldest ready job waits, paused queues aside.",
        "generation": "Generation of the record of the system that it has.",
        "behind": "Settings that are not the latest.",
    }
    families = {
        name: GaugeMetricFamily(f"jq_partition_{name}", text, labels=("partition",)) for name, text in texts.items()
    }
    for one in told["partitions"]:
        if one["state"] == "closed":
            continue
        oldest_ms, behind = one.get("oldest_ready_ms"), one["behind"]
        values = {
            "up": int(one["answers"]), "ready": one.get("queued"), "running": one.get("running"),
            "oldest_ready_timestamp_seconds": oldest_ms and oldest_ms / 1000, "generation": one["generation"],
            "behind": None if behind is None else len(behind),
        }  # fmt: skip
        for name, value in values.items():
            if value is not None:
                families[name].add_metric((str(one["number"]),), value)
    yield from families.values()
    yield GaugeMetricFamily("jq_system_generation", "Generation of the record of the system.", told["generation"])


def _of_findings(findings: Sequence[Any]) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "jq_doctor_findings", "What `jqmaster doctor` finds, at most a minute old.", labels=("check", "level")
    )
    for check in sorted({finding.check for finding in findings}):
        for level in _LEVELS:
            count = sum(one.check == check and one.level == level for one in findings)
            family.add_metric((check, level), count)
    yield family


def render(families: Families, *, openmetrics: bool) -> bytes:
    """All of it, in one of the two formats."""
    text: bytes = as_openmetrics(families) if openmetrics else as_text(families)  # type: ignore[no-untyped-call]
    return text
