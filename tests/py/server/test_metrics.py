"""`GET /metrics`: what it says is what was done, counters never go back, and it costs what it may."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from http_support import Api, Master, api, master  # noqa: F401
from jqmaster.engine.engine import Engine
from jqmaster.server.figures import OTHERS, Figures
from jqmaster.server.tally import cumulative
from parts import commands, enqueue
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

    def __call__(self, name: str, **labels: str) -> float | None:
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
    await api.post("/queue/report/pause")
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
    figures = Figures(settable)
    clock_of(figures, settable)
    await figures.look()
    for waits_s in (0.03, 3, 3, 4000):
        await enqueue(settable, "mail", timeout=100_000)
        await settable.advance(waits_s)
        [job] = (await settable.pick("w", ["mail"])).jobs
        await settable.advance(0.2)
        await settable.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, b"\xc0")])
    totals = (await figures.look()).tallies["mail"].totals
    steps, total = cumulative(totals, "wait")
    shown = dict(steps)
    # A step of the engine's is a fifth long, so what is close to an end may be found behind it.
    assert [shown[end] for end in (0.01, 0.05, 1.0, 5.0, 3600.0, 21600.0)] == [0, 1, 1, 3, 3, 4]
    assert shown[float("inf")] == 4
    assert total == pytest.approx(4006.03)
    assert cumulative(totals, "run")[1] == pytest.approx(0.8)


async def test_counters_never_go_back_when_statistics_are_dropped(settable: SettableEngine) -> None:
    figures = Figures(settable)
    clock_of(figures, settable)
    done = 0
    before = 0.0
    for hours in (0, 1, 1, 30, 24 * 9, 0, 24 * 20, 1, 1):
        await settable.advance(hours * HOUR_S)
        look = await figures.look()
        for _ in range(3):
            await enqueue(settable, "mail")
        look = await figures.look()
        now = look.tallies["mail"].totals["enqueued"] if "mail" in look.tallies else 0
        assert now >= before
        before = now
        done += 3
    assert before == done


async def test_counters_survive_a_clock_that_goes_back(settable: SettableEngine) -> None:
    figures = Figures(settable)
    clock_of(figures, settable)
    await figures.look()
    await enqueue(settable, "mail")
    assert (await figures.look()).tallies["mail"].totals["enqueued"] == 1
    await settable.advance(-30 * HOUR_S)
    assert (await figures.look()).tallies["mail"].totals["enqueued"] == 1
    await settable.advance(31 * HOUR_S)
    await enqueue(settable, "mail")
    assert (await figures.look()).tallies["mail"].totals["enqueued"] == 2


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


def clock_of(figures: Figures, engine: SettableEngine) -> None:
    """Have the figures go by the test's clock."""

    async def now_ms() -> int:
        return engine.now_ms

    figures._now_ms = now_ms  # type: ignore[method-assign]


async def test_all_counters_only_grow(api: Api) -> None:
    before = (await scrape(api)).counters()
    for _ in range(3):
        await api.enqueue("mail")
        await work_off(api)
        after = (await scrape(api)).counters()
        assert before.keys() <= after.keys()
        assert all(after[key] >= value for key, value in before.items() if key[0].startswith("jq_"))
        before = after


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
    assert figure("jq_jobs_total", queue=OTHERS, event="enqueued") == 1


async def test_a_queue_that_comes_into_view_was_counted_among_the_others(engine: Engine) -> None:
    figures = Figures(engine, 1)
    for name in ("a", "a", "b"):
        await enqueue(engine, name)
    await figures.look()
    total = 0.0
    for _ in range(9):
        await enqueue(engine, "b")
        tallies = (await figures.look()).tallies
        total = sum(tally.totals["enqueued"] for tally in tallies.values())
    assert "b" in tallies
    # One look may pass between the last job that the others count and the first of its own.
    assert 8 <= total <= 9


async def test_a_look_costs_the_same_however_many_jobs_there_are(engine: Engine) -> None:
    figures = Figures(engine)
    figures._examined = no_findings  # type: ignore[method-assign]
    await enqueue(engine, "mail")

    async def cost() -> int:
        before = await commands(engine.redis)
        await figures.look()
        return await commands(engine.redis) - before

    await cost()
    few = await cost()
    await engine.enqueue([({"name": "mail"}, b"\xc0")] * 1000)
    await cost()
    assert await cost() <= few + 2


async def test_a_look_costs_no_more_with_thousands_of_queues(engine: Engine) -> None:
    figures = Figures(engine, 10)
    figures._examined = no_findings  # type: ignore[method-assign]
    for start in range(0, 2000, 1000):
        await engine.enqueue([({"name": f"q{start + n:04}"}, b"\xc0") for n in range(1000)])
    calls = []
    engine.observe = lambda script, _code, _seconds: calls.append(script)
    for _ in range(3):
        calls.clear()
        look = await figures.look()
        assert len(look.queues) == 10
        assert len(calls) <= 25
    for _ in range(2):
        look = await figures.look()
    assert look.known_queues == 2000
    assert look.queues[-1]["name"] == OTHERS
    assert look.queues[-1]["queued"] == 1990


async def no_findings() -> list[Any]:
    return []
