"""Queues in order of how they do: straight on Redis and by a master, which keeps what it looked up for a moment."""

from __future__ import annotations

import asyncio
import time

import pytest

from jqmaster import JQ
from jqmaster.engine import ranking
from jqmaster.engine.engine import Engine
from jqmaster.errors import Invalid
from surface_support import Call, call, jq, own, server

__all__ = ["call", "jq", "own", "server"]


async def test_queues_are_ranked_by_any_column(jq: JQ, call: Call, own: Engine) -> None:
    for number, name in enumerate(("young", "middle", "old")[::-1]):
        await own.enqueue([({"name": name}, b"\xc0")] * (number + 1))
        await asyncio.sleep(0.01)
    await own.queue("idle")
    [job] = (await own.pick("w", "middle")).jobs
    await own.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, b"\xc0")])
    found = await call("ranking")
    assert [queue["name"] for queue in found["queues"]] == ["old", "middle", "young", "idle"]
    assert (found["total"], found["looked"], found["more"]) == (4, 4, False)
    names = {by: [queue["name"] for queue in (await call("ranking", by))["queues"]] for by in ranking.ORDERS}
    assert names["queued"] == ["young", "middle", "old", "idle"]
    assert names["name"] == ["idle", "middle", "old", "young"]
    assert names["net"][:2] == ["young", "middle"] or names["net"][0] == "young"
    assert names["ended"][0] == names["wait"][0] == names["run"][0] == "middle"
    turned = await call("ranking", "oldest", turned=True, first=1, count=2)
    assert [queue["name"] for queue in turned["queues"]] == ["middle", "old"]  # who has no such figure stays last
    some = await call("ranking", "name", text="d")
    assert ([queue["name"] for queue in some["queues"]], some["total"], some["looked"]) == (
        ["idle", "middle", "old"],
        3,
        4,
    )
    recent = next(queue["recent"] for queue in found["queues"] if queue["name"] == "middle")
    assert (recent["enqueued"], recent["done"], recent["wait"]["count"]) == (2, 1, 1)
    for wrong, field in (({"by": "colour"}, "by"), ({"count": 0}, "count"), ({"minutes": 181}, "minutes")):
        with pytest.raises(Invalid) as refused:
            await call("ranking", **wrong)
        assert refused.value.path == field


async def test_a_look_at_very_many_queues_is_bounded_and_says_so(own: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for begin in range(0, 3000, 1000):
        await own.enqueue([({"name": f"q{number:05d}"}, b"\xc0") for number in range(begin, begin + 1000)])
    began = time.monotonic()
    found = await own.ranking("queued", first=2990)
    assert (found["total"], len(found["queues"]), found["more"]) == (3000, 10, False)
    assert time.monotonic() - began < 20
    monkeypatch.setattr(ranking, "MOST_LOOKED", 1500)
    found = await own.ranking()
    assert 1500 <= found["looked"] < 3000 and found["more"]
