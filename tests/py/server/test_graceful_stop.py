"""A master that is told to stop: no new work, long polls answered, deliveries finished, within a bound."""

from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path
from typing import Any

import aiohttp
import msgpack
import pytest
from aiohttp import web

from jqmaster import JQ
from jqmaster.engine.engine import Engine, connect
from jqmaster.server.server import ServeOptions, Server
from parts import LONG_S, enqueue, eventually, hang, listening, until
from processes import MasterProcess, Process
from test_embedded import ends, folder, pid_of  # noqa: F401

pytestmark = pytest.mark.faults

HEADERS = {"content-type": "application/msgpack", "worker-id": "puller"}


async def _post(session: aiohttp.ClientSession, url: str, body: Any) -> tuple[int, Any]:
    async with session.post(url, data=msgpack.packb(body), headers=HEADERS) as response:
        content = await response.read()
        return response.status, msgpack.unpackb(content) if content else None


async def _sleeps(engine: Engine, channels: int) -> bool:
    return int(await engine.redis.hlen(f"{engine.namespace}:sleepers")) >= channels


async def test_sigterm_answers_long_polls_at_once(redis_url: str, namespace: str) -> None:
    with MasterProcess("--redis", redis_url, "--namespace", namespace) as master:
        async with aiohttp.ClientSession() as session, connect(redis_url) as redis:
            engine = Engine(redis, namespace)
            job = await enqueue(engine, "other")
            await eventually(lambda: _sleeps(engine, 1))
            pick = asyncio.create_task(_post(session, f"{master.url}/pick", {"queues": "mail", "timeout": 300}))
            poll = asyncio.create_task(session.get(f"{master.url}/job/{job}/polling?timeout=300"))
            await eventually(lambda: _sleeps(engine, 2))
            master.signal()
            status, reply = await asyncio.wait_for(pick, LONG_S)
            assert (status == 200 and reply["jobs"] == []) or status == 503
            assert (await asyncio.wait_for(poll, LONG_S)).status in (408, 503)
            assert await asyncio.to_thread(master.ends) == 0
            assert "WARNING" not in master.text


async def test_deliveries_under_way_are_finished(redis_url: str, namespace: str) -> None:
    go_on = asyncio.Event()

    async def slow(_job: dict[str, Any]) -> web.Response:
        await go_on.wait()
        return web.Response(body=msgpack.packb({"type": "success", "result": 42}))

    with MasterProcess("--redis", redis_url, "--namespace", namespace) as master:
        async with listening(slow) as stub, connect(redis_url) as redis:
            engine = Engine(redis, namespace)
            await engine.register("slow", "*", url=stub.url)
            job = (await JQ(master.url).aenqueue("mail")).id
            await stub.delivered()
            master.signal()
            await eventually(lambda: "stopping" in master.text)
            later = await enqueue(engine)
            go_on.set()
            assert await asyncio.to_thread(master.ends) == 0
            assert (await until(engine, job, "done"))["result"] == msgpack.packb(42)
            assert (await until(engine, later, "queued"))["attempt"] == 0


async def test_the_stop_is_bounded_whatever_hangs(redis_url: str, namespace: str) -> None:
    options = ("--redis", redis_url, "--namespace", namespace, "--stop-timeout", "1")
    with MasterProcess(*options) as master:
        async with listening(hang) as stub, connect(redis_url) as redis:
            engine = Engine(redis, namespace)
            await engine.register("hangs", "*", url=stub.url)
            await enqueue(engine)
            await stub.delivered()
            # A client that sends half a request and waits is no reason to stay either.
            with socket.create_connection(("127.0.0.1", master.port)) as half:
                half.sendall(b"POST /job HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nabc")
                with socket.create_connection(("127.0.0.1", master.port)) as refused:
                    refused.sendall(b"POST /job HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\nabc")
                    assert refused.recv(12) == b"HTTP/1.1 413"
                    master.signal()
                    assert await asyncio.to_thread(master.ends) == 0
                assert half.recv(12) == b"HTTP/1.1 503", "not that the client was too slow"
        assert "Traceback" not in master.text


async def test_a_second_signal_stops_at_once(folder: Path) -> None:
    with MasterProcess("--data-dir", str(folder), "--stop-timeout", "600") as master:
        pid = pid_of(folder)
        async with listening(hang) as stub:
            async with connect(master.redis_url) as redis:
                await Engine(redis).register("hangs", "*", url=stub.url)
            await JQ(master.url).aenqueue("mail")
            await stub.delivered()
            master.signal()
            await eventually(lambda: "stopping" in master.text)
            master.signal(signal.SIGINT)
            assert await asyncio.to_thread(master.ends) == 128 + signal.SIGINT
    assert ends(pid)


async def test_outcomes_are_taken_until_the_end(redis_url: str, namespace: str) -> None:
    """While a synchronous delivery holds the stop up, another worker's report still gets through."""
    go_on = asyncio.Event()

    async def slow(_job: dict[str, Any]) -> web.Response:
        await go_on.wait()
        return web.Response(body=msgpack.packb({"type": "success"}))

    async with (
        listening(slow) as stub,
        connect(redis_url) as redis,
        Server(ServeOptions(redis_url=redis_url, namespace=namespace, port=0)) as server,
        aiohttp.ClientSession() as session,
    ):
        engine = Engine(redis, namespace)
        await engine.register("slow", "mail", url=stub.url)
        await enqueue(engine)
        await stub.delivered()
        other = await enqueue(engine, "other")
        [job] = (await engine.pick("puller", "other")).jobs
        stopping = asyncio.create_task(server.stop())
        await eventually(server.master.draining.is_set)
        outcome = {"id": other, "token": job.token, "type": "success"}
        status, _ = await _post(session, f"{server.url}/done", {"outcomes": [outcome]})
        assert status == 200
        async with session.get(f"{server.url}/job/{other}/polling") as polled:
            assert (polled.status, (await polled.json())["status"]) == (200, "done")
        go_on.set()
        await asyncio.wait_for(stopping, 60)


async def test_an_own_redis_stops_with_its_master_and_keeps_the_jobs(folder: Path) -> None:
    with MasterProcess("--data-dir", str(folder)) as master:
        pid = pid_of(folder)
        job = await JQ(master.url).aenqueue("mail", {"to": "me"})
        master.signal()
        assert await asyncio.to_thread(master.ends) == 0
    assert ends(pid)
    with MasterProcess("--data-dir", str(folder)) as master:
        assert (await JQ(master.url).handle(job.id).adocument())["argument"] == {"to": "me"}
        master.signal()
        assert await asyncio.to_thread(master.ends) == 0


# -- starting -------------------------------------------------------------------------------------


def test_a_port_in_use_is_named(redis_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Process("jqmaster.cli", "serve", "--redis", redis_url, "--port", str(port)) as master:
            assert master.ends() == 1
            assert f"127.0.0.1:{port}" in master.text and "in use" in master.text


def test_a_redis_that_is_not_there_is_named() -> None:
    url = "redis://user:secret@127.0.0.1:1/0"
    with Process("jqmaster.cli", "serve", "--redis", url, "--port", "0") as master:
        assert master.ends() == 4
        assert "127.0.0.1:1" in master.text and "secret" not in master.text and "Traceback" not in master.text
