"""`GET /metrics`: what it says is what was done, counters never go back, and it costs what it may."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from http_support import Api, Master, api, master  # noqa: F401
from jqmaster.engine.engine import Engine
from jqmaster.master.dispatch import Dispatch
from jqmaster.master.figures import OTHERS, Figures
from jqmaster.master.tally import Rest, Tally, cumulative
from parts import answers, commands, enqueue, eventually, until, worker
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


async def test_constraints_show_their_use(api: Api) -> None:
    await api("PUT", "/constraint/one", {"match": {"name": "mail"}, "concurrency": 1})
    await api("PUT", "/constraint/each", {"match": {"name": "mail"}, "by": "argument", "concurrency": 5})
    for _ in range(3):
        await api.enqueue("mail", argument=7)
    assert len(await api.pick("mail", count=3)) == 1
    figure = await scrape(api)
    assert figure("jq_constraint_running", constraint="one") == 1
    assert figure("jq_constraint_limit", constraint="one") == 1
    assert figure("jq_constraint_held", constraint="one") == 2
    assert figure("jq_constraint_keys", constraint="each") == 1
    assert figure("jq_constraint_held", constraint="each") is None


async def test_schedules_show_when_they_come(api: Api) -> None:
    schedule = {"every": 3600, "job": {"name": "report"}, "argument": b"\xff"}
    await api("PUT", "/schedule/hourly", schedule)
    await api("PUT", "/schedule/never", {**schedule, "paused": True})
    figure = await scrape(api)
    assert figure("jq_schedule_jobs_total", schedule="hourly") == 0
    assert (figure("jq_schedule_next_timestamp_seconds", schedule="hourly") or 0) % 3600 == 0
    assert figure("jq_schedule_next_timestamp_seconds", schedule="never") is None
    assert figure("jq_schedule_paused", schedule="never") == 1


async def test_workers_are_counted_by_state(api: Api) -> None:
    for number in range(2):
        body = {"name": f"w{number}", "queues": ["mail"], "url": f"http://h{number}/", "max_jobs": 4}
        await api.post("/worker", body)
    await api.post("/worker", {"name": "puller", "queues": ["mail"]})
    figure = await scrape(api)
    assert figure("jq_workers", state="ready") == 2
    assert figure("jq_workers", state="pulling") == 1
    assert figure("jq_workers", state="unreachable") == 0
    assert figure("jq_worker_slots") == 8
    assert figure("jq_worker_slots_taken") == 0


async def test_requests_are_counted_by_route_and_status(api: Api) -> None:
    await api.enqueue("mail")
    await api.post("/job", {"name": ""})
    for job_id in ("00000000000001", "00000000000002"):
        await api.get(f"/job/{job_id}")
    await api.get("/nowhere")
    await api("BREW", "/nowhere")
    figure = await scrape(api)

    def count(method: str, path: str, status: int) -> float | None:
        return figure("jq_http_requests_total", method=method, path=path, status=str(status))

    assert count("POST", "/job", 201) == 1
    assert count("POST", "/job", 400) == 1
    assert count("GET", "/job/{id}", 404) == 2
    assert count("GET", "", 404) == 1
    assert figure("jq_http_request_seconds_count", method="POST", path="/job") == 2


async def test_calls_of_scripts_are_timed(api: Api) -> None:
    await api.enqueue("mail")
    await api.post("/job", {"name": ""})
    figure = await scrape(api)
    assert figure("jq_script_calls_total", script="enqueue", code="ok") == 1
    assert figure("jq_script_calls_total", script="enqueue", code="INVALID") == 1
    assert figure("jq_script_seconds_count", script="enqueue") == 2
    assert (figure("jq_script_seconds_sum", script="enqueue") or 0) > 0
    for command in ("fcall", "evalsha"):
        assert (figure("jq_redis_commands_total", command=command) or 0) > 0
        assert (figure("jq_redis_command_seconds_total", command=command) or 0) > 0


async def test_deliveries_are_counted_by_what_came_of_them(engine: Engine) -> None:
    dispatch = Dispatch(engine, engine.redis)
    dispatch.start()
    try:
        async with worker(engine, answers(200, {"type": "success"}), queues=["mail"]):
            await until(engine, await enqueue(engine, "mail"), "done")
        async with worker(engine, answers(429), queues=["busy"]):
            await enqueue(engine, "busy")
            await eventually(lambda: dispatch.meters.deliveries["busy"])
    finally:
        await dispatch.stop()
    assert dispatch.meters.deliveries["done"] == 1
    assert sum(dispatch.meters.delivery_seconds.counts) == sum(dispatch.meters.deliveries.values())


async def test_findings_of_the_doctor_are_there(api: Api) -> None:
    await api.enqueue("mail")
    await api.post("/queue/mail/pause")
    figure = await scrape(api)
    assert figure("jq_doctor_findings", check="paused", level="warning") == 1
    assert figure("jq_doctor_findings", check="full", level="problem") == 0


async def test_alerts_in_the_docs_are_about_figures_that_are_there(api: Api) -> None:
    [rules] = re.findall(r"```yaml\n(groups:.*?)```", GUIDE.read_text(), re.S)
    [group] = yaml.safe_load(rules)["groups"]
    known = (await scrape(api)).types
    for rule in group["rules"]:
        for name in re.findall(r"jq_\w+", rule["expr"]):
            assert {name, re.sub(r"_(total|bucket|count|sum)$", "", name)} & known.keys(), (
                rule["alert"],
                name,
            )


async def test_names_are_escaped(api: Api) -> None:
    name = 'a"b\\c é'
    await api.enqueue(name)
    assert (await scrape(api))("jq_queue_jobs", queue=name, state="queued") == 1


async def test_openmetrics_is_given_to_those_who_take_it(api: Api) -> None:
    accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1"
    await api.enqueue("mail")
    answer = await api.get("/metrics", accept=accept)
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    figure = Figure(parse_openmetrics(answer.value))
    assert figure("jq_queue_jobs", queue="mail", state="queued") == 1
    assert (await api.get("/metrics", accept="text/html,*/*;q=0.8")).headers["content-type"].startswith("text/plain")
    assert (await api.get("/metrics", accept="image/png")).status == 406


async def test_without_the_library_it_says_what_is_missing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("prometheus_client")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "jqmaster.master.exposition", raising=False)
    monkeypatch.delattr("jqmaster.master.exposition", raising=False)
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("prometheus_client"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    answer = await api.get("/metrics")
    assert answer.status == 501
    assert "jqmaster[prometheus]" in answer.error["message"]


async def test_without_redis_the_masters_own_figures_are_there(api: Api, fresh_server: Any) -> None:
    from jqmaster.engine.engine import connect

    lost = connect(fresh_server.url)
    fresh_server.kill()
    api.master.figures = Figures(Engine(lost))
    figure = await scrape(api)
    assert figure("jq_up") == 0
    assert (await scrape(api))("jq_http_requests_total", method="GET", path="/metrics", status="200") == 1
    await lost.aclose()


def test_the_rest_waits_where_the_parts_are_ahead() -> None:
    rest = Rest()
    rest.take({"done": 10}, [{"done": 4}])
    rest.take({"done": 1}, [{"done": 3}])
    assert rest.totals["done"] == 6
    rest.take({"done": 5}, [])
    assert rest.totals["done"] == 9


def test_an_hour_that_shrank_counts_anew() -> None:
    empty = {"count": 0, "mean": 0, "histogram": []}

    def hour(**counts: int) -> dict[str, Any]:
        events = ("enqueued", "done", "failed", "lapsed", "error", "cancelled", "released", "moved")
        return {"begin_ms": 0, **dict.fromkeys(events, 0), **counts, "wait": empty, "run": empty}

    tally = Tally()
    tally.take([hour(done=5)], counts=False)
    tally.take([hour(done=7)])
    tally.take([hour(done=3)])
    tally.take([])
    assert tally.totals["done"] == 5
