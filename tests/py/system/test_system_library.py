"""`JQ(url, system=…)`: the methods of docs/python.md over all partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest

from jqmaster import JQ
from jqmaster.errors import Invalid, NotFound, Unavailable
from jqmaster.system import calls


@pytest.fixture
def jq(redis_url: str, namespace: str) -> Iterator[JQ]:
    asyncio.run(calls.create(redis_url, namespace, 3))
    with closing(JQ(redis_url, system=namespace)) as jq:
        yield jq


def test_what_operators_ask(jq: JQ) -> None:
    handles = [jq.enqueue("a", number, tags=["t"]) for number in range(12)]
    ids = [one.id for one in handles]
    assert {one["id"] for one in jq.jobs(queue="a")} == set(ids)
    assert [(one["name"], one["queued"]) for one in jq.queues(minutes=5)] == [("a", 12)]
    queue = jq.queue("a")
    assert queue["queued"] == 12
    jq.queue("a", paused=True)
    assert jq.queue("a")["paused"] is True
    jq.queue("a", paused=False)
    assert jq.tags() == [("t", 12)] == jq.tags(top=1)
    assert sum(one["enqueued"] for one in jq.stats("day")) == 12
    assert [one["enqueued"] for one in jq.series("day")] == [12]
    assert jq.search("a")["queues"] == ["a"]
    jq.cancel(ids[:2])
    assert jq.discard_where(status="cancelled") == 2
    assert jq.cancel_where(queue="a") == 10
    assert jq.retry_where(queue="a", status="cancelled") == 10
    assert jq.workers() == [] == jq.failures() == jq.bulks() == jq.webhooks()
    assert jq.config()["trail_max"] and jq.describe_config()
    jq.configure(trail_max=50)
    assert jq.config()["trail_max"] == 50
    key = jq.create_key("ann", ["viewer"])
    keys = jq.keys()
    assert [one["id"] for one in keys] == [key["id"]]
    jq.revoke_key(key["id"])
    assert [one["what"] for one in jq.trail()][:2] == ["revoke", "grant"]


def test_schedules(jq: JQ) -> None:
    @jq.job
    def report(name: str) -> None: ...

    jq.repeat("daily", report.job("acme"), cron="0 8 * * *")
    jq.repeat("hourly", report.job("b"), every=3600)
    assert [one["id"] for one in jq.schedules(next=2)] == ["daily", "hourly"]
    job = jq.run_schedule("daily")
    assert jq.handle(job).status() == "queued"
    jq.unschedule("daily")
    assert [one["id"] for one in jq.schedules()] == ["hourly"]


def test_what_is_not_possible_says_so(jq: JQ) -> None:
    for refused in (
        lambda: jq.constrain("c", {"name": "a"}, concurrency=1, by="queue"),
        lambda: list(jq.export()),
    ):
        with pytest.raises((Invalid, NotFound), match=r"partition|shared"):
            refused()
    with pytest.raises(Unavailable, match="need a master"):
        list(jq.events())
