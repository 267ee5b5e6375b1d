"""The operations by way of a master when something goes wrong on the way: who answers, and what was repeated."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgpack
import pytest
from aiohttp import web

from bare import worker_of
from jqmaster import JQ
from jqmaster.connection import plainly
from jqmaster.engine.engine import Engine
from jqmaster.engine.http import MOST_IDLE, HttpEngine
from jqmaster.errors import Unavailable
from jqmaster.server.server import ServeOptions, Server
from jqmaster.worker.sources import HttpSource
from parts import enqueue, eventually, until
from surface_support import own, server
from topologies import Proxy

__all__ = ["own", "server"]


@asynccontextmanager
async def somebody(body: bytes, content_type: str, status: int = 200) -> AsyncIterator[str]:
    """The URL of one who answers everything with this."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body, headers={"content-type": content_type})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(b"<html>Log in</html>", "text/html"), (b"", "text/plain")],
)
async def test_who_is_no_master_is_named(body: bytes, content_type: str) -> None:
    async with somebody(body, content_type) as url:
        jq = JQ(url)
        for asked in (jq.acall("queues"), jq.aenqueue("a"), jq.handle("0" * 14).adocument(), jq.handle("a").aresult(0)):
            with pytest.raises(Unavailable, match=f"{url} answers 200 and {len(body)} bytes of {content_type}"):
                await asked
        engine = HttpEngine([url])
        for call in (engine.pick("w", "a"), engine.finish("w"), engine.beat("w"), engine.tags()):
            with pytest.raises(Unavailable, match="is it a JQ server"):
                await call
        await engine.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/msgpack; x=y\r\n"
ANSWERS = {
    OK + b"Content-Length: 2\r\n\r\n\x91\x01": [1],
    OK + b"\r\n\x91\x01": "expected a length, got 'none'",
    b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"transfer-encoding: Chunked\r\n\r\n"
    b"1\r\n\x91\r\n1;x=y\r\n\x01\r\n0\r\ntrailer: 1\r\n\r\n": [1],
    OK + b"content-length: many\r\n\r\n": "expected a length, got 'many'",
    OK + b"transfer-encoding: chunked\r\n\r\nxyz\r\n": "expected a length",
    OK + b"content-length: 5\r\n\r\n\x91\x01": "the connection was closed",
    b"SSH-2.0-OpenSSH_9.2\r\n\r\n": "not an HTTP/1 response: 'SSH-2.0-OpenSSH_9.2'",
    b"x" * 100_000: "very long header",
    b"": "the connection was closed",
}


