"""A master at the limit of open files, as a real process."""

from __future__ import annotations

import json
import os
import resource
import socket
import time
from contextlib import ExitStack, closing
from pathlib import Path

import msgpack
import pytest

from jqmaster import JQ
from jqmaster.errors import Unavailable
from processes import MasterProcess

pytestmark = pytest.mark.faults

GET = b"GET %s HTTP/1.1\r\nhost: 127.0.0.1\r\n%s\r\n"


def limit_of(pid: int) -> int:
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Max open files")).split()[3])


def ask(connection: socket.socket, header: bytes = b"", path: bytes = b"/health") -> tuple[bytes, bytes]:
    """Head and body of the answer to a request."""
    connection.sendall(GET % (path, header))
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = connection.recv(65536)
        assert piece, "closed without an answer"
        answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    while len(body) < int(length):
        body += connection.recv(65536)
    return head, body


def test_the_soft_limit_is_raised_at_start(redis_url: str, namespace: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
    try:
        with MasterProcess("--redis", redis_url, "--namespace", namespace) as master:
            assert limit_of(master.pid) == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_at_the_limit_new_connections_get_503_and_the_others_go_on(redis_url: str, namespace: str) -> None:
    with MasterProcess("--redis", redis_url, "--namespace", namespace) as master, ExitStack() as stack:
        resource.prlimit(master.pid, resource.RLIMIT_NOFILE, (200, 200))

        def connect() -> socket.socket:
            made = socket.create_connection(("127.0.0.1", master.port), timeout=60)
            return stack.enter_context(closing(made))

        kept = connect()
        assert b" 200 " in ask(kept)[0]
        others = [connect() for _ in range(160)]  # three quarters of 200 are for connections
        head, body = ask(connect())
        assert head.startswith(b"HTTP/1.1 503 ") and b"retry-after: " in head
        assert json.loads(body)["error"]["code"] == "BUSY"
        head, body = ask(connect(), b"accept: application/msgpack\r\n")
        assert head.startswith(b"HTTP/1.1 503 ") and msgpack.unpackb(body)["error"]["code"] == "BUSY"
        head, body = ask(connect(), path=b"/alive")  # else it would be restarted, and all the others lost
        assert b" 200 " in head and json.loads(body) == {"status": "ok"}
        assert b" 200 " in ask(kept)[0]
        assert "connections are refused" in master.text and "the limit is 200" in master.text
        with pytest.raises(Unavailable, match="too many connections"):
            JQ(master.url).operations.queues()
        for one in others:
            one.close()
        deadline = time.monotonic() + 60
        while b" 200 " not in ask(connect())[0]:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_connections_that_clients_have_closed_are_let_go(redis_url: str, namespace: str) -> None:
    with MasterProcess("--redis", redis_url, "--namespace", namespace) as master:
        before = open_files(master.pid)
        for _ in range(50):
            with closing(socket.create_connection(("127.0.0.1", master.port), timeout=60)) as connection:
                assert b" 200 " in ask(connection)[0]
        deadline = time.monotonic() + 40  # an idle connection is kept for 75 s
        while open_files(master.pid) > before + 10:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
