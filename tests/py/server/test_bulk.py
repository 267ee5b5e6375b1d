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
        jq.enqueue_many([jq.call("a")] * 1000)


@pytest.mark.faults
def test_a_master_goes_on_where_another_died(straight: JQ, redis_url: str, namespace: str) -> None:
    enqueue(straight, JOBS)
    options = ("--redis", redis_url, "--namespace", namespace)
    with MasterProcess(*options) as first:
        bulk = JQ(first.url).begin_bulk("discard", {"queue": "a"}, total=JOBS)
        assert (bulk["changed"], bulk["total"]) == (0, JOBS)
        with pytest.raises(Conflict):
            straight.begin_bulk("retry", {"queue": "a"})
        until(lambda: straight.bulks()[0]["changed"])
        first.kill()
    [left] = straight.bulks()
    assert 0 < left["changed"] < JOBS and "ended_ms" not in left
    with MasterProcess(*options) as second:
        ended = JQ(second.url).follow_bulk(left)
    # What the first did last may not have been told any more.
    assert ended["resumed"] == 1 and 0 <= JOBS - ended["changed"] <= 1000
    assert straight.queue("a")["queued"] == 0


def test_it_is_stopped_and_done_without_a_master(straight: JQ) -> None:
    enqueue(straight, 3000)
    bulk = straight.begin_bulk("cancel", {"queue": "a", "status": ["queued"]})
    assert straight.stop_bulk(bulk["id"])["stopped"] is True
    assert straight.follow_bulk(straight.bulks()[0])["changed"] == 0
    said: list[int] = []
    ended = straight.follow_bulk(
        straight.begin_bulk("cancel", {"queue": "a"}, total=3000), lambda now: said.append(now["changed"])
    )
    assert (ended["changed"], ended["stopped"], said[-1], len(said) > 1) == (3000, False, 3000, True)
    entry = next(iter(straight.trail()))
    assert (entry["what"], entry["count"]) == ("cancel", 3000)
