"""`GET /metrics`: what it says is what was done, counters never go back, and it costs what it may."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from http_support import Api, Master, api, master  # noqa: F401
from jqmaster.server.http import metrics
from jqmaster.server.http.metrics import OTHERS

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "operating.md"


class Figure:
    """A scrape, read as Prometheus reads it."""

    def __init__(self, families: Iterator[Any]) -> None:
        self.types: dict[str, str] = {}
        self.samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for family in families:
            assert family.name not in self.types, f"{family.name} is there twice"
            self.types[family.name] = family.type
            for sample in family.samples:
                key = sample.name, frozenset(sample.labels.items())
                assert key not in self.samples, f"{key} is there twice"
                self.samples[key] = sample.value

    def __call__(self, name: str, /, **labels: str) -> float | None:
        return self.samples.get((name, frozenset(labels.items())))

    def counters(self) -> dict[Any, float]:
        endings = ("_total", "_count", "_sum", "_bucket")
        return {key: value for key, value in self.samples.items() if key[0].endswith(endings)}


async def scrape(api: Api) -> Figure:
    answer = await api.get("/metrics")
    assert answer.status == 200, answer.value
    return Figure(parse(answer.value))


async def work_off(api: Api, name: str = "mail", **outcome: Any) -> None:
    for job in await api.pick(name, count=100):
        await api.done(job, **outcome)


async def test_jobs_of_queues_are_shown_by_state(api: Api) -> None:
    await api.enqueue("mail")
    await api.enqueue("mail", delay=100)
    await api.enqueue("report")
    await api.pick("report")
    await api.post("/queue/report", {"paused": True})
    figure = await scrape(api)
    assert figure("jq_queue_jobs", queue="mail", state="queued") == 1
    assert figure("jq_queue_jobs", queue="mail", state="scheduled") == 1
    assert figure("jq_queue_jobs", queue="report", state="running") == 1
    assert figure("jq_queue_jobs", queue="report", state="queued") == 0
    assert figure("jq_queue_oldest_ready_timestamp_seconds", queue="mail") == pytest.approx(time.time(), abs=60)
    assert figure("jq_queue_oldest_ready_timestamp_seconds", queue="report") is None
    assert figure("jq_queue_paused", queue="mail") == 0
    assert figure("jq_queue_paused", queue="report") == 1
    assert figure("jq_queues") == 2
    assert figure("jq_up") == 1


async def test_counters_count_what_happened_today(api: Api) -> None:
    await api.enqueue("mail")
    await api.enqueue("mail")
    await api.enqueue("mail", max_retry=0)
    await work_off(api)
    await api.enqueue("mail", max_retry=0)
    await work_off(api, type="failure", message="no")
    figure = await scrape(api)
    counts = {
        event: figure("jq_jobs_total", queue="mail", event=event)
        for event in ("enqueued", "done", "error", "failed", "cancelled")
    }
    assert counts == {"enqueued": 4, "done": 3, "error": 1, "failed": 0, "cancelled": 0}
    assert figure("jq_job_wait_seconds_count", queue="mail") == 4
    assert figure("jq_job_run_seconds_bucket", queue="mail", le="+Inf") == 3
    assert figure("jq_job_run_seconds_bucket", queue="mail", le="60.0") == 3
    assert 0 <= (figure("jq_job_run_seconds_sum", queue="mail") or 0) < 60


async def test_of_many_queues_the_largest_are_shown_and_the_others_summed_up(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MOST_SHOWN", 2)
    for number in range(6):
        for _ in range(number + 1):
            await api.enqueue(f"q{number}")
    figure = await scrape(api)
    shown = {
        dict(labels)["queue"]: value
        for (name, labels), value in figure.samples.items()
        if name == "jq_queue_jobs" and ("state", "queued") in labels
    }
    assert shown == {"q4": 5, "q5": 6, OTHERS: 1 + 2 + 3 + 4}
    assert figure("jq_queues") == 6
    assert figure("jq_jobs_total", queue="q5", event="enqueued") == 6
    assert figure("jq_namespace_jobs_total", event="enqueued") == 21
    calls = [figure("jq_script_seconds_count", script=script, code="ok") for script in ("stats", "queues")]
    assert calls == [1, 2]  # however many are shown
