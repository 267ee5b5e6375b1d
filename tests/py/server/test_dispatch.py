"""Push dispatch: what is delivered, what each answer means, and that nothing polls."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import time
from typing import Any

import msgpack
import pytest
from aiohttp import web

from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.server import sender
from jqmaster.server.dispatch import Dispatch, retry_after_s
from parts import (
    ACCEPTED,
    FINISHED,
    LONG_S,
    REFUSED,
    Handler,
    answers,
    came_to,
    dispatch,  # noqa: F401
    dispatching,
    enqueue,
    eventually,
    listening,
    status,
    until,
    worker,
)
from servers import RedisServer

ODD = bytes.fromhex("92cd0001c7030501ff02")  # a number not in its shortest form, an ext of 3 bytes


# -- deliveries -----------------------------------------------------------------------------------


async def test_a_job_is_delivered_with_its_argument_byte_for_byte(engine: Engine, dispatch: Dispatch) -> None:
    async with worker(engine, ACCEPTED) as stub:
        [job] = await engine.enqueue([({"name": "mail", "priority": 7, "timeout": 12.5}, ODD)])
        [delivered] = await stub.delivered()
        del delivered["argument"]
        assert delivered == {
            "id": job.id, "token": delivered["token"], "name": "mail", "queue": "mail", "priority": 7,
            "attempt": 1, "retry_count": 0, "timeout": 12.5,
        }  # fmt: skip
        assert ODD in stub.raw[0]
        document = await until(engine, job.id, "running")
        assert document["worker_id"] == stub.id


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (answers(200, b"\x82\xa4type\xa7success\xa6result" + ODD), ODD),
        (answers(200, b'{"type": "success", "result": [1]}', content_type="application/json"), b"\x91\x01"),
    ],
    ids=["MessagePack", "JSON"],
)
async def test_the_outcome_may_come_as_the_answer(
    engine: Engine, dispatch: Dispatch, answer: Handler, result: bytes
) -> None:
    async with worker(engine, answer):
        job = await enqueue(engine, keep_result=True)
        await until(engine, job, "done")
        assert await engine.result(job) == ("done", result)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "expected a map"),
        (msgpack.packb({"type": "maybe"}), "type"),
        (msgpack.packb({"result": 1}), "type"),
        (msgpack.packb({"type": "success", "error": 1}), "error"),
        (msgpack.packb({"type": "success", "resalt": 1}), "result"),
        (msgpack.packb({"type": "failure", "should_retry": "no"}), "should_retry"),
    ],
)
async def test_an_answer_that_is_no_outcome_fails_the_job_and_says_why(
    engine: Engine, dispatch: Dispatch, body: bytes, said: str
) -> None:
    async with worker(engine, answers(200, body)):
        document = await until(engine, await enqueue(engine, max_retry=0), "error")
    assert "no outcome" in document["message"] and said in document["message"]


async def test_an_answer_that_does_not_end_fails_the_job_and_takes_no_memory(
    engine: Engine, dispatch: Dispatch
) -> None:
    async with worker(engine, answers(200, b"\xc6\xff\xff\xff\xff" + bytes(17 << 20))):
        document = await until(engine, await enqueue(engine, max_retry=0), "error")
    assert document["message"] == "the worker's answer is longer than 16 MiB"


async def test_400_fails_the_job_for_good(engine: Engine, dispatch: Dispatch) -> None:
    async with worker(engine, answers(400)):
        document = await until(engine, await enqueue(engine), "error")
    assert document["message"] == "the worker refused the job as bad (400)"
    assert document["retry_count"] == 1


async def test_a_redirect_is_not_followed(engine: Engine, dispatch: Dispatch) -> None:
    async with listening(ACCEPTED) as other:
        async with worker(engine, answers(307, location=f"{other.url}/worker-job")):
            document = await until(engine, await enqueue(engine), "retrying")
        assert "307" in document["message"] and not other.jobs


async def test_404_sends_the_job_elsewhere_and_never_back(engine: Engine, dispatch: Dispatch) -> None:
    async with worker(engine, answers(404)) as ignorant:
        job = await enqueue(engine)
        await ignorant.delivered()
        await until(engine, job, "queued")
        async with worker(engine, ACCEPTED) as able:
            [delivered] = await able.delivered()
            assert delivered["retry_count"] == 0
            await enqueue(engine)
            await able.delivered(2)
        ids = [one["id"] for one in ignorant.jobs]
    assert ids == [job]


@pytest.mark.parametrize("code", [429, 503])
async def test_a_busy_worker_gets_nothing_until_it_said(engine: Engine, dispatch: Dispatch, code: int) -> None:
    times: list[float] = []

    async def busy_first(_job: dict[str, Any]) -> web.Response:
        times.append(time.monotonic())
        if len(times) == 1:
            return web.Response(status=code, headers={"retry-after": "1"}, body=b"x" * (17 << 20))
        return web.Response(status=202)

    async with worker(engine, busy_first) as stub:
        await enqueue(engine)
        _, again = await stub.delivered(2)
    assert again["retry_count"] == 0
    assert times[1] - times[0] > 0.9


async def test_a_worker_to_which_there_is_no_way_keeps_its_jobs(
    engine: Engine, dispatch: Dispatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "CONNECT_TIMEOUT_S", 0.5)
    async with worker(engine, ACCEPTED) as stub:
        held = await enqueue(engine)
        await stub.delivered()
    port = int(stub.url.rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        # Nobody accepts, and no more connections may wait: from now on packets to that port are dropped.
        listener = stack.enter_context(socket.socket())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        job = await enqueue(engine)
        await eventually(lambda: came_to(dispatch, *REFUSED), LONG_S)
        assert await status(engine, held) == "running"
        async with worker(engine, ACCEPTED) as other:
            assert [one["id"] for one in await other.delivered()] == [job]
        states = {one["id"]: (one["state"], one["held"]) for one in (await engine.workers()).documents}
        assert states[stub.id] == ("unreachable", 1)


async def test_a_kept_connection_that_went_stale_costs_the_job_nothing(engine: Engine, dispatch: Dispatch) -> None:
    """The server takes one request per connection and closes it under the second."""
    connections = itertools.count()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        next(connections)
        for turn in (0, 1):
            with contextlib.suppress(asyncio.IncompleteReadError):
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                if turn == 0:
                    writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
                    await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        await engine.register("stale", "*", url=f"http://127.0.0.1:{port}", max_jobs=10)
        for number in range(3):
            await enqueue(engine)
            await eventually(lambda number=number: came_to(dispatch, "accepted") == number + 1)
    assert came_to(dispatch, *REFUSED) == 0 and came_to(dispatch, *FINISHED) == 0


@pytest.mark.parametrize("answer", [b"", b"220 swordfish\r\n\r\n"])
async def test_a_connection_that_breaks_under_the_job_is_a_failure(
    engine: Engine, dispatch: Dispatch, answer: bytes
) -> None:
    """What speaks no HTTP counts as that; nothing of it is told."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await engine.register("breaks", "*", url=f"http://127.0.0.1:{port}")
        document = await until(engine, await enqueue(engine), "retrying")
    assert "broke the connection" in document["message"] and "swordfish" not in document["message"]


