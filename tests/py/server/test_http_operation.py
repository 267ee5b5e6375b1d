"""Queues, settings, health, content types, limits: what operators and all clients meet."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import msgpack
import pytest

from http_support import JSON, MSGPACK, Api, api, asgi, hold_against_document, master  # noqa: F401
from jqmaster.bundle.build import builtin
from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.engine.waiting import Waiting
from jqmaster.server.http.app import App
from jqmaster.server.keyring import Keyring
from jqmaster.server.master import Master
from parts import eventually
from servers import RedisServer


async def test_a_query_that_cannot_be_read_is_refused(api: Api) -> None:
    for query in ("%ff=1", "cursor=%ff", "&".join(f"a{n}=1" for n in range(1100))):
        assert (await api.get(f"/queues?{query}")).status == 400


async def test_both_documents_are_served(api: Api) -> None:
    for path, title in (("/openapi.yaml", "title: JQ server"), ("/worker/openapi.yaml", "title: JQ worker")):
        for accept in ("*/*", "application/yaml", "text/html"):
            answer = await api.get(path, accept=accept)
            assert (answer.status, answer.headers["content-type"]) == (200, "application/yaml")
            assert title in answer.raw.decode()


async def test_a_draining_master_takes_no_new_work(api: Api) -> None:
    job_id = await api.enqueue("slow")
    [job] = await api.pick("slow")
    polls = [
        asyncio.create_task(api.post("/pick", {"queues": "other", "timeout": 60}, worker_id="w")),
        asyncio.create_task(api.get(f"/job/{job_id}/polling?timeout=60")),
    ]
    await asyncio.sleep(0.1)
    api.master.draining.set()
    api.master.waiting.drain()
    api.master.ended.drain()
    async with asyncio.timeout(45):
        picked, polled = await asyncio.gather(*polls)
    assert (picked.status, picked.value["jobs"]) == (200, [])
    assert (polled.status, polled.error["code"]) == (503, "DRAINING")
    for answer in (
        await api.get("/health"),
        await api.post("/pick", {"queues": "*"}, worker_id="w"),
        await api.post("/pick", {"queues": "*", "timeout": 5}, worker_id="w"),
    ):
        assert (answer.status, answer.error["code"]) == (503, "DRAINING")
        assert int(answer.headers["retry-after"]) >= 1
    outcome = {"id": job["id"], "token": job["token"], "type": "success"}
    without_worker = [msgpack.packb({"pick": {"queues": "*"}}), msgpack.packb(outcome), b"\xc0"]
    assert (await api.post("/call/finish", raw=msgpack.packb(without_worker))).status == 400
    later = await api.enqueue("later")
    # Whose outcome is taken gets what comes next as well: the answer is there at once.
    answer = await api.post("/done", {"outcomes": [outcome], "pick": {"queues": "*"}}, worker_id="w")
    assert (answer.value["states"], [one["id"] for one in answer.value["jobs"]]) == (["done"], [later])


# Content types


@pytest.mark.parametrize("name", [MSGPACK, "application/x-msgpack", "application/vnd.msgpack", "Application/MsgPack"])
async def test_messagepack_has_three_names(api: Api, name: str) -> None:
    raw = msgpack.packb({"name": "mail"})
    answer = await api.post("/job", raw=raw, content_type=name)
    assert (answer.status, answer.headers["content-type"]) == (201, MSGPACK)
    answer = await api.post("/job", raw=raw, content_type=name, accept=name)
    assert (answer.status, answer.headers["content-type"]) == (201, name.lower())


async def test_no_content_type_means_messagepack(api: Api) -> None:
    assert (await api.post("/job", raw=msgpack.packb({"name": "mail"}), content_type="")).status == 201


@pytest.mark.parametrize(
    "name",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json",
     "application/xml", "application/json; charset=utf-16", "application/msgpackx", ","],
)  # fmt: skip
async def test_another_content_type_is_refused(api: Api, name: str) -> None:
    for path in ("/job", "/done", "/queue/x", "/call/enqueue"):
        answer = await api.post(path, raw=b'{"name": "x"}', content_type=name, worker_id="w")
        assert (answer.status, answer.error["code"], answer.error["field"]) == (415, "UNSUPPORTED", "content-type")


@pytest.mark.parametrize(
    ("accept", "json_body", "expected"),
    [
        (None, False, MSGPACK),
        (None, True, JSON),
        ("*/*", False, MSGPACK),
        ("*/*", True, JSON),
        ("application/*", True, JSON),
        (JSON, False, JSON),
        (MSGPACK, True, MSGPACK),
        ("application/json;q=0.1, application/msgpack;q=0.9", False, MSGPACK),
        ("application/json;q=0.9, application/msgpack;q=0.1", False, JSON),
        ("application/msgpack;q=0, */*", False, "application/x-msgpack"),
        ("application/json;q=0, */*;q=0.5", True, MSGPACK),
        ("text/html, application/json", False, JSON),
        ("text/html, */*;q=0.1", False, JSON),
        ("APPLICATION/JSON", False, JSON),
        ("", False, MSGPACK),
        ("image/*", False, MSGPACK),
        ("*/*;q=0", True, JSON),
    ],
)
async def test_the_answer_comes_as_accepted(api: Api, accept: str | None, json_body: bool, expected: str) -> None:
    headers = {} if accept is None else {"accept": accept}
    content_type = JSON if json_body else MSGPACK
    for body, status in (({"name": "mail"}, 201), ({"name": ""}, 400)):
        answer = await api.post("/job", body, content_type=content_type, **headers)
        assert (answer.status, answer.headers["content-type"]) == (status, expected)


# Paths, methods, limits


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("POST", "/job/", 404),
        ("GET", "/queue/", 404),
        ("GET", "/job/a/b/c", 404),
        ("GET", "/constraint/x/y", 404),
        ("GET", "/job", 405),
        ("OPTIONS", "/job", 405),
        ("POST", "/health", 405),
        ("PUT", "/job/x", 405),
        ("POST", "/job/x/explain", 405),
    ],
)
async def test_unknown_paths_and_methods(api: Api, method: str, path: str, status: int) -> None:
    answer = await api(method, path)
    assert answer.status == status
    assert answer.error["code"] == {404: "NOTFOUND", 405: "METHOD"}[status]
    if status == 405:
        assert answer.error["message"].endswith(f"which has {answer.headers['allow']}")
    answer = await api(method, path, accept=JSON)
    assert answer.headers["content-type"] == JSON


async def test_head_is_get_without_body(api: Api) -> None:
    answer = await asgi(api.app, "HEAD", "/health", {}, b"")
    assert answer.status == 200


@pytest.mark.parametrize("chunks", [1, 7])
async def test_a_body_over_the_limit_is_refused(api: Api, chunks: int) -> None:
    fits = msgpack.packb({"name": "mail", "argument": b"x" * ((1 << 20) - 40)})
    assert len(fits) <= 1 << 20
    headers = {"content-type": MSGPACK}
    for path in ("/job", "/done", "/queue/x"):
        over = fits + b"\x00" * ((1 << 20) - len(fits) + 1)
        for length in ({}, {"content-length": str(len(over))}):
            answer = await asgi(api.app, "POST", path, headers | length, over, chunks)
            hold_against_document("POST", path, answer)
            assert (answer.status, answer.error["code"]) == (413, "TOOLARGE")
    answer = await asgi(api.app, "POST", "/job", headers, fits, chunks)
    assert answer.status == 201


# Redis in trouble


@pytest.fixture
async def lonely(fresh_server: RedisServer, namespace: str) -> Any:
    """An API whose Redis is its own, to be broken."""
    async with connect(f"unix://{fresh_server.socket}?socket_timeout=2") as client:
        await load(client, namespace, builtin())
        engine = Engine(client, namespace, recreate=True)
        waiting, ended = Waiting(engine), Ended(engine)
        master = Master(engine, waiting, ended, Keyring(engine))
        yield Api(App(master), master), fresh_server
        await waiting.stop()
        await ended.stop()


CALLS: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/job", {"name": "mail"}),
    ("POST", "/jobs", {"jobs": [{"name": "mail"}]}),
    ("GET", "/job/00000000000001/polling?timeout=0.1", None),
    ("POST", "/done", {"outcomes": [{"id": "00000000000001", "token": "1-0123456789ab", "type": "success"}]}),
    ("POST", "/pick", {"queues": "*"}),
    ("POST", "/pick", {"queues": "*", "timeout": 0.1}),
    ("GET", "/queues", None),
    ("POST", "/config", {"set": {"result_ttl": 5}}),
    ("GET", "/health", None),
)


async def test_without_redis_everything_is_503_until_it_is_back(lonely: Any) -> None:
    api, server = lonely
    await api.enqueue()
    server.kill()
    for method, path, body in CALLS:
        answer = await api(method, path, body, worker_id="w")
        assert (answer.status, answer.error["code"]) == (503, "UNAVAILABLE"), (method, path)
        assert int(answer.headers["retry-after"]) >= 1
        assert str(server.directory) not in answer.error["message"]
    server.start()
    await eventually(lambda: is_well(api))
    await api.enqueue()


async def is_well(api: Any) -> bool:
    return (await api.get("/health")).status == 200


async def test_a_redis_that_hangs_makes_no_master_look_dead(lonely: Any) -> None:
    api, server = lonely
    await api.enqueue()
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(25):  # its calls wait 5 s for Redis
            assert (await api.get("/alive")).value == {"status": "ok"}
            told = await asyncio.gather(*(api.get("/health") for _ in range(3)), api.post("/job", {"name": "mail"}))
        assert [(one.status, one.error["code"]) for one in told] == [(503, "UNAVAILABLE")] * 4
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert (await api.get("/health")).status == 200


async def test_a_call_has_a_bounded_number_of_arguments(api: Api) -> None:
    for body in (b"\xdd\x00\x00\x27\x11" + 10_001 * b"\x01", b"\x91\xdd\x00\x00\x27\x11" + 10_001 * b"\x01"):
        told = await api.post("/call/get", raw=body)
        assert told.status == 400 and "10000 at most" in told.error["message"]
