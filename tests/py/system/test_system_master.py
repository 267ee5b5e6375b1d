"""A master that serves all partitions of a system as one: library, workers and operators over HTTP."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import msgpack
import pytest
import requests
from playwright.sync_api import Browser, expect

from jqmaster import JQ
from jqmaster.errors import Invalid, NotFound
from jqmaster.master import partitions
from jqmaster.master.server import ServeOptions, StartError
from jqmaster.master.server import Server as MasterServer
from jqmaster.system import calls
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import partition_of
from jqmaster.worker.run import WorkOptions, work
from parts import eventually
from processes import MasterProcess
from servers import RedisServer
from topologies import cluster
from ui_support import Server, Ui, browser  # noqa: F401 (fixture)

COUNT = 4
NIL = msgpack.packb(None)


@pytest.fixture
async def server(redis_url: str, namespace: str) -> AsyncIterator[MasterServer]:
    await calls.create(redis_url, namespace, COUNT)
    async with MasterServer(ServeOptions(redis_url=redis_url, namespace=namespace, system=True, port=0)) as server:
        yield server


@pytest.fixture
def jq(server: MasterServer) -> JQ:
    return JQ(server.url)


async def spread(jq: JQ, count: int, **options: Any) -> list[str]:
    """Jobs of several partitions; their ids."""
    ids = [(await jq.aenqueue("a", number, **options)).id for number in range(count)]
    assert len({partition_of(one) for one in ids}) > 1
    return ids


async def test_workers_over_http_do_the_jobs_of_all_partitions(server: MasterServer, jq: JQ) -> None:
    ids = await spread(jq, 40)
    seen: list[Any] = []
    stop = asyncio.Event()

    async def function(argument: Any) -> Any:
        seen.append(argument)
        return argument * 2

    task = asyncio.create_task(work(WorkOptions({"a": function}, masters=[server.url], concurrency=4), stop))
    try:
        results = [await jq.handle(job_id).aresult(timeout=60) for job_id in ids]
        assert results == [2 * number for number in range(40)] and sorted(seen) == list(range(40))
        # It sleeps now, and hears of what comes anywhere.
        for partition in await SystemEngine(server.redis_url, server.options.namespace).partitions():
            [made] = await partition.enqueue([({"name": "a", "keep_result": True}, msgpack.packb(7))])
            assert await jq.handle(made.id).aresult(timeout=60) == 14
        [worker] = await jq.aworkers(others=True)
        assert worker["state"] != "gone"
    finally:
        stop.set()
        await asyncio.wait_for(task, 60)


async def test_dependencies_and_limits_need_nothing_else(server: MasterServer, jq: JQ) -> None:
    """The master carries the mail and balances."""
    await jq.aconstrain("c", {"name": "a"}, concurrency=2)
    ids = await spread(jq, 8)
    last = await jq.aenqueue("last", None, depends=ids)
    running, most = 0, 0
    stop = asyncio.Event()

    async def function(_: Any) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1

    functions = {"a": function, "last": lambda _: None}
    task = asyncio.create_task(work(WorkOptions(functions, masters=[server.url], concurrency=8), stop))
    try:
        await last.aresult(timeout=60)
        assert 1 <= most <= 2
    finally:
        stop.set()
        await asyncio.wait_for(task, 60)


async def test_what_is_due_is_done_while_nobody_works(
    redis_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "SWEEP_S", 0.1)
    monkeypatch.setattr(partitions, "_EACH_S", 0.1)
    await calls.create(redis_url, namespace, COUNT)
    async with MasterServer(ServeOptions(redis_url=redis_url, namespace=namespace, system=True, port=0)) as server:
        assert server.url
        engine = SystemEngine(redis_url, namespace)
        for number in range(8):
            await engine.schedule(f"s{number}", {"name": "a"}, every=0.5)

        async def are_made() -> bool:
            return all(one["made"] for one in (await engine.schedules()).documents)

        await eventually(are_made, 60)
        await engine.close()


async def test_what_operators_ask_is_of_all_partitions(server: MasterServer, jq: JQ) -> None:
    ids = await spread(jq, 20, tags=["t"])
    [queue] = await jq.aqueues()
    assert (queue["name"], queue["queued"]) == ("a", 20)
    assert sorted([one["id"] async for one in jq.ajobs(queue="a")]) == sorted(ids)
    await jq.aqueue("a", paused=True)
    engine = SystemEngine(server.redis_url, server.options.namespace)
    for one in await engine.partitions():
        [document] = (await one.queues(["a"])).documents
        assert document["paused"]
    await jq.aqueue("a", paused=False)
    told = await asyncio.to_thread(requests.get, f"{server.url}/overview", headers={"accept": "application/json"})
    assert told.json()["totals"]["queued"] == 20 and told.json()["missing"] == []
    assert "jq-missing" not in told.headers
    health = await asyncio.to_thread(requests.get, f"{server.url}/health", headers={"accept": "application/json"})
    assert (health.json()["status"], health.json()["missing"]) == ("ok", [])
    session = await asyncio.to_thread(requests.get, f"{server.url}/session", headers={"accept": "application/json"})
    assert session.json()["master"]["partitions"] == COUNT
    metrics = (await asyncio.to_thread(requests.get, f"{server.url}/metrics")).text
    assert re.search(r'^jq_queue_jobs\{queue="a",state="queued"\} 20', metrics, re.MULTILINE), metrics
    await engine.close()


async def test_who_lists_is_told_what_is_missing(
    server: MasterServer, jq: JQ, caplog: pytest.LogCaptureFixture
) -> None:
    ids = await spread(jq, 20)
    engine = server.master.engine
    assert isinstance(engine, SystemEngine)

    async def lists() -> bool:
        """Whether partition 2 alone is missing: all are while the machine stands still."""
        engine.heard(2, answers=False)
        return [one["queued"] for one in await jq.aqueues()] == [sum(partition_of(one) != 2 for one in ids)]

    for _ in range(2):
        await eventually(lists)
    messages = [one.message for one in caplog.records if "is missing in listings" in one.message]
    assert "partitions 2 of the system do not answer: what is there is missing in listings" in messages
    assert all(one != following for one, following in pairwise(messages)), "it is said once"


async def test_bulks_go_through_all_partitions(server: MasterServer, jq: JQ) -> None:
    ids = await spread(jq, 30)
    body = {"what": "cancel", "where": {"queue": "a"}}
    made = await asyncio.to_thread(requests.post, f"{server.url}/bulks", json=body)
    assert made.status_code < 300, made.text
    bulk = msgpack.unpackb(made.content) if "msgpack" in made.headers["content-type"] else made.json()

    async def ended() -> bool:
        told = await asyncio.to_thread(requests.get, f"{server.url}/bulks", headers={"accept": "application/json"})
        return any(one["id"] == bulk["id"] and one.get("ended_ms") for one in told.json()["bulks"])

    deadline = time.monotonic() + 60
    while not await ended():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)
    assert {(await jq.handle(one).adocument())["status"] for one in ids} == {"cancelled"}


async def test_what_is_not_possible_says_so(server: MasterServer, jq: JQ) -> None:
    await jq.aconfigure(events_max=100)
    for method, path, body, what in (
        ("POST", "/worker", {"queues": ["a"]}, "register without announce"),
        ("GET", "/export", None, "export"),
    ):
        answer = await asyncio.to_thread(
            requests.request, method, server.url + path, json=body, headers={"accept": "application/json, */*"}
        )
        assert answer.status_code == 400 and what in answer.text, (path, answer.status_code, answer.text)
    with pytest.raises(NotFound):
        await jq.handle("0" * 14 + "63").adocument()
    with pytest.raises(Invalid):
        await jq.aenqueue("")


async def test_a_master_needs_the_system(redis_url: str, namespace: str) -> None:
    with pytest.raises(StartError, match="no system"):
        async with MasterServer(ServeOptions(redis_url=redis_url, namespace=namespace, system=True, port=0)):
            pass


# -- partitions that are away --------------------------------------------------------------------------


@pytest.mark.faults
async def test_the_others_go_on_while_a_node_is_away() -> None:
    with cluster(3, 0, 1500, "--cluster-require-full-coverage", "no") as nodes:
        await calls.create(nodes.url, "{shop}", 6)
        async with MasterServer(ServeOptions(redis_url=nodes.url, namespace="{shop}", system=True, port=0)) as server:
            engine = SystemEngine(nodes.url, "{shop}")
            partitions = await engine.partitions()
            away = [number for number, one in enumerate(partitions) if nodes.owner(one.namespace) is nodes.primaries[1]]
            for one in partitions:
                await one.enqueue([({"name": "a"}, NIL)] * 3)
            await engine.close()

            def told(path: str) -> requests.Response:
                return requests.get(server.url + path, headers={"accept": "application/json"}, timeout=60)

            nodes.primaries[1].kill()

            async def is_missing() -> bool:
                answer = await asyncio.to_thread(told, "/queues")
                return answer.headers.get("jq-missing") == ",".join(map(str, away))

            deadline = time.monotonic() + 60
            while not await is_missing():
                assert time.monotonic() < deadline
            [queue] = (await asyncio.to_thread(told, "/queues")).json()["queues"]
            assert queue["queued"] == 3 * (6 - len(away))
            health = (await asyncio.to_thread(told, "/health")).json()
            assert (health["status"], health["missing"]) == ("ok", away)
            found = (await asyncio.to_thread(told, "/jobs?count=100")).json()
            assert found["cursor"] or len(found["jobs"]) == 3 * (6 - len(away))
            seen: list[Any] = []
            stop = asyncio.Event()

            async def function(argument: Any) -> None:
                seen.append(argument)

            task = asyncio.create_task(work(WorkOptions({"a": function}, masters=[server.url]), stop))
            await eventually(lambda: len(seen) == 3 * (6 - len(away)), 60)
            nodes.primaries[1].start()
            stop.set()
            await asyncio.wait_for(task, 60)


@pytest.fixture
def site(fresh_server: RedisServer) -> Iterator[tuple[RedisServer, MasterProcess]]:
    create = calls.create(fresh_server.url, "{shop}", 3)
    with ThreadPoolExecutor() as pool:  # Playwright has a loop in this thread
        pool.submit(asyncio.run, create).result()
    with MasterProcess("--redis", fresh_server.url, "--system", "{shop}") as master:
        yield fresh_server, master


def test_pages_show_all_partitions(site: tuple[RedisServer, MasterProcess], browser: Browser) -> None:
    _, master = site
    server = Server(master.url)
    ids = [server.enqueue("a")[0] for _ in range(12)]
    assert len({partition_of(one) for one in ids}) > 1
    ui = Ui(browser.new_context(), server)
    for path, text in (
        ("/", "12"),
        ("/queues", "12"),
        ("/queue/a", "12"),
        (f"/job/{ids[0]}", ids[0]),
        ("/jobs", ids[-1]),
    ):
        ui.go(path)
        expect(ui.page.locator("main")).to_contain_text(text)
    for path in ("/failures", "/constraints", "/schedules", "/workers", "/enqueue", "/trail", "/keys"):
        ui.go(path)
        expect(ui.page.locator("h1")).to_be_visible()
    ui.close()


@pytest.mark.faults
def test_pages_say_which_partitions_are_missing(browser: Browser) -> None:
    with cluster(3, 0, 1500, "--cluster-require-full-coverage", "no") as nodes:
        with ThreadPoolExecutor() as pool:
            record = pool.submit(asyncio.run, calls.create(nodes.url, "{shop}", 3)).result()
        away = nodes.owner(record.partitions[2].namespace)
        assert away.process is not None
        with MasterProcess("--redis", nodes.url, "--system", "{shop}") as master:
            server = Server(master.url)
            for _ in range(9):
                server.enqueue("a")
            tabs = [Ui(browser.new_context(), server).go(path) for path in ("/", "/queues", "/failures")]
            for ui in tabs:
                expect(ui.page.locator("#banner")).to_be_hidden()
                ui.refusals = 1000
            away.process.send_signal(signal.SIGSTOP)
            for ui in tabs:
                banner = ui.page.locator("#banner")
                expect(banner).to_contain_text("Partition 2 does not answer. What is there is missing", timeout=60_000)
            away.process.send_signal(signal.SIGCONT)
            for ui in tabs:
                expect(ui.page.locator("#banner")).to_be_hidden(timeout=60_000)
