"""What is done to many jobs goes on when whoever asked for it has left, and when the master that does it dies."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from jqmaster import JQ
from jqmaster.errors import Conflict
from processes import MasterProcess

JOBS = 20_000


def until(what: Callable[[], Any], within_s: float = 60) -> Any:
    end = time.monotonic() + within_s
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


@pytest.fixture
def straight(redis_url: str, namespace: str) -> JQ:
    return JQ(redis_url, namespace=namespace)


def enqueue(jq: JQ, count: int) -> None:
    for _ in range(0, count, 1000):
        jq.enqueue_many([jq.new_job("a")] * 1000)


@pytest.mark.faults
def test_a_master_goes_on_where_another_died(straight: JQ, redis_url: str, namespace: str) -> None:
    enqueue(straight, JOBS)
    options = ("--redis", redis_url, "--namespace", namespace)
    with MasterProcess(*options) as first:
        bulk = JQ(first.url).operations.bulk("discard", {"queue": "a"}, total=JOBS)
        assert (bulk["changed"], bulk["total"]) == (0, JOBS)
        with pytest.raises(Conflict):
            straight.operations.bulk("retry", {"queue": "a"})
        until(lambda: straight.operations.bulks()[0]["changed"])
        first.kill()
    [left] = straight.operations.bulks()
    assert 0 < left["changed"] < JOBS and "ended_ms" not in left
    with MasterProcess(*options):
        [ended] = until(lambda: [bulk for bulk in straight.operations.bulks() if "ended_ms" in bulk])
    # What the first did last may not have been told any more.
    assert ended["resumed"] == 1 and 0 <= JOBS - ended["changed"] <= 1000
    assert straight.operations.queue("a")["queued"] == 0


async def test_it_is_stopped_and_done_without_a_master(straight: JQ) -> None:
    await straight.aenqueue_many([straight.new_job("a")] * 3000)
    engine = await straight.aengine()
    bulk = await engine.bulk("cancel", {"queue": "a", "status": ["queued"]})
    assert (await engine.bulk(stop=True, id=bulk["id"]))["stopped"] is True
    assert (await engine.bulks())[0]["changed"] == 0
    said: list[int] = []
    bulk = await engine.bulk("cancel", {"queue": "a"}, total=3000)
    ended = await engine.carry_on(bulk, "m", lambda now: said.append(now["changed"]))
    assert ended is not None
    assert (ended["changed"], ended["stopped"], said[-1], len(said) > 1) == (3000, False, 3000, True)
    entry = (await engine.trail()).documents[0]
    assert (entry["what"], entry["count"]) == ("cancel", 3000)
