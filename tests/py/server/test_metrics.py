"""`GET /metrics`: what it says is what was done, counters never go back, and it costs what it may."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from http_support import Api, Master, api, master  # noqa: F401
from jqmaster.engine.engine import Engine
from jqmaster.server.figures import Figures
from jqmaster.server.metrics import OTHERS
from jqmaster.server.tally import Tallies, cumulative
from parts import enqueue
from settable import SettableEngine

HOUR_S = 3600
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


class Counters:
    """Those of one queue, by the test's clock."""

    def __init__(self, engine: SettableEngine) -> None:
        self._engine, self._tallies = engine, Tallies(engine)

    async def look(self) -> Mapping[Any, float]:
        return (await self._tallies.look(["mail"], self._engine.now_ms, is_whole=True))["mail"].totals


async def scrape(api: Api) -> Figure:
    api.master.figures._due = 0.0  # what was looked up before is good for some seconds
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


async def test_counters_count_what_happened_since_the_first_look(api: Api) -> None:
    await api.enqueue("mail")
    await scrape(api)
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
    assert counts == {"enqueued": 3, "done": 3, "error": 1, "failed": 0, "cancelled": 0}


async def test_a_queue_that_is_new_counts_from_its_first_job(api: Api) -> None:
    await scrape(api)
    await api.enqueue("new")
    await work_off(api, "new")
    figure = await scrape(api)
    assert figure("jq_jobs_total", queue="new", event="enqueued") == 1
    assert figure("jq_job_wait_seconds_count", queue="new") == 1
    assert figure("jq_job_run_seconds_bucket", queue="new", le="+Inf") == 1


async def test_waiting_and_running_are_cumulative_histograms(settable: SettableEngine) -> None:
    counters = Counters(settable)
    await counters.look()
    for waits_s in (0.03, 3, 3, 4000):
        await enqueue(settable, "mail", timeout=100_000)
        await settable.advance(waits_s)
        [job] = (await settable.pick("w", ["mail"])).jobs
        await settable.advance(0.2)
        await settable.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, b"\xc0")])
    totals = await counters.look()
    steps, total = cumulative(totals, "wait")
    shown = dict(steps)
    # A step of the engine's is a fifth long, so what is close to an end may be found behind it.
    assert [shown[end] for end in (0.01, 0.05, 1.0, 5.0, 3600.0, 21600.0)] == [0, 1, 1, 3, 3, 4]
    assert shown[float("inf")] == 4
    assert total == pytest.approx(4006.03)
    assert cumulative(totals, "run")[1] == pytest.approx(0.8)


async def test_counters_never_go_back_when_statistics_are_dropped(settable: SettableEngine) -> None:
    counters = Counters(settable)
    done = 0
    before = 0.0
    for hours in (0, 1, 1, 30, 24 * 9, 0, 24 * 20, 1, 1):
        await settable.advance(hours * HOUR_S)
        await counters.look()
        for _ in range(3):
            await enqueue(settable, "mail")
        now = (await counters.look())["enqueued"]
        assert now >= before
        before = now
        done += 3
    assert before == done


@pytest.mark.parametrize("is_missed", [True, False])
async def test_counters_survive_a_queue_that_is_forgotten(api: Api, is_missed: bool) -> None:
    await scrape(api)
    await api.enqueue("mail")
    await work_off(api)
    assert (await scrape(api))("jq_jobs_total", queue="mail", event="done") == 1
    await api.post("/jobs/discard", {"where": {"queue": "mail"}})
    assert (await api("DELETE", "/queue/mail")).status == 204
    if is_missed:
        await scrape(api)
    await api.enqueue("mail")
    assert (await scrape(api))("jq_jobs_total", queue="mail", event="enqueued") == 2


async def test_of_many_queues_the_largest_are_shown_and_the_others_summed_up(api: Api, engine: Engine) -> None:
    api.master.figures = Figures(engine, 2)
    for number in range(6):
        for _ in range(number + 1):
            await api.enqueue(f"q{number}")
    await scrape(api)
    await api.enqueue("q0")
    await api.enqueue("q5")
    figure = await scrape(api)
    shown = {
        dict(labels)["queue"]: value
        for (name, labels), value in figure.samples.items()
        if name == "jq_queue_jobs" and ("state", "queued") in labels
    }
    assert shown == {"q4": 5, "q5": 7, OTHERS: 2 + 2 + 3 + 4}
    assert figure("jq_queues") == 6
    assert figure("jq_jobs_total", queue="q5", event="enqueued") == 1
    assert figure("jq_namespace_jobs_total", event="enqueued") == 2
