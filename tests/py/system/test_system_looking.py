"""How the partitions of a system are: `GET /partitions`, `jqmaster system` and `/metrics` tell it, of one look."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
import requests

from cli_support import Said, call  # noqa: F401 (fixture)
from jqmaster import JQ
from jqmaster.master.server import ServeOptions
from jqmaster.master.server import Server as MasterServer
from jqmaster.system import bringing, calls
from jqmaster.system.engine import SystemEngine
from jqmaster.system.looking import look
from jqmaster.system.record import partition_of
from systems import NIL, put, work
from topologies import cluster

COUNT = 3


@pytest.fixture
async def system(redis_url: str, namespace: str) -> AsyncIterator[SystemEngine]:
    await calls.create(redis_url, namespace, COUNT)
    engine = SystemEngine(redis_url, namespace)
    yield engine
    await engine.close()


@pytest.fixture
async def server(redis_url: str, namespace: str, system: SystemEngine) -> AsyncIterator[MasterServer]:
    async with MasterServer(ServeOptions(redis_url=redis_url, namespace=namespace, system=True, port=0)) as server:
        yield server


async def asked(server: MasterServer, path: str = "/partitions") -> Any:
    answer = await asyncio.to_thread(
        requests.get, server.url + path, headers={"accept": "application/json"}, timeout=60
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


async def until(server: MasterServer, fact: Callable[[Any], Any]) -> Any:
    """The document as soon as that is so."""
    deadline = time.monotonic() + 60
    while not fact(document := await asked(server)):
        assert time.monotonic() < deadline, document
        await asyncio.sleep(0.2)
    return document


async def test_each_partition_is_told_with_its_jobs(system: SystemEngine, server: MasterServer) -> None:
    _, one, two = await system.partitions()
    await put(one, 3, queue="a")
    await put(one, 2, queue="b")
    await work(one, "a", 1)
    await one.pick("w", "b")
    await put(two, 4, queue="off")
    await two.queue("off", paused=True)
    document = await asked(server)
    assert (document["system"], document["generation"], document["missing"]) == (system.root, 1, [])
    told = document["partitions"]
    assert [one["number"] for one in told] == [0, 1, 2] and {one["state"] for one in told} == {"active"}
    assert [one["namespace"] for one in told] == [one.namespace for one in await system.partitions()]
    assert {one["node"] for one in told} == {"one server"} and sum(one["buckets"] for one in told) == 1024
    assert [(one["queued"], one["running"], one["more"]) for one in told] == [
        (0, 0, False),
        (3, 1, False),
        (4, 0, False),
    ]
    assert [one["rates"]["done"] > 0 for one in told] == [False, True, False]
    # Nobody is behind who waits in a queue that is paused.
    assert ["oldest_ready_ms" in one for one in told] == [False, True, False]
    [oldest] = [one["oldest_ready_ms"] for one in (await one.queues(["a"])).documents]
    assert told[1]["oldest_ready_ms"] == oldest
    assert all(one["answers"] and one["generation"] == 1 and one["problem"] is None for one in told)


async def test_a_look_costs_so_much_at_most_however_many_queues_there_are(system: SystemEngine) -> None:
    called: list[str] = []

    engines = await system.partitions()
    for first in (0, 1000):
        jobs = [({"name": "a", "queue": f"q{number}"}, NIL) for number in range(first, first + 1000)]
        await engines[1].enqueue(jobs)
    for one in engines:
        one.observe = lambda script, *_: called.append(script)
    [none, most, again] = (await look(system)).document({})["partitions"]
    assert called.count("stats") == COUNT and called.count("queues") == COUNT - 1 + 10 and len(set(called)) == 2
    assert (none["queued"], none["more"], again["more"]) == (0, False, False)
    assert most["more"] and 500 < most["queued"] < 2000


async def test_settings_that_are_behind_are_told_until_they_are_not(system: SystemEngine, server: MasterServer) -> None:
    engines = await system.partitions()
    await engines[2].queue("b", paused=True)
    document = await until(server, lambda told: told["partitions"][2]["behind"])
    assert [one["behind"] for one in document["partitions"]] == [[], [], ["queue b"]]
    await bringing.sync(system)
    await until(server, lambda told: [one["behind"] for one in told["partitions"]] == [[], [], []])


async def test_a_copy_of_another_generation_is_told(system: SystemEngine, server: MasterServer) -> None:
    engines = await system.partitions()
    assert system.record is not None
    later = system.record.routed("a", "queue")
    await engines[1].system(later.packed())
    document = await until(server, lambda told: told["partitions"][1]["problem"])
    assert document["partitions"][1]["generation"] == 2
    assert [one["problem"] for one in document["partitions"]] == [
        None, "its copy is of generation 2, which is later", None
    ]  # fmt: skip


@pytest.mark.parametrize("state", ["joining", "draining", "closed"])
async def test_states_are_told_and_one_that_is_closed_is_not_asked(
    system: SystemEngine, call: Callable[..., Said], redis_url: str, namespace: str, state: str
) -> None:
    engines = await system.partitions()
    await put(engines[2], 3)
    assert system.record is not None
    *others, last = system.record.partitions
    changed = replace(system.record, generation=2, partitions=(*others, replace(last, state=state)))
    for one in engines if state != "closed" else engines[:2]:
        await one.system(changed.packed())
    said = await asyncio.to_thread(call, "system", "--redis", redis_url, "--namespace", namespace, "--json")
    assert (said.code, said.document["missing"]) == (0, []), said
    told = said.document["partitions"][2]
    assert (told["state"], told["problem"], told["answers"]) == (state, None, state != "closed")
    assert told.get("queued") == (None if state == "closed" else 3)


async def test_the_command_line_tells_the_same(
    system: SystemEngine, server: MasterServer, call: Callable[..., Said], redis_url: str, namespace: str
) -> None:
    await put((await system.partitions())[1], 3)
    of_master = await asked(server)
    said = await asyncio.to_thread(call, "system", "--redis", redis_url, "--namespace", namespace, "--json")
    assert said.code == 0
    of_command = said.document
    for document in (of_master, of_command):
        del document["now_ms"], document["jobs_ms"]
        for one in document["partitions"]:
            del one["rates"]
    assert of_command == of_master
    shown = await asyncio.to_thread(call, "system", "--redis", redis_url, "--namespace", namespace)
    assert re.search(r"^ +1 .* active +one server +\d+ +341 +3 +0 +\S.* ok +ok$", shown.out, re.M), shown.out


async def test_a_namespace_alone_has_none(redis_url: str, namespace: str) -> None:
    async with MasterServer(ServeOptions(redis_url=redis_url, namespace=namespace, port=0)) as server:
        answer = await asyncio.to_thread(requests.get, server.url + "/partitions", timeout=30)
        assert answer.status_code == 404
        assert "jq_partition" not in (await asyncio.to_thread(requests.get, server.url + "/metrics", timeout=30)).text
        jq = JQ(server.url)
        assert "partition" not in await (await jq.aenqueue("a")).aexplain()


async def test_metrics_tell_of_each_partition(system: SystemEngine, server: MasterServer) -> None:
    engines = await system.partitions()
    await put(engines[1], 3)
    await engines[1].pick("w", "a")
    await engines[2].queue("b", paused=True)
    await until(server, lambda told: told["partitions"][2]["behind"] and told["partitions"][1].get("running"))
    text = (await asyncio.to_thread(requests.get, server.url + "/metrics", timeout=30)).text
    found = dict(re.findall(r"^jq_(partition_\w+\{partition=\"\d+\"\}|system_generation) (\S+)$", text, re.M))
    figures = ("up", "ready", "running", "generation", "behind")
    told = {name: [float(found[f'partition_{name}{{partition="{one}"}}']) for one in range(COUNT)] for name in figures}
    assert told == {
        "up": [1, 1, 1], "ready": [0, 2, 0], "running": [0, 1, 0], "generation": [1, 1, 1], "behind": [0, 0, 1]
    }  # fmt: skip
    assert found["system_generation"] == "1.0"
    oldest = [name for name in found if "oldest" in name]
    assert oldest == ['partition_oldest_ready_timestamp_seconds{partition="1"}']


async def test_an_explanation_says_in_which_partition_the_job_is(
    system: SystemEngine, server: MasterServer, call: Callable[..., Said], redis_url: str, namespace: str
) -> None:
    of = {number: (await put(engine))[0] for number, engine in enumerate(await system.partitions())}
    [waits] = await system.enqueue([({"name": "last", "depends": [of[1], of[2]]}, NIL)])
    direct, over = JQ(redis_url, system=namespace), JQ(server.url)
    for number, job in of.items():
        for jq in (direct, over):
            assert (await jq.handle(job).aexplain())["partition"] == number
        assert (await asked(server, f"/job/{job}/explain"))["partition"] == number
        said = await asyncio.to_thread(call, "explain", job, "--redis", redis_url, "--system", namespace)
        assert said.out.startswith(f"job {job} (a) is queued, in queue a, in partition {number}\n")
    here = partition_of(waits.id)
    said = await asyncio.to_thread(call, "explain", waits.id, "--url", server.url)
    assert f"in partition {here}\n" in said.out
    for number in {1, 2} - {here}:
        assert f"job {of[number]} is of partition {number}" in said.out
    await asyncio.to_thread(direct.close)


async def test_a_page_of_jobs_goes_on_to_the_next_partition(system: SystemEngine, server: MasterServer) -> None:
    ids = [job for engine in await system.partitions() for job in await put(engine, 4)]
    found = await asked(server, "/jobs?queue=a&count=100&looked")
    assert sorted(one["id"] for one in found["jobs"]) == sorted(ids) and found["cursor"] == ""
    assert found["looked"] >= len(ids)
    first = await asked(server, "/jobs?queue=a&count=7")
    second = await asked(server, f"/jobs?queue=a&count=7&cursor={first['cursor']}")
    assert [len(page["jobs"]) for page in (first, second)] == [7, 5] and second["cursor"] == ""
    assert [one["id"] for page in (first, second) for one in page["jobs"]] == [one["id"] for one in found["jobs"]]


@pytest.mark.faults
async def test_a_partition_that_hangs_holds_up_none_of_this(call: Callable[..., Said]) -> None:
    with cluster(3, 0, 1500, "--cluster-require-full-coverage", "no") as nodes:
        record = await calls.create(nodes.url, "{shop}", 6)
        homes = [nodes.owner(one.namespace) for one in record.partitions]
        away = homes[1]
        assert away.process is not None and away is not homes[0]
        gone = [number for number, home in enumerate(homes) if home is away]
        there = [number for number in range(6) if number not in gone]
        async with MasterServer(ServeOptions(redis_url=nodes.url, namespace="{shop}", system=True, port=0)) as server:
            engine = SystemEngine(nodes.url, "{shop}")
            for one in await engine.partitions():
                await put(one, 3)
            lost = (await put((await engine.partitions())[1]))[0]
            await engine.close()
            before = await until(
                server, lambda told: [one.get("queued") for one in told["partitions"]].count(None) == 0
            )
            assert before["missing"] == []
            away.process.send_signal(signal.SIGSTOP)
            try:
                told = await until(server, lambda told: told["missing"])
                assert told["missing"] == gone
                for one in told["partitions"]:
                    is_there = one["number"] in there
                    assert (one["answers"], one["problem"] is None, "queued" in one) == (is_there,) * 3
                    assert one["node"] == f"127.0.0.1:{homes[one['number']].port}"
                text = (await asyncio.to_thread(requests.get, server.url + "/metrics", timeout=60)).text
                for number in range(6):
                    assert f'jq_partition_up{{partition="{number}"}} {float(number in there)}\n' in text
                    assert (f'jq_partition_ready{{partition="{number}"}}' in text) == (number in there)
                # Of a job there one hears that its partition is away.
                answer = await asyncio.to_thread(requests.get, f"{server.url}/job/{lost}", timeout=60)
                assert answer.status_code == 503 and b"partition 1, " in answer.content
                assert answer.headers["jq-missing"] == ",".join(map(str, gone))
                said = await asyncio.to_thread(call, "system", "--redis", nodes.url, "--namespace", "{shop}", "--json")
                assert said.code == 1 and said.document["missing"] == gone
            finally:
                away.process.send_signal(signal.SIGCONT)
            back = await until(server, lambda told: not told["missing"])
            assert [one["queued"] for one in back["partitions"]] == [4 if number == 1 else 3 for number in range(6)]
            assert (
                await asyncio.to_thread(lambda: requests.get(f"{server.url}/job/{lost}", timeout=60).status_code) == 200
            )
