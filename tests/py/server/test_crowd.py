"""A master that thousands are connected to, as a real process: it says how it is within a second."""

from __future__ import annotations

import json
import resource
import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from typing import Any

import pytest

from jqmaster import JQ
from jqmaster.server import loop
from processes import MasterProcess

IDLE, POLLS, STREAMS = 5000, 2000, 2000
PROMISED_S = 1.0
WAIT_S = 60.0
HEADERS = "content-type: application/json\r\nworker-id: w\r\n\r\n"

pytestmark = [pytest.mark.timeout(600), pytest.mark.faults]


@pytest.fixture
def share() -> Iterator[float]:
    """Which part of the crowd fits into the open files that a process may have here."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    loop.raise_limit()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    # Some are left to a master for Redis, and to the tests.
    yield min(1.0, (limit - 150) / (IDLE + POLLS + STREAMS))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


class Crowd:
    """Connections, each of which may have asked for something."""

    def __init__(self, stack: ExitStack, port: int) -> None:
        self._stack = stack
        self._port = port

    def one(self, head: str = "", body: bytes = b"") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self._port), timeout=WAIT_S)
        self._stack.enter_context(closing(made))
        if head:
            length = f"content-length: {len(body)}"
            made.sendall(f"{head} HTTP/1.1\r\nhost: 127.0.0.1\r\n{length}\r\n{HEADERS}".encode() + body)
        return made

    def many(self, count: float, *given: Any) -> list[socket.socket]:
        return [self.one(*given) for _ in range(int(count))]


def status(connection: socket.socket) -> int:
    """Of the answer that comes."""
    told = connection.recv(65536)
    assert told.startswith(b"HTTP/1.1 "), told
    return int(told.split(b" ", 2)[1])


def healths(port: int) -> list[float]:
    """How long it takes to be told, for who is connected already and for who comes new."""
    kept, took = HTTPConnection("127.0.0.1", port, timeout=WAIT_S), []
    for one in [part for _ in range(10) for part in (kept, HTTPConnection("127.0.0.1", port, timeout=WAIT_S))]:
        begun = time.monotonic()
        one.request("GET", "/health")
        answer = one.getresponse()
        assert (answer.status, json.loads(answer.read())["status"]) == (200, "ok")
        took.append(time.monotonic() - begun)
        if one is not kept:
            one.close()
    kept.close()
    return took


def test_health_is_told_within_a_second(redis_url: str, namespace: str, share: float) -> None:
    with MasterProcess("--redis", redis_url, "--namespace", namespace) as master, ExitStack() as stack:
        crowd = Crowd(stack, master.port)
        alone_s = statistics.median(healths(master.port))
        jq = JQ(redis_url, namespace=namespace)
        job = jq.enqueue("crowded")
        polls = crowd.many(POLLS / 2 * share, f"GET /job/{job.id}/polling?timeout=300")
        wish = json.dumps({"queues": "empty", "timeout": 300}).encode()
        picks = crowd.many(POLLS / 2 * share, "POST /pick", wish)
        streams = crowd.many(STREAMS * share, f"GET /job/{job.id}/events")
        assert {status(one) for one in streams} == {200}
        idle = crowd.many(IDLE * share)  # these come last: who says nothing for long is let go
        took = healths(master.port)
        # A machine that has much else to do is given what it took for a master without guests.
        assert statistics.median(took) < PROMISED_S + 10 * alone_s, (took, share)
        # All were there: none has been refused or let go, and who waits is told.
        for connection in idle:
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):
                connection.recv(1)
        job.cancel()
        assert {status(one) for one in polls} == {200}
        for one in picks:
            one.setblocking(False)
            with pytest.raises(BlockingIOError):
                one.recv(1)
        assert "refused" not in master.text
