"""What a master bears: protocols nobody needs, bodies that do not end, more streams than it takes."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from http_live import Live, live_server
from jqmaster.server.http.app import SMALL
from jqmaster.server.http.http1 import MOST_HEAD_BYTES

KEPT = b"GET /alive HTTP/1.1\r\nhost: x\r\n"
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
MOST = 300_000


@pytest.fixture
def live(redis_url: str) -> Iterator[Live]:
    namespace = "{t" + secrets.token_hex(6) + "}"
    with live_server(redis_url, namespace) as live:
        live.server.app.most_bytes, live.server.app.body_s = MOST, 2
        yield live


@pytest.fixture
def connect(live: Live) -> Iterator[Any]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(socket.create_connection(("127.0.0.1", live.port), timeout=30)))


def answer(connection: socket.socket) -> tuple[int, dict[str, str], Any]:
    """Status, headers and body, as JSON, of an answer that is no stream."""
    told = b""
    while b"\r\n\r\n" not in told:
        piece = connection.recv(65536)
        assert piece, "closed without an answer"
        told += piece
    head, _, body = told.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65536)
    return int(first.split()[1]), headers, json.loads(body) if body else None


def post(path: str, length: int, body: bytes) -> bytes:
    return b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
        path.encode(), length, body,
    )  # fmt: skip


@pytest.mark.parametrize("upgrade", ["h2c", "websocket"])
def test_a_wish_for_another_protocol_is_ignored(connect: Any, upgrade: str) -> None:
    connection = connect()
    wish = b"connection: upgrade, http2-settings\r\nupgrade: %s\r\nhttp2-settings: AAMAAABk\r\n" % upgrade.encode()
    wish += b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    for _ in range(2):
        connection.sendall(KEPT + wish + b"\r\n")
        assert answer(connection)[0::2] == (200, {"status": "ok"})


def test_a_page_elsewhere_cannot_come_in_by_a_websocket(connect: Any) -> None:
    connection = connect()
    connection.sendall(
        b"GET /job/00000000000000/result HTTP/1.1\r\nhost: x\r\norigin: http://evil\r\nconnection: upgrade\r\n"
        b"upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    status, _, body = answer(connection)
    assert (status, body["error"]["code"]) == (403, "FORBIDDEN")


@pytest.mark.parametrize("origin", [b"origin: http://evil\r\n", b""])
def test_nor_by_another_form_of_a_path(connect: Any, origin: bytes) -> None:
    for target, refused in (
        (b"//job/00000000000000/result", "no such path"),
        (b"http://x/job/00000000000000/result", "cross-origin request" if origin else "no such job"),
    ):
        connection = connect()
        connection.sendall(b"GET %s HTTP/1.1\r\nhost: x\r\n%s\r\n" % (target, origin))
        status, _, body = answer(connection)
        assert status in (403, 404) and refused in body["error"]["message"].lower(), body


def test_http_2_is_not_spoken(connect: Any) -> None:
    connection = connect()
    connection.sendall(HTTP2)
    connection.settimeout(60)
    assert connection.recv(1000).startswith(b"HTTP/1.1 505")


def test_a_body_has_one_length(connect: Any) -> None:
    connection = connect()
    request = b"POST /job HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
    connection.sendall(request + KEPT + b"\r\n")
    told = b"".join(iter(lambda: connection.recv(65536), b""))
    assert told.startswith(b"HTTP/1.1 400") and told.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("line", [b"x-long: " + b"x" * MOST_HEAD_BYTES, b"x: y\r\n" * MOST_HEAD_BYTES])
def test_a_head_has_a_bound(connect: Any, line: bytes) -> None:
    connection = connect()
    with contextlib.suppress(ConnectionError):  # it may be closed before all is sent
        connection.sendall(KEPT + line)
    told = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            told += piece
    assert told == b"" or told.startswith(b"HTTP/1.1 4"), told[:200]
    after = connect()
    after.sendall(KEPT + b"\r\n")
    assert answer(after)[0] == 200


@pytest.mark.parametrize("path", ["/job"])
def test_a_body_that_does_not_end_is_given_up(connect: Any, path: str) -> None:
    connection = connect()
    begun = time.monotonic()
    connection.sendall(post(path, 100, b'{"name":'))
    status, headers, body = answer(connection)
    assert (status, body["error"]["code"]) == (408, "TIMEOUT") and headers["x-request-id"]
    assert time.monotonic() - begun > 1.5
    assert connection.recv(1) == b"", "the connection stays"


@pytest.mark.parametrize("path", ["/job", "/jobs"])
def test_bodies_have_a_bound_together(connect: Any, path: str) -> None:
    for _ in range(3):
        connect().sendall(post("/job", 1_000_000, b"x" * 100_000))
    last = connect()
    last.sendall(post(path, 1_000_000, b"x" * 100_000))
    status, headers, body = answer(last)
    assert (status, body["error"]["code"], headers["retry-after"]) == (503, "BUSY", "1")
    # What is small comes through nevertheless.
    small = connect()
    job = json.dumps({"name": "a", "argument": "b" * (SMALL // 2)}).encode()
    small.sendall(post("/job", len(job), job))
    assert answer(small)[0] == 201


def test_what_was_refused_leaves_room_for_others_at_once(connect: Any) -> None:
    """Else of many that come at the same time none would come through."""
    job = json.dumps({"name": "a", "argument": "b" * 240_000}).encode()
    first, second = connect(), connect()
    first.sendall(post("/job", len(job), job[:140_000]))
    second.sendall(post("/job", 1_000_000, job[:240_000]))
    assert answer(second)[0] == 503
    first.sendall(job[140_000:])
    assert answer(first)[0] == 201


def test_what_was_given_up_or_answered_counts_no_more(connect: Any) -> None:
    job = json.dumps({"name": "a", "argument": "b" * 200_000}).encode()
    for _ in range(5):
        left = connect()
        left.sendall(post("/job", 1_000_000, b"x" * 100_000))
        left.close()
        connection = connect()
        deadline = time.monotonic() + 60
        while True:
            connection.sendall(post("/job", len(job), job))
            status = answer(connection)[0]
            if status == 201:
                break
            assert status == 503 and time.monotonic() < deadline
            connection = connect()
            time.sleep(0.05)
