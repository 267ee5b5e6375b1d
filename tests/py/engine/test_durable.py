"""`enqueue(durable=…)`: it returns when replicas have the jobs, and says so when they have not."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from http_live import live_server
from http_support import hold_request_against_document, validator
from jqmaster import JQ
from jqmaster.engine import durable as durables
from jqmaster.engine.durable import Durable
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.errors import Invalid, NotDurable
from servers import RedisServer
from topologies import Node, nodes, until

NIL = b"\xc0"
JOBS = [({"name": "a"}, NIL), ({"name": "b"}, NIL)]


@pytest.fixture(scope="module")
def servers() -> Iterator[list[Node]]:
    with nodes(2) as (primary, replica):
        replica.follow(primary)
        until(replica.has_caught_up)
        yield [primary, replica]


@pytest.fixture
def pair(servers: list[Node]) -> Iterator[list[Node]]:
    """A primary, and a replica that is well again afterwards."""
    yield servers
    servers[1].process.send_signal(signal.SIGCONT)  # type: ignore[union-attr]
    until(servers[1].has_caught_up)


def stop(server: Node) -> None:
    """It hears and says nothing any more, and is connected."""
    assert server.process
    server.process.send_signal(signal.SIGSTOP)


class TestEngine:
    @pytest.mark.parametrize("form", ["functions", "scripts"])
    async def test_the_replica_has_what_was_enqueued(self, pair: list[Node], form: Any) -> None:
        async with connect(pair[0].url) as client:
            engine = Engine(client, "{" + form + "}", form=form)
            await load(client, engine.namespace, form=form)
            for _ in range(20):
                jobs = await engine.enqueue(JOBS, durable=Durable(1, 10.0))
                with pair[1].client() as replica:
                    assert replica.exists(*(f"{engine.namespace}:j:{job.id}" for job in jobs)) == 2

    async def test_too_few_replicas_is_an_error_that_names_the_jobs(self, pair: list[Node]) -> None:
        async with connect(pair[0].url) as client:
            engine = Engine(client, "{few}")
            await load(client, engine.namespace)
            with pytest.raises(NotDurable, match=r"after 0\.2 s 1 of 2 replicas had it") as told:
                await engine.enqueue(JOBS, durable=Durable(2, 0.2))
            documents = await engine.get(list(told.value.jobs))
            assert [one and one["name"] for one in documents] == ["a", "b"]

    async def test_a_replica_that_hangs_does_not_count_however_often_it_is_asked(self, pair: list[Node]) -> None:
        """A repeated call writes nothing of its own: what it waits for must be the first one's writes."""
        async with connect(pair[0].url) as client:
            engine = Engine(client, "{hangs}")
            await load(client, engine.namespace)
            await engine.enqueue(JOBS, durable=Durable(1, 10.0))
            stop(pair[1])
            told = []
            for _ in range(3):
                async with connect(pair[0].url) as other:
                    with pytest.raises(NotDurable) as refused:
                        again = Engine(other, engine.namespace)
                        await again.enqueue(JOBS, request="once", durable=Durable(1, 0.2))
                told.append(refused.value.jobs)
            assert told[0] == told[1] == told[2]
            pair[1].process.send_signal(signal.SIGCONT)  # type: ignore[union-attr]
            jobs = await engine.enqueue(JOBS, request="once", durable=Durable(1, 10.0))
            assert [job.id for job in jobs] == told[0]

    async def test_a_long_wait_is_no_dead_connection(self, pair: list[Node]) -> None:
        """Calls beside it, and its connection afterwards, go on."""
        async with connect(pair[0].url) as client:
            engine = Engine(client, "{long}")
            await load(client, engine.namespace)
            stop(pair[1])
            begun = time.monotonic()
            waiting = asyncio.create_task(engine.enqueue(JOBS, durable=Durable(1, 4.0)))
            while not waiting.done():
                await engine.config()
                await asyncio.sleep(0.2)
            with pytest.raises(NotDurable):
                await waiting
            assert time.monotonic() - begun >= 4.0
            assert await engine.enqueue(JOBS)

    async def test_who_gives_up_leaves_no_reply_behind(self, pair: list[Node]) -> None:
        async with connect(pair[0].url, max_connections=1) as client:
            engine = Engine(client, "{gives-up}")
            await load(client, engine.namespace)
            stop(pair[1])
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await engine.enqueue(JOBS, durable=Durable(1, 5.0))
            assert (await engine.config())["events_max"] == 0

    async def test_lost_scripts_come_back_and_what_is_refused_is_refused(self, pair: list[Node]) -> None:
        async with connect(pair[0].url) as client:
            engine = Engine(client, "{lost}", form="scripts")
            await load(client, engine.namespace, form="scripts")
            await client.script_flush()
            assert len(await engine.enqueue(JOBS, durable=Durable(1, 10.0))) == 2
            with pytest.raises(Invalid, match=r"nome"):
                await engine.enqueue([({"nome": "a"}, NIL)], durable=Durable(1, 10.0))

    async def test_a_redis_that_cannot_tell_of_disks(self, fresh_server: RedisServer) -> None:
        async with connect(fresh_server.url) as client:
            if int((await client.info("server"))["redis_version"].split(".")[0]) > 7:
                pytest.skip("this Redis has WAITAOF")
            await load(client, "{jq}")
            with pytest.raises(NotDurable, match=r"Redis did not wait for it: unknown command 'WAITAOF'") as told:
                await Engine(client).enqueue(JOBS, durable=Durable(0, 0.2, fsync=True))
            assert len(told.value.jobs) == 2


