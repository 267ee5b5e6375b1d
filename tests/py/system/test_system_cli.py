"""Commands with `--system`: all partitions of a system at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cli_support import Said, call  # noqa: F401 (fixture)
from jqmaster.cli.clients import Client
from jqmaster.cli.places import Place
from jqmaster.cli.top import Watch
from jqmaster.engine.engine import Engine, connect
from jqmaster.system import calls
from jqmaster.system.record import System

COUNT = 3


@pytest.fixture
def record(redis_url: str, namespace: str) -> System:
    return asyncio.run(calls.create(redis_url, namespace, COUNT))


@pytest.fixture
def ok(call: Callable[..., Said], redis_url: str, namespace: str, record: System) -> Callable[..., Said]:
    def called(command: str, *arguments: str) -> Said:
        said = call(command, "--redis", redis_url, "--system", namespace, *arguments)
        assert said.code == 0, said
        return said

    return called


def at(url: str, namespace: str, ask: Callable[[Engine], Any]) -> Any:
    """What one partition says."""

    async def asked() -> Any:
        async with connect(url) as redis:
            return await ask(Engine(redis, namespace))

    return asyncio.run(asked())


def enqueued(ok: Callable[..., Said], count: int = 12) -> list[str]:
    return [ok("enqueue", "a", str(number), "--tag", "t").out.strip() for number in range(count)]


def test_jobs_are_listed_changed_and_told_of_wherever_they_are(ok: Callable[..., Said]) -> None:
    ids = enqueued(ok)
    assert len({job[14:] for job in ids}) > 1
    assert sorted(one["id"] for one in ok("jobs", "--json", "--limit", "100").documents) == sorted(ids)
    for job in ids[:4]:
        assert ok("get", job, "--json").document["id"] == job
        assert job in ok("explain", job, "--json").out
    [queue] = ok("queues", "--json").documents
    assert (queue["name"], queue["queued"]) == ("a", 12)
    assert "12" in ok("queues", "show", "a").out
    assert ok("tags", "--json").documents == [{"tag": "t", "count": 12}]
    ok("cancel", *ids[:2])
    ok("change", ids[2], "--priority", "5")
    ok("cancel", "--queue", "a", "--yes")
    ok("retry", ids[0])
    assert ok("discard", "--status", "cancelled", "--yes", "--json").document == {"changed": 11}


def test_settings_are_those_of_all(ok: Callable[..., Said], redis_url: str, record: System) -> None:
    enqueued(ok, 3)
    ok("queues", "pause", "a")
    ok("config", "set", "trail_max=77")
    ok("schedules", "set", "s", "a", "--every", "1h")
    ok("mark", "deploy")
    ok("keys", "create", "ann", "--role", "viewer")
    for one in record.partitions:
        assert at(redis_url, one.namespace, lambda engine: engine.config())["trail_max"] == 77
        assert at(redis_url, one.namespace, lambda engine: engine.queues(["a"])).documents[0]["paused"]
    assert [one["id"] for one in ok("schedules", "--json").documents] == ["s"]
    assert len(ok("keys", "--json").documents) == len(ok("marks", "--json").documents) == 1
    assert [one["what"] for one in ok("trail", "--json").documents] == ["grant", "mark", "schedule", "config", "queue"]
    ok("queues", "resume", "a")
    for command in ("stats", "failures", "constraints", "workers", "bulks", "webhooks", "audit"):
        ok(command, "--json")


def test_a_partition_with_other_settings_is_told_and_brought_back(
    ok: Callable[..., Said], call: Callable[..., Said], redis_url: str, namespace: str, record: System
) -> None:
    where = ["--redis", redis_url, "--namespace", namespace]
    at(redis_url, record.partitions[2].namespace, lambda engine: engine.queue("b", paused=True))
    shown = call("system", *where, "--json")
    assert shown.code == 1
    assert [one["behind"] for one in shown.document["partitions"]] == [[], [], ["queue b"]]
    assert "partition 2 is behind: queue b\n" in call("system", *where).out
    doctored = call("doctor", "--redis", redis_url, "--system", namespace, "--json")
    [finding] = [one for one in doctored.documents if one["check"] == "settings"]
    assert finding["level"] == "warning" and finding["values"]["partitions"] == [2] and "queue b" in finding["means"]
    assert ok("system", "sync").out == "partition 2: queue b\n"
    assert call("system", "sync", *where).out == "all partitions have the latest settings\n"
    assert call("system", *where).code == 0


def test_the_doctor_tells_once_what_all_have_and_names_the_partition_else(
    call: Callable[..., Said], redis_url: str, namespace: str, record: System
) -> None:
    def pause(name: str) -> Callable[[Engine], Any]:
        async def paused(engine: Engine) -> None:
            await engine.queue(name, paused=True)
            await engine.enqueue([({"name": name}, b"\xc0")])

        return paused

    for number, one in enumerate(record.partitions):
        at(redis_url, one.namespace, pause("all"))
        if number:
            at(redis_url, one.namespace, pause("some"))
    said = call("doctor", "--redis", redis_url, "--system", namespace, "--json")
    assert said.code == 1
    found = [one for one in said.documents if one["check"] == "paused"]
    assert [(one["title"], one["values"]["partitions"]) for one in found] == [
        ("queue all is paused, and 1 job waits", [0, 1, 2]),
        ("queue some is paused, and 1 job waits (partitions 1, 2)", [1, 2]),
    ]
    titles = [one["title"] for one in said.documents]
    assert len(titles) == len(set(titles))
    assert "partitions 1, 2" in call("doctor", "--redis", redis_url, "--system", namespace).out


def test_top_looks_at_all(ok: Callable[..., Said], redis_url: str, namespace: str) -> None:
    enqueued(ok, 9)
    client = Client(Place(redis_url, namespace, is_system=True))
    try:
        looked = Watch(client).look()
    finally:
        client.close()
    assert looked.totals["queued"] == 9 and [one["name"] for one in looked.queues] == ["a"]


def test_where_it_does_not_go_it_is_refused(
    call: Callable[..., Said], redis_url: str, namespace: str, record: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = call("queues", "--redis", redis_url, "--system", namespace, "--namespace", namespace)
    assert both.code == 2 and "not both" in both.err
    master = call("queues", "--url", "http://127.0.0.1:1", "--system", namespace)
    assert master.code == 2 and "a master serves one namespace" in master.err
    bench = call("bench", "--redis", redis_url, "--system", namespace)
    assert bench.code == 2 and "works in one namespace" in bench.err
    none = call("queues", "--redis", redis_url, "--system", "{none}")
    assert none.code != 0 and "is no system" in none.err
    where = ["--redis", redis_url, "--system", namespace]
    copy = call("export", "/dev/null", *where)
    assert copy.code == 2 and "partition" in copy.err
    monkeypatch.setenv("JQ_SYSTEM", namespace)
    at(redis_url, record.partitions[1].namespace, lambda engine: engine.enqueue([({"name": "b"}, b"\xc0")]))
    assert [one["name"] for one in call("queues", "--redis", redis_url, "--json").documents] == ["b"]
    assert call("queues", "--redis", redis_url, "--json", "--namespace", namespace).documents == []
    assert call("--system", namespace, "queues", "--redis", redis_url, "--json").code == 0
