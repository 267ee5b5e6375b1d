"""The overview: what it counts and tells, that all who look share one look, and what a look costs."""

from __future__ import annotations

import asyncio
from typing import Any

from http_support import Api, api, master  # noqa: F401 (fixtures)
from jqmaster.engine.alerts import in_order, verdict
from jqmaster.engine.engine import Engine
from jqmaster.server.figures import _PAGE, _PAGES, Figures
from settable import SettableEngine


async def enqueue(engine: Engine, *queues: str, count: int = 1) -> None:
    jobs = [({"name": queue}, b"\xc0") for queue in queues for _ in range(count)]
    for start in range(0, len(jobs), 1000):
        await engine.enqueue(jobs[start : start + 1000])


async def test_it_counts_jobs_queues_and_workers(api: Api) -> None:
    await api.enqueue("mail")
    await api.enqueue("mail")
    await api.enqueue("later", delay=1000)
    await api.post("/worker", {"name": "w", "queues": ["mail"], "url": "http://h/", "max_jobs": 4})
    await api.post("/worker", {"name": "own", "queues": ["mail"], "host": "h", "announce": True, "max_jobs": 2})
    await api.done((await api.pick("mail"))[0])
    found = (await api.get("/overview")).value
    assert found["totals"] | {"queued": 1, "scheduled": 1, "done": 1, "running": 0} == found["totals"]
    assert found["queues"] | {"count": 2, "more": False, "paused": 0, "top": ["later", "mail"]} == found["queues"]
    assert found["oldest"]["queue"] == "mail"
    assert found["workers"] == {"count": 2, "held": 0, "unreachable": 0, "slots": 6, "slots_held": 0}
    assert found["verdict"] == {"level": "ok", "text": "All is well"} and found["alerts"] == []


def test_several_partitions_tell_of_a_thing_once() -> None:
    alerts: list[dict[str, Any]] = [
        {"kind": "late", "queue": queue, "weight": weight, "text": f"{weight}", "level": level}
        for queue, weight, level in (("a", 1, "warning"), ("b", 5, "problem"), ("b", 7, "problem"), ("c", 3, "warning"))
    ]
    told = in_order(alerts)
    assert [(alert["queue"], alert["weight"]) for alert in told] == [("b", 7), ("c", 3), ("a", 1)]
    assert verdict(told) == {"level": "problem", "text": "7. And 2 more alerts"}


async def test_looks_at_the_same_time_are_one_and_rest(engine: Engine) -> None:
    figures = Figures(engine)
    calls: list[str] = []
    engine.observe = lambda script, _code, _seconds: calls.append(script)
    looks = await asyncio.gather(*(figures.look() for _ in range(5)))
    assert calls.count("alerts") == 1
    assert await figures.look() is looks[0] and calls.count("alerts") == 1
    figures._due = 0.0
    assert await figures.look() is not looks[0] and calls.count("alerts") == 2


async def test_many_queues_are_looked_at_in_turn(engine: Engine) -> None:
    number = _PAGE * _PAGES + 50
    await enqueue(engine, *(f"q{n:04}" for n in range(number)))
    await enqueue(engine, "zz", count=30)
    figures = Figures(engine, 10)
    look = await figures.look()
    assert look.count is None and len(look.queues) == 10
    figures._due = 0.0
    look = await figures.look()
    assert look.count == number + 1 and look.sums["queued"] == number + 30
    assert "zz" in {queue["name"] for queue in look.queues}


async def test_of_many_that_wait_it_tells_whose_they_are(settable: SettableEngine) -> None:
    await settable.register("w", ["mail"], announce=True)
    await settable.enqueue([({"name": "mail"}, b"\x81\xa2id\xa1a")] * 55 + [({"name": "mail"}, b"\x81\xa2id\xa1b")] * 5)
    await settable.advance(60)
    [alert] = (await Figures(settable).look()).alerts
    assert "have argument.id a" in alert["text"]
