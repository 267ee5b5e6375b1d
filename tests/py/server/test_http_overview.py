"""The overview: what it counts, that all who look share one look, and what a look costs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from http_support import Api, api, master, unpack  # noqa: F401 (fixtures)
from jqmaster.engine.engine import Engine, pack
from jqmaster.server.alerts import verdict
from jqmaster.server.overview import _PAGE, _TOP, Overview
from jqmaster.server.server import ServeOptions, Server
from parts import eventually
from servers import RedisServer
from settable import SettableEngine


def counting(engine: Engine, calls: list[str]) -> None:
    """Note the scripts that are called."""
    engine.observe = lambda script, _code, _seconds: calls.append(script)


@pytest.fixture
async def overview(engine: Engine) -> AsyncIterator[Overview]:
    overview = Overview(engine)
    yield overview
    await overview.stop()


async def enqueue(engine: Engine, *queues: str, count: int = 1) -> None:
    jobs = [({"name": queue}, b"\xc0") for queue in queues for _ in range(count)]
    for start in range(0, len(jobs), 1000):
        await engine.enqueue(jobs[start : start + 1000])


async def test_it_counts_jobs_queues_and_what_happened(api: Api, engine: Engine) -> None:
    await api.enqueue("mail")
    await api.enqueue("mail")
    await api.enqueue("later", delay=1000)
    [job] = await api.pick("mail")
    await api.done(job)
    found = (await api.get("/overview")).value
    assert found["totals"] | {"queued": 1, "scheduled": 1, "done": 1, "running": 0} == found["totals"]
    assert found["queues"]["count"] == 2 and found["queues"]["rest"]["count"] == 0
    assert {queue["name"] for queue in found["queues"]["top"]} == {"mail", "later"}
    sums = [sum(column) for column in zip(*found["minutes"], strict=True)]
    assert sums[1:3] == [3, 1]
    assert found["rates"]["enqueued"] > 0
    assert found["hour"]["wait"]["count"] == 1
    [mail] = [queue for queue in found["queues"]["top"] if queue["name"] == "mail"]
    assert mail["wait"]["count"] == 1 and mail["trend"][-1] + mail["trend"][-2] == 1
    assert isinstance(found["alerts"], list)


async def test_an_empty_namespace_has_an_overview(api: Api) -> None:
    found = (await api.get("/overview")).value
    assert found["queues"]["top"] == [] and found["minutes"] == [] and found["hour"] is None


async def test_alerts_are_what_the_doctor_finds(api: Api, engine: Engine) -> None:
    await api.enqueue("mail")
    await engine.queue("mail", paused=True)
    found = (await api.get("/overview")).value
    assert ("paused", "mail") in {(alert["check"], alert["about"]) for alert in found["alerts"]}
    assert all(alert["level"] != "ok" for alert in found["alerts"])


async def test_an_alert_has_its_time_and_goes_when_it_is_over(overview: Overview, engine: Engine) -> None:
    await enqueue(engine, "mail", "late")
    await engine.queue("mail", paused=True)
    first = unpack(await overview.document())
    [alert] = [alert for alert in first["alerts"] if alert["check"] == "paused"]
    assert first["now_ms"] - 60_000 < alert["seen_ms"] <= alert["as_of_ms"] <= first["now_ms"] + 60_000
    assert first["verdict"]["text"].startswith("1 queue behind: paused") and first["verdict"]["paused"] == 1
    rested(overview)
    again = unpack(await overview.document())
    assert [one["seen_ms"] for one in again["alerts"] if one["check"] == "paused"] == [alert["seen_ms"]]
    await engine.queue("mail", paused=False)
    overview._looked_at -= 10  # two seconds later; the doctor has not looked again
    rested(overview)
    overview._examine._due = float("inf")
    over = unpack(await overview.document())
    assert not [alert for alert in over["alerts"] if alert["check"] == "paused"]
    assert over["verdict"]["behind"] == 0


def test_the_verdict_counts_each_queue_once() -> None:
    def alert(check: str, about: str, level: str = "warning", **values: str) -> dict[str, Any]:
        return {"check": check, "about": about, "level": level, "values": values}

    late = [alert("late", f"q{number}", cause="constraints") for number in range(3)]
    some = [*late, alert("late", "w1", cause="workers"), alert("late", "w2", cause="workers")]
    assert verdict(some)["text"] == "5 queues behind: 3 by constraints, 2 without enough workers"
    both = [alert("unserved", "q0", "problem"), *some, alert("memory", "q0"), alert("paths", "q0", "note")]
    assert verdict(both) | {"text": ""} == {
        "behind": 5, "unserved": 1, "constraints": 2, "workers": 2, "paused": 0, "others": 1, "text": "",
    }  # fmt: skip
    assert verdict([])["text"] == "All is well" and verdict(None)["text"] == "Loading …"
    assert verdict(some, is_least=True)["text"].startswith("At least 5 queues behind: ")
    assert verdict(late[:1])["text"] == "1 queue behind: by constraints"
    assert verdict([alert("memory", "")])["text"] == "No queue is behind; 1 alert"


async def test_the_oldest_and_the_fullest(overview: Overview, engine: Engine) -> None:
    found = unpack(await overview.document())
    assert found["oldest"] is None and found["constraints"]["fullest"] == []
    await engine.constrain("half", {"name": "a"}, concurrency=4)
    await engine.constrain("full", {"name": "b"}, concurrency=1)
    await engine.constrain("keyed", {"name": "b"}, by="argument", concurrency=5)
    await enqueue(engine, "a", "b", "paused", count=2)
    await engine.queue("paused", paused=True)
    for queue in ("a", "a", "b"):
        [job] = (await engine.pick("w", queue)).jobs
        if queue == "a":
            await engine.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, b"\xc0")])
    await engine.enqueue([({"name": "a"}, b"\xc0")])
    await engine.pick("w", "a")
    assert not (await engine.pick("w", "b")).jobs  # held from now on
    rested(overview)
    found = unpack(await overview.document())
    assert found["oldest"]["queue"] == "b" and found["now_ms"] - 60_000 < found["oldest"]["ready_ms"]
    fullest = found["constraints"]["fullest"]
    assert [(one["id"], one["share"], one["held"], one["keys"]) for one in fullest] == [
        ("full", 1, 1, None), ("half", 0.25, 0, None), ("keyed", 0.2, 0, 1),
    ]  # fmt: skip
    assert (fullest[2]["used"], fullest[2]["limit"], fullest[2]["of"]) == (1, 5, "running")
    assert found["hour"] is None or found["hour"]["wait"]["p95"] >= found["hour"]["wait"]["p50"]


async def test_who_looks_after_long_finds_no_old_sums(overview: Overview, engine: Engine) -> None:
    await enqueue(engine, *(f"q{number:04d}" for number in range(3 * _PAGE)))
    while unpack(await overview.document())["queues"]["more"]:  # on a busy machine the first look takes several
        rested(overview)
    await engine.queue("q0300", paused=True)
    rested(overview)
    await overview.document()
    assert not overview._known["q0300"]["paused"]  # a look that is not the first goes through one page
    rested(overview)
    overview._looked_at -= 300
    found = unpack(await overview.document())
    assert overview._known["q0300"]["paused"] and not found["queues"]["more"]


async def test_trends_and_changes_over_http(api: Api, engine: Engine) -> None:
    await api.enqueue("mail")
    [job] = await api.pick("mail")
    now_ms = (await api.get("/overview")).value["now_ms"]
    told = (await api.get(f"/trends?split=queue&from_ms={now_ms - 600_000}")).value
    assert told["running"][-1] in (0, 1) and told["running_is_exact"] and told["series"] == []
    calls: list[str] = []
    counting(engine, calls)
    await asyncio.gather(*(api.get(f"/trends?split=queue&from_ms={now_ms - 600_000}") for _ in range(5)))
    assert calls == []  # one look for all, for some seconds
    await api.done(job)
    told = (await api.get(f"/trends?from_ms={now_ms - 600_000}&to_ms={now_ms + 600_000}")).value
    assert {one["name"]: one["count"] for one in told["series"]}["done"] == 1
    changes = await api.get(f"/changes?since_ms={now_ms}&span=60")
    assert changes.status == 200 and changes.value["by"] == "minute", changes.value
    for path, field in (("/trends", "from_ms"), ("/changes?span=60", "since_ms"), ("/trends?from_ms=1&top=50", "top")):
        refused = await api.get(path)
        assert refused.status == 400 and refused.error["field"] == field


async def test_workers_are_counted_by_state(overview: Overview, engine: Engine) -> None:
    await engine.register("puller", ["a"])
    await engine.register("pushed", ["a"], url="http://127.0.0.1:9/", max_jobs=5)
    await overview.document()
    assert overview._workers["count"] == 2 and overview._workers["pulling"] == 1
    assert overview._workers["ready"] == 1 and overview._workers["slots"] == 5


async def test_workers_that_pull_and_announce_themselves_are_counted(settable: SettableEngine) -> None:
    await settable.register("silent", ["a"], max_jobs=3, host="two", announce=True)
    await settable.advance(200)  # it says no more that it is there: it is gone, and shown for an hour
    await enqueue(settable, "a", count=3)
    jobs = (await settable.pick("host-1", ["a"], count=2)).jobs
    await settable.register("host-1", ["a"], max_jobs=8, host="one", announce=True, running=[job.id for job in jobs])
    await settable.register("bare", ["a"], announce=True)  # did not say how many it takes
    await settable.register("pushed", ["a"], url="http://127.0.0.1:9/", max_jobs=5)
    overview = Overview(settable)
    await overview.document()
    await overview.stop()
    found = overview._workers
    assert (found["count"], found["pulling"], found["ready"], found["held"]) == (3, 2, 1, 2)
    assert (found["slots"], found["slots_held"], found["more"]) == (13, 2, False)


async def test_looks_at_the_same_time_are_one(overview: Overview, engine: Engine) -> None:
    await enqueue(engine, "a")
    await overview.document()
    calls: list[str] = []
    counting(engine, calls)
    first, *others = await asyncio.gather(*(overview.document() for _ in range(20)))
    assert calls == [] and set(others) == {first}


async def test_many_queues_are_looked_at_in_turn(
    overview: Overview, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"q{number:04d}" for number in range(3 * _PAGE)]
    await enqueue(engine, *names)
    await enqueue(engine, "q0007", count=5)
    await overview.document()
    assert len(overview._known) == 3 * _PAGE
    assert overview._top[0] == "q0007"
    if overview._examining is not None:
        await overview._examining  # by itself, and not to be counted
    calls: list[str] = []
    counting(engine, calls)
    for _ in range(3):
        calls.clear()
        rested(overview)
        await overview.document()
        assert calls.count("queues") <= 2
        assert len(calls) <= 20


async def test_the_first_look_does_not_go_through_all_queues_at_once(engine: Engine) -> None:
    names = [f"q{number:04d}" for number in range(5 * _PAGE)]
    await enqueue(engine, *names)
    overview = Overview(engine, first_round_s=0)  # one page in a look
    found, looks = unpack(await overview.document()), 1
    assert found["queues"]["more"] and 0 < found["queues"]["count"] <= _PAGE
    while found["queues"]["more"]:
        overview._looked_at -= 10  # two seconds later, without any pause of its parts
        found, looks = unpack(await overview.document()), looks + 1
        assert looks < 100
    assert looks >= 5 and found["queues"]["count"] == found["totals"]["queued"] == len(names)
    await overview.stop()


async def test_when_redis_hangs_those_who_look_learn_it_together(fresh_server: RedisServer, namespace: str) -> None:
    async with Server(ServeOptions(redis_url=fresh_server.url, namespace=namespace, port=0)) as server:
        os.kill(fresh_server.process.pid, signal.SIGSTOP)
        try:
            async with aiohttp.ClientSession() as session, asyncio.timeout(25):  # calls wait for 30 s each
                urls = [f"{server.url}/overview"] * 3 + [f"{server.url}/metrics"] * 2
                answers = await asyncio.gather(*(_answer(session, url) for url in urls))
        finally:
            os.kill(fresh_server.process.pid, signal.SIGCONT)
    assert [status for status, _ in answers] == [503] * 3 + [200] * 2
    assert all("\njq_up 0.0\n" in text for _, text in answers[3:])


async def _answer(session: aiohttp.ClientSession, url: str) -> tuple[int, str]:
    async with session.get(url) as response:
        return response.status, (await response.read()).decode("latin-1")


def rested(overview: Overview) -> None:
    """As if the pauses were over."""
    overview._looked_at -= 10
    for part in overview._parts:
        part._due = 0.0
    overview._examine._due = 1e12


async def test_what_is_forgotten_goes(overview: Overview, engine: Engine) -> None:
    await enqueue(engine, "a", "b")
    await overview.document()
    await engine.raw("discard", pack({"where": {"queue": "a"}}))
    await engine.forget("a")
    rested(overview)
    await overview.document()
    rested(overview)
    await overview.document()
    assert set(overview._known) == {"b"} and overview._top == ["b"]


async def test_the_rest_is_what_is_not_shown(overview: Overview, engine: Engine) -> None:
    await enqueue(engine, *(f"q{number}" for number in range(_TOP + 4)))
    found = unpack(await overview.document())
    assert len(found["queues"]["top"]) == _TOP
    assert found["queues"]["rest"]["count"] == 4 and found["queues"]["rest"]["queued"] == 4


# -- followed ---------------------------------------------------------------------------------------


@pytest.fixture
async def server(redis_url: str, namespace: str) -> AsyncIterator[Server]:
    async with Server(ServeOptions(redis_url=redis_url, namespace=namespace, port=0)) as server:
        yield server


async def event(response: aiohttp.ClientResponse, wanted: Callable[[Any], bool] = lambda _: True) -> Any:
    """The next document that is wanted."""
    while True:
        line = (await response.content.readline()).decode()
        if line.startswith("data: "):
            found = json.loads(line[6:])
            if wanted(found):
                return found


async def test_who_follows_gets_the_document_and_its_changes(server: Server) -> None:
    async with aiohttp.ClientSession() as session, session.get(server.url + "/overview/events") as response:
        assert response.headers["content-type"] == "text/event-stream"
        assert (await event(response))["totals"]["queued"] == 0
        await enqueue(server.master.engine, "a")  # type: ignore[arg-type]
        await event(response, lambda found: found["totals"]["queued"] == 1)


async def test_nothing_is_looked_up_when_nobody_follows(server: Server) -> None:
    overview = server.master.overview
    assert overview is not None and overview._loop is None
    async with aiohttp.ClientSession() as session, session.get(server.url + "/overview/events") as response:
        await event(response)
        assert overview._loop is not None
    await eventually(lambda: overview._loop is None)
