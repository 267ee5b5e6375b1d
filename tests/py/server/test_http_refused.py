"""A request that is refused before its body is read: whatever the refusal and however the body comes, the client gets
the answer, and what is left behind it disturbs nobody."""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import pytest

from http_live import Live, live_server
from jqmaster.server.http import app
from test_http_bounds import answer

LONGEST = 100_000
REST_S = 0.5
ROW = b"x" * 1000


@pytest.fixture(scope="module")
def live(redis_url: str) -> Iterator[Live]:
    namespace, most_s = "{t" + secrets.token_hex(6) + "}", app.REST_S
    app.REST_S = REST_S
    with live_server(redis_url, namespace, allowed_hosts=["jq"]) as live:

        async def give_keys() -> None:
            engine, keyring = live.master.engine, live.master.keyring
            KEYS["good"] = (await engine.grant("ada", ["worker"]))["key"]
            KEYS["slow"] = (await engine.grant("bob", ["worker"], rate=0.001))["key"]
            await keyring.look()

        live.run(give_keys())
        yield live
    app.REST_S = most_s


KEYS = {"unknown": "jq_x"}
"""The others are made with the server."""


class Refusal(NamedTuple):
    """Who sends what, and what they are told."""

    status: int
    key: str = "good"
    path: str = "/done"
    host: str = "jq"
    origin: str = "http://jq"

    @property
    def head(self) -> bytes:
        """The request's, but for what says how long its body is."""
        text = (
            f"POST {self.path} HTTP/1.1\r\nhost: {self.host}\r\norigin: {self.origin}\r\n"
            f"accept: application/json\r\n"
            f"authorization: Bearer {KEYS[self.key]}\r\n"
        )
        return text.encode()


REFUSALS = [
    Refusal(401, key="unknown"), Refusal(403, path="/keys"), Refusal(403, origin="http://evil"),
    Refusal(403, host="evil"), Refusal(413), Refusal(429, key="slow"),
]  # fmt: skip


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def length(size: int) -> bytes:
    return b"content-length: %d\r\n\r\n" % size


CHUNKED = b"transfer-encoding: chunked\r\n\r\n"
# What is sent at once, and what once the answer is here.
BODIES: dict[str, tuple[list[bytes], list[bytes]]] = {
    "whole": ([length(100 * len(ROW)), ROW * 100, ROW], []),
    "chunks": ([CHUNKED, chunk(ROW) * 300, chunk(b"")], []),
    "chunks that come one by one": ([CHUNKED, *[chunk(ROW)] * 150, chunk(b"")], []),
    "later": ([length(150 * len(ROW))], [ROW] * 150),
    "chunks later": ([CHUNKED], [*[chunk(ROW)] * 50, chunk(b"")]),
    "half": ([length(150 * len(ROW)), ROW * 110], []),
    "half of the chunks": ([CHUNKED, chunk(ROW) * 110], []),
}


@pytest.fixture
def connection(live: Live) -> Iterator[socket.socket]:
    with closing(socket.create_connection(("127.0.0.1", live.port), timeout=30)) as connection:
        yield connection


@pytest.mark.parametrize("form", BODIES)
@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: "-".join(map(str, refusal[:4])))
def test_a_refusal_is_heard(live: Live, connection: socket.socket, refusal: Refusal, form: str) -> None:
    at_once, later = BODIES[form]
    is_large = refusal.status == 413
    live.server.app.longest = len(ROW) if is_large else LONGEST
    if is_large and form == "chunks later":  # without them nobody knows yet
        at_once, later = at_once + later[:2], later[2:]
    if refusal.key == "slow":
        live.master.keyring.find(KEYS["slow"]).wait_s()
    connection.sendall(refusal.head)
    for piece in at_once:
        connection.sendall(piece)
    status, headers, body = answer(connection)
    assert (status, headers["connection"]) == (refusal.status, "close"), body
    for piece in later:
        connection.sendall(piece)
    answered = time.monotonic()
    assert connection.recv(1) == b""
    assert time.monotonic() - answered < (60 if "half" in form else REST_S - 0.1)


@pytest.mark.parametrize("refusal", [one for one in REFUSALS if one.status != 413])
def test_without_a_body_the_connection_stays(live: Live, connection: socket.socket, refusal: Refusal) -> None:
    for _ in range(2):
        connection.sendall(refusal.head + length(0))
        status, headers, _ = answer(connection)
        assert "connection" not in headers and status in (refusal.status, 400)


def test_nothing_is_left_behind_by_clients_that_leave(live: Live) -> None:
    async def tasks() -> set[asyncio.Task[None]]:
        return asyncio.all_tasks()

    before = live.run(tasks())
    for at_once, _ in BODIES.values():
        with closing(socket.create_connection(("127.0.0.1", live.port), timeout=30)) as connection:
            connection.sendall(REFUSALS[0].head + b"".join(at_once))
    deadline = time.monotonic() + 60
    while len(live.run(tasks()) - before) > 1:  # itself
        assert time.monotonic() < deadline
        time.sleep(0.05)