# -- the loop --------------------------------------------------------------------------------------


async def test_deliveries_under_way_are_bounded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(_job: dict[str, Any]) -> web.Response:
        await asyncio.sleep(0.02)
        return web.Response(status=202)

    monkeypatch.setattr(Dispatch, "most", 3)
    monkeypatch.setattr("jqmaster.server.dispatch.BATCH", 1)
    jobs = await engine.enqueue([({"name": "mail"}, b"\xc0")] * 30)
    async with worker(engine, slow, max_jobs=100) as stub, dispatching(engine) as dispatch:
        await eventually(lambda: came_to(dispatch, "accepted") == len(jobs))
    assert 1 < stub.most_under_way <= 3


async def test_an_outcome_outlives_a_restart_of_redis() -> None:
    with RedisServer("--appendonly", "yes", "--appendfsync", "always") as server:
        async with connect(server.url) as redis:
            await load(redis, "{t}")
            engine = Engine(redis, "{t}")
            go_on = asyncio.Event()

            async def slow(_job: dict[str, Any]) -> web.Response:
                await go_on.wait()
                return web.Response(body=msgpack.packb({"type": "success"}))

            async with worker(engine, slow) as stub, dispatching(engine) as dispatch:
                job = await enqueue(engine)
                await stub.delivered()
                await asyncio.to_thread(server.kill)
                go_on.set()
                await eventually(lambda: came_to(dispatch, *FINISHED) == 1)
                await asyncio.to_thread(server.start)
                await until(engine, job, "done")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("7", 7), ("0", 1), ("99999", 3600), ("9" * 5000, 3600), ("nan", None), ("Thu, 01 Jan 2026", None)],
)
def test_retry_after_in_seconds(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header) == seconds
