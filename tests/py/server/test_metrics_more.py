"""Figures of limits, schedules, workers, requests and calls."""

from __future__ import annotations

from typing import Any

from http_support import Api, Master, api, master  # noqa: F401
from jqmaster.engine.alerts import in_order, verdict
from jqmaster.engine.engine import Engine
from parts import answers, came_to, dispatching, enqueue, eventually, until, worker
from test_metrics import scrape


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
    assert figure("jq_constraint_held", constraint="each") == 0


async def test_workers_are_counted_by_state(api: Api) -> None:
    for number in range(2):
        body = {"name": f"w{number}", "queues": ["mail"], "url": f"http://h{number}/", "max_jobs": 4}
        await api.post("/worker", body)
    await api.post("/worker", {"name": "puller", "queues": ["mail"]})
    announced = {"name": "announced", "queues": ["mail"], "max_jobs": 2, "host": "h", "announce": True}
    await api.post("/worker", announced)
    await api.enqueue("mail")
    await api.pick("mail", worker="announced")
    figure = await scrape(api)
    assert figure("jq_workers", state="ready") == 2
    assert figure("jq_workers", state="pulling") == 2
    assert figure("jq_workers", state="unreachable") == 0
    assert figure("jq_worker_slots") == 10  # the puller did not say where it runs
    assert figure("jq_worker_slots_taken") == 1


async def test_requests_are_counted_by_route_and_status(api: Api) -> None:
    await api.enqueue("mail")
    await api.post("/job", {"name": ""})
    for job_id in ("00000000000001", "00000000000002"):
        await api.get(f"/job/{job_id}")
    await api.get("/nowhere")
    await api("BREW", "/nowhere")
    figure = await scrape(api)

    def count(method: str, path: str, status: int) -> float | None:
        return figure("jq_http_request_seconds_count", method=method, path=path, status=str(status))

    assert count("POST", "/job", 201) == 1
    assert count("POST", "/job", 400) == 1
    assert count("GET", "/job/{id}", 404) == 2
    assert count("", "", 404) == 2


async def test_calls_of_scripts_are_timed(api: Api) -> None:
    await api.enqueue("mail")
    await api.post("/job", {"name": ""})
    figure = await scrape(api)
    assert figure("jq_script_seconds_count", script="enqueue", code="ok") == 1
    assert figure("jq_script_seconds_count", script="enqueue", code="INVALID") == 1
    assert (figure("jq_script_seconds_sum", script="enqueue", code="ok") or 0) > 0
    for command in ("fcall", "evalsha"):
        assert (figure("jq_redis_commands_total", command=command) or 0) > 0
        assert (figure("jq_redis_command_seconds_total", command=command) or 0) > 0


async def test_deliveries_are_counted_by_what_came_of_them(engine: Engine) -> None:
    async with dispatching(engine) as dispatch:
        async with worker(engine, answers(200, {"type": "success"}), queues=["mail"]):
            await until(engine, await enqueue(engine, "mail"), "done")
        async with worker(engine, answers(429), queues=["busy"]):
            await enqueue(engine, "busy")
            await eventually(lambda: came_to(dispatch, "busy"))
    assert came_to(dispatch, "success") == 1
    labels = {"to": "worker", "outcome": "success"}
    assert (dispatch.meters.registry.get_sample_value("jq_delivery_seconds_sum", labels) or 0) > 0


async def test_alerts_and_running_attempts_are_there(api: Api) -> None:
    await api.enqueue("mail")
    await api.pick("mail")
    await api.enqueue("mail")
    await api.post("/queue/mail", {"paused": True})
    figure = await scrape(api)
    assert figure("jq_alerts", kind="paused", level="warning") == 1
    assert figure("jq_alerts", kind="full", level="problem") is None
    assert figure("jq_longest_running_seconds", name="mail") is not None


def test_several_partitions_tell_of_a_thing_once() -> None:
    alerts: list[dict[str, Any]] = [
        {"kind": "late", "queue": queue, "weight": weight, "text": f"{weight}", "level": level}
        for queue, weight, level in (("a", 1, "warning"), ("b", 5, "problem"), ("b", 7, "problem"), ("c", 3, "warning"))
    ]
    told = in_order(alerts)
    assert [(alert["queue"], alert["weight"]) for alert in told] == [("b", 7), ("c", 3), ("a", 1)]
    assert verdict(told) == {"level": "problem", "text": "7. And 2 more alerts"}


async def test_without_redis_the_masters_own_figures_are_there(api: Api, fresh_server: Any) -> None:
    from jqmaster.engine.engine import connect

    lost = connect(fresh_server.url)
    fresh_server.kill()
    api.master.engine = Engine(lost)
    figure = await scrape(api)
    assert figure("jq_up") == 0
    assert (await scrape(api))("jq_http_request_seconds_count", method="GET", path="/metrics", status="200") == 1
    await lost.aclose()
