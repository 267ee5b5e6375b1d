"""The API under a real Hypercorn: connections, disconnects, raw paths, pieces of bodies."""

from __future__ import annotations

import asyncio
import http.client
import secrets
import socket
from collections.abc import Iterator
from typing import Any

import aiohttp
import msgpack
import pytest

from http_live import Live, live_server
from http_support import JSON, MSGPACK, Answer, hold_against_document


@pytest.fixture
def live(redis_url: str) -> Iterator[Live]:
    namespace = "{t" + secrets.token_hex(6) + "}"
    with live_server(redis_url, namespace) as live:
        live.server.app.longest = 1 << 20
        yield live


async def call(
    session: aiohttp.ClientSession, live: Live, method: str, path: str, body: Any = None, **headers: str
) -> Answer:
    from yarl import URL

    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        sent.setdefault("content-type", MSGPACK)
    data = None if body is None else msgpack.packb(body)
    async with session.request(method, URL(live.url + path, encoded=True), data=data, headers=sent) as response:
        names = {name.lower(): value for name, value in response.headers.items()}
        answer = Answer(response.status, names, await response.read())
    hold_against_document(method, path.partition("?")[0], answer)
    return answer


async def test_who_has_gone_away_gets_no_job(live: Live) -> None:
    body = msgpack.packb({"queues": "a", "timeout": 60})
    request = f"POST /pick HTTP/1.1\r\nhost: x\r\nworker-id: gone\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    gone = [socket.create_connection(("127.0.0.1", live.port)) for _ in range(3)]
    for connection in gone:
        connection.sendall(request + body)
    await asyncio.sleep(0.3)
    for connection in gone:
        connection.close()
    await asyncio.sleep(0.3)
    async with aiohttp.ClientSession() as session:
        job_id = (await call(session, live, "POST", "/job", {"name": "a"})).value["job_id"]
        async with asyncio.timeout(25):
            wish = {"queues": "a", "timeout": 30}
            picked = await call(session, live, "POST", "/pick", wish, worker_id="here")
        assert [job["id"] for job in picked.value["jobs"]] == [job_id]


def test_one_connection_serves_many_requests(live: Live) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", live.port)
    for path, body in (
        ("/job", b"\x81\xa4name\xa1a"),
        ("/job", b"\x07"),
        ("/nothing", b""),
        ("/job", b"\x81\xa4name\xa1a"),
    ) * 5:
        connection.request("POST", path, body, {"content-type": MSGPACK})
        response = connection.getresponse()
        response.read()
        assert response.status in (201, 400, 404)
    # An answer with no body leaves the connection in order.
    for _ in range(2):
        connection.request("DELETE", "/session")
        response = connection.getresponse()
        assert (response.status, response.read()) == (204, b"")
        connection.request("GET", "/health", headers={"accept": JSON})
        assert connection.getresponse().read() == b'{"status":"ok","form":"functions"}'
    connection.close()


@pytest.mark.parametrize(
    "garbage",
    [b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
     b"POST /job HTTP/1.1\r\ncontent-length: x\r\n\r\n",
     b"GET /job/%zz HTTP/1.1\r\nhost: x\r\n\r\n", b"GET /queue/%ff%fe HTTP/1.1\r\nhost: x\r\n\r\n",
     b"GET /queues?%zz=%ff HTTP/1.1\r\nhost: x\r\n\r\n", b"GET *  HTTP/1.1\r\nhost: x\r\n\r\n",
     b"GET http://x/health HTTP/1.1\r\nhost: x\r\n\r\n", b"GET //health HTTP/1.1\r\nhost: x\r\n\r\n",
     b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n",
     b"POST /pick HTTP/1.1\r\nhost: x\r\nworker-id: \xff\xfe\r\ncontent-length: 1\r\n\r\n\x80"],
)  # fmt: skip
def test_garbage_is_no_500(live: Live, garbage: bytes) -> None:
    with socket.create_connection(("127.0.0.1", live.port)) as connection:
        connection.sendall(garbage)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(60)
        answer = connection.recv(1000)
    assert b" 500 " not in answer.partition(b"\r\n")[0]
    connection = http.client.HTTPConnection("127.0.0.1", live.port)
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    connection.close()