@pytest.mark.parametrize("answer", ANSWERS, ids=range(len(ANSWERS)))
@pytest.mark.parametrize("is_plain", [True, False])
async def test_answers_are_read_however_they_come(answer: bytes, is_plain: bool) -> None:
    async def give(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for at in range(0, len(answer), 1 + len(answer) // 100):
            writer.write(answer[at : at + 1 + len(answer) // 100])
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    async with await asyncio.start_server(give, "127.0.0.1", 0) as stub:
        engine = HttpEngine([f"http://127.0.0.1:{stub.sockets[0].getsockname()[1]}"])
        asked = asyncio.to_thread(plainly.run, engine.raw("tags")) if is_plain else engine.raw("tags")
        expected = ANSWERS[answer]
        if isinstance(expected, str):
            with pytest.raises(Unavailable, match=expected):
                await asked
        else:
            assert await asked == expected
        await engine.close()


@pytest.mark.parametrize("is_plain", [True, False])
async def test_a_connection_is_used_again(is_plain: bool) -> None:
    """One at a time need one, unless the master has closed it meanwhile."""
    accepted: list[asyncio.StreamWriter] = []

    async def give(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(1)  # no arguments
                writer.write(OK + b"content-length: 2\r\n\r\n\x91\x01")

    async with await asyncio.start_server(give, "127.0.0.1", 0) as stub:
        engine = HttpEngine([f"http://127.0.0.1:{stub.sockets[0].getsockname()[1]}"])
        for connections in (1, 1, 1, 2, 2):
            if connections > len(accepted) > 0:
                accepted[-1].close()
                await asyncio.sleep(0.1)
            await (asyncio.to_thread(plainly.run, engine.raw("tags")) if is_plain else engine.raw("tags"))
            assert len(accepted) == connections
        await engine.close()


async def test_connections_beyond_those_that_are_kept_are_closed() -> None:
    ended = 0

    async def give(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal ended
        with suppress(asyncio.IncompleteReadError, OSError):
            while await reader.readuntil(b"\r\n\r\n"):
                await asyncio.sleep(0.2)
                writer.write(OK + b"content-length: 2\r\n\r\n\x91\x01")
        ended += 1

    async with await asyncio.start_server(give, "127.0.0.1", 0) as stub:
        engine = HttpEngine([f"http://127.0.0.1:{stub.sockets[0].getsockname()[1]}"])
        await asyncio.gather(*(engine.send("GET", "/") for _ in range(MOST_IDLE + 10)))
        await eventually(lambda: ended == 10, 5)
        await engine.close()


def test_it_is_closed_while_other_threads_call() -> None:
    engine = HttpEngine([f"http://127.0.0.1:1/{number}" for number in range(1000)])  # nobody listens

    def call() -> None:
        with suppress(Unavailable):
            plainly.run(engine.raw("tags"))

    calling = threading.Thread(target=call)
    calling.start()
    while calling.is_alive():
        plainly.run(engine.close())


async def test_a_call_whose_answer_was_lost_is_not_made_again(server: Server, own: Engine) -> None:
    async with Proxy(int(server.url.rpartition(":")[2])) as proxy:
        proxy.loses = lambda: not proxy.lost
        engine = HttpEngine([proxy.url.replace("redis:", "http:"), server.url])
        with pytest.raises(Unavailable):
            await engine.enqueue([({"name": "a"}, b"\xc0")])
        assert (await own.queue("a"))["queued"] == 1
        await engine.close()


def refused(server: Server) -> float:
    """How many requests it has answered with 503."""
    return sum(
        sample.value
        for metric in server.master.meters.registry.collect()
        for sample in metric.samples
        if sample.labels.get("status") == "503" and sample.name.endswith("_count")
    )


async def test_a_server_that_has_no_room_is_asked_again(server: Server, own: Engine) -> None:
    server.app.most_bytes = 300_000
    _, other = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
    other.write(b"POST /job HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n" + b"x" * 250_000)
    await eventually(lambda: server.app.bytes > 200_000)
    engine = HttpEngine([server.url])
    asking = asyncio.create_task(engine.enqueue([({"name": "a"}, msgpack.packb("x" * 100_000))]))
    await eventually(lambda: refused(server))
    other.close()
    assert [job.id for job in await asking]
    await engine.close()


@pytest.mark.parametrize("others", [0, 1])
async def test_a_server_that_stops_is_asked_again_or_another_one(
    server: Server, own: Engine, redis_url: str, others: int
) -> None:
    job = await enqueue(own, "a")
    async with Server(ServeOptions(redis_url=redis_url, namespace=own.namespace, port=0)) as other:
        engine = HttpEngine([server.url, other.url][: 1 + others])
        server.master.draining.set()
        picking = asyncio.create_task(engine.pick("w", "a"))
        await eventually(lambda: refused(server))
        if not others:
            server.master.draining.clear()
        assert [picked.id for picked in (await picking).jobs] == [job]
        await engine.close()


async def test_what_waits_at_a_server_does_not_wait_longer_when_it_is_sent_again(server: Server, own: Engine) -> None:
    job = await enqueue(own, "a")
    server.master.draining.set()
    waiting = asyncio.create_task(JQ(server.url, wait=2).handle(job).aresult(timeout=2.5))
    await eventually(lambda: refused(server))
    server.master.draining.clear()
    with pytest.raises(TimeoutError, match="has not ended"):
        await waiting


async def test_what_only_reads_is_asked_of_the_next(server: Server) -> None:
    async with Proxy(int(server.url.rpartition(":")[2])) as proxy:
        proxy.loses = lambda: not proxy.lost
        engine = HttpEngine([proxy.url.replace("redis:", "http:"), server.url])
        assert ((await engine.queues()).documents, proxy.lost) == ([], 1)
        await engine.close()


async def test_a_source_that_stops_leaves_nothing_behind(server: Server, own: Engine) -> None:
    """What is given back when a fetch is cancelled is given back, or let go, before the connections close."""
    async with Proxy(int(server.url.rpartition(":")[2])) as proxy:
        source = HttpSource(proxy.url.replace("redis:", "http:"), ["a"])
        fetching = asyncio.create_task(source.fetch(1))
        await asyncio.sleep(0.3)
        proxy.silence()
        fetching.cancel()
        await asyncio.gather(fetching, return_exceptions=True)
        unheard: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
        await source.stop()
        left = [task for task in asyncio.all_tasks() if "HttpSource" in str(task.get_coro())]
        assert (left, unheard) == ([], [])


async def test_a_worker_outlives_a_master_that_fails(server: Server, own: Engine) -> None:
    """What is wrong within a master says nothing of an outcome: it is reported again, to the next."""
    job = await enqueue(own, "a", 1, keep_result=True)
    fault = msgpack.packb({"error": {"code": "INTERNAL", "message": "a fault"}})
    async with somebody(fault, "application/msgpack", 500) as url:
        source = HttpSource([url, server.url], ["a"])
        stop = asyncio.Event()
        working = asyncio.create_task(worker_of({"a": lambda it: it + 1}, source).run(stop))
        await until(own, job, "done")
        stop.set()
        await eventually(working.done)
        await source.stop()


async def test_a_server_that_hangs_is_left_for_the_next(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jqmaster.engine.http.SILENT_S", 0.3)
    async with Proxy(int(server.url.rpartition(":")[2])) as proxy:
        engine = HttpEngine([proxy.url.replace("redis:", "http:"), server.url])
        assert (await engine.call("queues")).documents == []
        proxy.silence()  # as of a process that is stopped: connections are kept, and accepted
        for _ in range(2):
            assert (await asyncio.wait_for(engine.call("queues"), 5)).documents == []
        await engine.close()


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_connection_that_was_closed_meanwhile_is_not_used_again(kind: str) -> None:
    """A server closes what is idle, and the loop may have had no turn since."""
    listening = socket.create_server(("127.0.0.1", 0))
    content = msgpack.packb("ok")
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/msgpack\r\ncontent-length: %d\r\n\r\n" % len(content)

    def serve() -> None:
        for _ in range(2):
            connection, _ = listening.accept()
            connection.recv(4096)
            connection.sendall(answer + content)
            connection.close()

    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    engine = HttpEngine([f"http://127.0.0.1:{listening.getsockname()[1]}"])

    async def calls() -> list[Any]:
        values = []
        for _ in range(2):
            values.append(msgpack.unpackb((await engine.send("POST", "/call/mark", b"x", is_read=False)).body))
            time.sleep(0.2)  # noqa: ASYNC251
        await engine.close()
        return values

    assert (plainly.run if kind == "plain" else asyncio.run)(calls()) == ["ok", "ok"]
    serving.join(60)
    listening.close()
