"""Queues in order of how they do: straight on Redis and by a master, which keeps what it looked up for a moment."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable

import pytest

from jqmaster import JQ
from jqmaster.engine import ranking
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.ranking import Looked
from jqmaster.errors import Invalid, Unavailable
from jqmaster.server import rankings
from jqmaster.server.rankings import Rankings
from servers import RedisServer
from surface_support import jq, own, server

__all__ = ["jq", "own", "server"]


async def test_queues_are_ranked_by_any_column(jq: JQ, own: Engine) -> None:
    ranking_of = (await jq.aengine()).ranking
    for number, name in enumerate(("young", "middle", "old")[::-1]):
        await own.enqueue([({"name": name}, b"\xc0")] * (number + 1))
        await asyncio.sleep(0.01)
    await own.queue("idle")
    [job] = (await own.pick("w", "middle")).jobs
    await own.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, b"\xc0")])
    found = await ranking_of()
    assert [queue["name"] for queue in found["queues"]] == ["old", "middle", "young", "idle"]
    assert (found["total"], found["looked"], found["more"]) == (4, 4, False)
    names = {by: [queue["name"] for queue in (await ranking_of(by))["queues"]] for by in ranking.ORDERS}
    assert names["queued"] == ["young", "middle", "old", "idle"]
    assert names["name"] == ["idle", "middle", "old", "young"]
    assert names["net"][:2] == ["young", "middle"] or names["net"][0] == "young"
    assert names["ended"][0] == names["wait"][0] == names["run"][0] == "middle"
    turned = await ranking_of("oldest", turned=True, first=1, count=2)
    assert [queue["name"] for queue in turned["queues"]] == ["middle", "old"]  # who has no such figure stays last
    some = await ranking_of("name", text="d")
    assert ([queue["name"] for queue in some["queues"]], some["total"], some["looked"]) == (
        ["idle", "middle", "old"],
        3,
        4,
    )
    recent = next(queue["recent"] for queue in found["queues"] if queue["name"] == "middle")
    assert (recent["enqueued"], recent["done"], recent["wait"]["count"]) == (2, 1, 1)
    for wrong, field in (({"by": "colour"}, "by"), ({"count": 0}, "count"), ({"minutes": 181}, "minutes")):
        with pytest.raises(Invalid) as refused:
            await ranking_of(**wrong)
        assert refused.value.path == field


async def test_a_look_at_very_many_queues_is_bounded_and_says_so(own: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for begin in range(0, 3000, 1000):
        await own.enqueue([({"name": f"q{number:05d}"}, b"\xc0") for number in range(begin, begin + 1000)])
    found = await own.ranking("queued", first=2990)
    assert (found["total"], len(found["queues"]), found["more"]) == (3000, 10, False)
    monkeypatch.setattr(ranking, "MOST_LOOKED", 1500)
    found = await own.ranking()
    assert 1500 <= found["looked"] < 3000 and found["more"]


@pytest.fixture
def slow_look(own: Engine, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Calls with when they ended; nobody has patience with a look, and its parts are one call each."""
    for name, value in (("_PATIENCE_S", 0.0), ("_PART_S", 0.0), ("EVERY_S", 0.0), ("_MOST_REST_S", 0.3)):
        monkeypatch.setattr(rankings, name, value)
    calls: list[float] = []
    own.observe = lambda _script, _code, _seconds: calls.append(time.monotonic())
    return calls


async def until(known: Rankings, wanted: Callable[[Looked], bool]) -> Looked:
    ends = time.monotonic() + 60
    while True:
        found, _ = await known.look(15)
        if wanted(found):
            return found
        assert time.monotonic() < ends
        await asyncio.sleep(0.01)


async def test_who_asks_a_master_need_not_wait_for_the_first_look(own: Engine, slow_look: list[float]) -> None:
    names = [f"q{number:04d}" for number in range(1000)]
    await own.enqueue([({"name": name}, b"\xc0") for name in names])
    slow_look.clear()
    known = Rankings(own)
    found, _ = await known.look(15)
    assert found.counting and found.more and 0 < len(found.queues) < 1000
    found = await until(known, lambda found: not found.counting)
    assert [queue["name"] for queue in found.queues] == names and not found.more
    # From now on a part at a time, and what was known meanwhile.
    ended, calls = time.monotonic() + 2, len(slow_look)
    await own.queue("q0999", paused=True)
    while time.monotonic() < ended:
        await asyncio.sleep(0.01)
        found, age_ms = await known.look(15)
        assert len(found.queues) == 1000 and not found.counting
    assert 1 <= len(slow_look) - calls - 1 <= 2 / 0.3 + 2 and age_ms >= 2000
    # Those that are shown are as of now.
    [shown] = await known.freshen(15, [queue for queue in found.queues if queue["name"] == "q0999"])
    assert shown["paused"] and not found.queues[999]["paused"]
    await until(known, lambda found: any(queue["paused"] for queue in found.queues))


async def test_what_is_gone_leaves_the_ranking(own: Engine, slow_look: list[float]) -> None:
    await own.queue("a")
    await own.queue("b")
    known = Rankings(own)
    await until(known, lambda found: len(found.queues) == 2)
    await own.forget("a")
    await until(known, lambda found: [queue["name"] for queue in found.queues] == ["b"])


async def test_what_is_known_is_no_answer_while_redis_says_nothing(fresh_server: RedisServer) -> None:
    async with connect(fresh_server.url) as redis:
        engine = Engine(redis, "{silent}")
        await engine.enqueue([({"name": "a"}, b"\xc0")])
        kept = Rankings(engine)
        assert [queue["name"] for queue in (await kept.look(15))[0].queues] == ["a"]
        assert fresh_server.process is not None
        fresh_server.process.send_signal(signal.SIGSTOP)
        try:
            until = time.monotonic() + 60
            with pytest.raises(Unavailable):
                while time.monotonic() < until:
                    await kept.look(15)
                    await asyncio.sleep(0.1)
            # None of those who ask afterwards is told what was so before.
            for _ in range(8):
                with pytest.raises(Unavailable):
                    await kept.look(15)
        finally:
            fresh_server.process.send_signal(signal.SIGCONT)
        while time.monotonic() < until:
            try:
                await kept.look(15)
                return
            except Unavailable:
                await asyncio.sleep(0.2)
        raise AssertionError("it does not go on")