class TestWhatIsSaid:
    @pytest.mark.parametrize(("said", "durable"), [
        (None, None), (2, Durable(2)), ({}, Durable()), ({"fsync": True}, Durable(0, 1.0, True)),
        ({"fsync": True, "replicas": 1, "timeout": 10}, Durable(1, 10.0, True)),
    ])  # fmt: skip
    def test_it_is_understood(self, said: Any, durable: Durable | None) -> None:
        assert durables.parse(said, "durable") == durable

    @pytest.mark.parametrize(("said", "path"), [
        (0, "d"), (True, "d"), (101, "d"), ("1", "d"), ({"replica": 1}, "d"), ({"replicas": 0}, "d.replicas"),
        ({"timeout": 11}, "d.timeout"), ({"timeout": True}, "d.timeout"), ({"fsync": 1}, "d.fsync"),
    ])  # fmt: skip
    def test_it_is_refused(self, said: Any, path: str) -> None:
        with pytest.raises(Invalid) as refused:
            durables.parse(said, "d")
        assert refused.value.path == path

    def test_the_jobs_of_one_call_get_the_most_that_one_of_them_asks_for(self) -> None:
        specs: list[dict[str, Any]] = [{"name": "a", "durable": 2}, {"durable": {"timeout": 3, "fsync": True}}, {}]
        assert durables.taken(specs) == Durable(2, 3.0, True)
        assert specs == [{"name": "a"}, {}, {}]

    @pytest.mark.parametrize(
        ("durable", "replies", "lacking"),
        [
            (Durable(2), [b"OK", 2], None),
            (Durable(2, 0.5), [b"OK", 1], "after 0.5 s 1 of 2 replicas had it"),
            (Durable(1, 1.0, True), [b"OK", [1, 1]], None),
            (Durable(1, 1.0, True), [b"OK", [0, 1]], "after 1 s not the primary's disk had it on disk"),
            (Durable(2, 1.0, True), [b"OK", [1, 0]], "after 1 s 0 of 2 replicas had it on disk"),
        ],
    )
    def test_what_is_lacking(self, durable: Durable, replies: list[Any], lacking: str | None) -> None:
        """WAITAOF replies with [local, replicas]: https://redis.io/commands/waitaof."""
        assert durable.lacking(replies) == lacking


@pytest.fixture(scope="module")
def url(servers: list[Node]) -> Iterator[str]:
    """A master on the primary."""
    with live_server(servers[0].url, "{http}") as live:
        yield live.url


@pytest.mark.parametrize("way", ["redis", "http"])
class TestLibrary:
    @pytest.fixture
    def jq(self, pair: list[Node], url: str, way: str) -> Iterator[JQ]:
        jq = JQ(pair[0].url) if way == "redis" else JQ(url)
        yield jq
        jq.close()

    def test_a_task(self, jq: JQ, pair: list[Node]) -> None:
        @jq.job
        def add(a: int, b: int) -> int:
            return a + b

        handle = add.options(durable=1).enqueue(1, 2)
        with pair[1].client() as replica:
            assert replica.keys(f"*:j:{handle.id}")
        with pytest.raises(NotDurable) as told:
            add.options(durable={"replicas": 2, "timeout": 0.1}).enqueue(1, 2)
        [job_id] = told.value.jobs
        assert jq.handle(job_id).status() == "queued"

    def test_it_is_asked_again_with_the_same_token(self, jq: JQ, pair: list[Node]) -> None:
        stop(pair[1])
        told = []
        for _ in range(2):
            with pytest.raises(NotDurable) as refused:
                jq.enqueue_many([jq.new_job("a", durable={"timeout": 0.2})], request="again")
            told.append(refused.value.jobs)
        assert told[0] == told[1]
        pair[1].process.send_signal(signal.SIGCONT)  # type: ignore[union-attr]
        [handle] = jq.enqueue_many([jq.new_job("a", durable={"timeout": 10})], request="again")
        assert [handle.id] == told[0]


@pytest.mark.parametrize("path", ["/job", "/jobs"])
def test_what_is_lacking_is_said_as_documented(pair: list[Node], url: str, path: str) -> None:
    job = {"name": "a", "durable": {"replicas": 2, "timeout": 0.1}}
    body = job if path == "/job" else {"jobs": [job, {"name": "b"}]}
    hold_request_against_document("POST", path, body)
    answer = requests.post(url + path, json=body, headers={"accept": "application/json"}, timeout=60)
    assert answer.status_code == 504
    validator("/components/responses/NotDurable/content/application~1json/schema").validate(answer.json())
    error = answer.json()["error"]
    assert error["code"] == "NOTDURABLE" and "1 of 2 replicas" in error["message"]
    assert len(error["job_ids"]) == (1 if path == "/job" else 2)
