"""What a master pushes is signed, goes only where it may, and nothing that comes back hurts it or is told to others."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgpack
import pytest

from jqmaster.engine.engine import Engine
from jqmaster.server import signing
from jqmaster.server.dispatch import Dispatch, assigned
from jqmaster.server.egress import Egress
from jqmaster.server.server import ServeOptions
from parts import (
    ACCEPTED,
    REFUSED,
    answers,
    came_to,
    dispatch,  # noqa: F401
    dispatching,
    enqueue,
    eventually,
    listening,
    until,
    worker,
)

SECRET, OTHER = signing.new_secret(), signing.new_secret()


# -- signatures -----------------------------------------------------------------------------------


async def test_each_push_is_signed_with_the_secrets_of_its_worker(engine: Engine) -> None:
    async with listening(ACCEPTED) as stub, dispatching(engine):
        await engine.register("own", "*", url=stub.url, max_jobs=2, secrets=[SECRET, OTHER])
        await enqueue(engine), await enqueue(engine)
        await stub.delivered(2)
    for headers, body in zip(stub.headers, stub.raw, strict=True):
        for secret in (SECRET, OTHER):
            assert signing.refusal([secret], headers, body) is None
            assert signing.refusal([secret], headers, body + b" ")
    assert len({dict(headers)[b"webhook-id"] for headers in stub.headers}) == 2


async def test_a_worker_that_refuses_the_signature_costs_the_job_nothing(engine: Engine, dispatch: Dispatch) -> None:
    async with worker(engine, answers(401, {"error": {"message": "who are you"}})) as stub:
        job = await enqueue(engine, max_retry=0)
        await stub.delivered()
        assert (await until(engine, job, "queued"))["retry_count"] == 0
        [document] = (await engine.workers()).documents
        assert document["state"] == "unreachable"


# -- what comes back ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["x..y", "a" * 64 + ".example", "x." + "y" * 300, "[::1", "127.1", "0x7f.1", "a:99999"]
)
async def test_no_url_leaves_a_job_running(engine: Engine, dispatch: Dispatch, host: str) -> None:
    await engine.register("odd", "*", url=f"http://{host}/")
    job = await enqueue(engine, max_retry=0)
    await eventually(lambda: came_to(dispatch, *REFUSED))
    await until(engine, job, "queued")


def test_what_cannot_be_decoded_stops_no_dispatch() -> None:
    document = msgpack.packb({"id": "0" * 14, "token": "1-", "name": "a", "attempt": 1, "timeout": 1})
    [push] = assigned([b"w", b"http://\xff/", b"", b"", document, b"\xc0"])
    assert push.url.startswith("http://") and push.url.endswith("/worker-job")


INNER = "the password is swordfish"


@pytest.mark.parametrize("status", [200, 400, 404, 503])
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("text/plain", INNER),
        ("text/html", f"<html>{INNER}</html>"),
        ("application/json", json.dumps({"message": INNER})),
        ("application/json", json.dumps({INNER: 1, "type": "secret"})),
        ("application/json", json.dumps({INNER: 1, "type": "success"})),
        ("application/json", f'{{"{INNER}": 1, "{INNER}": 2}}'),
        ("application/json", INNER),
        ("text/plain", msgpack.packb({INNER: b"bin", "type": "success"}).decode("latin-1")),
    ],
    ids=range(8),
)
async def test_what_something_inside_answers_is_not_told(
    engine: Engine, dispatch: Dispatch, status: int, kind: str, content: str
) -> None:
    async with worker(engine, answers(status, content.encode("latin-1"), content_type=kind)) as stub:
        job = await enqueue(engine, max_retry=0)
        await stub.delivered()
        document = await until(engine, job, "queued", "error")
        told = json.dumps([document, await engine.history(job)], default=str)
    assert "swordfish" not in told and "password" not in told


# -- where to -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "near", "anywhere"),
    [
        ("127.0.0.1", True, True), ("127.8.9.10", True, True), ("::1", True, True), ("10.1.2.3", True, True),
        ("172.31.0.1", True, True), ("192.168.1.1", True, True), ("fd12::1", True, True),
        ("172.32.0.1", False, True), ("8.8.8.8", False, True), ("2001:db8::1", False, True),
        ("::ffff:10.0.0.1", True, True), ("::ffff:8.8.8.8", False, True),
        ("169.254.169.254", False, False), ("169.254.0.1", False, False), ("fe80::1", False, False),
        ("fe80::1%eth0", False, False), ("::ffff:169.254.169.254", False, False),
        ("64:ff9b::a9fe:a9fe", False, False), ("64:ff9b:1::a9fe:a9fe", False, False),
        ("64:ff9b:1::808:808", False, True), ("2002:a9fe:a9fe::1", False, False), ("fd00:ec2::254", False, False),
        ("100.100.100.200", False, False), ("168.63.129.16", False, False), ("0.0.0.0", False, False),
        ("::", False, False), ("255.255.255.255", False, False), ("224.0.0.1", False, False), ("what", False, False),
    ],
)  # fmt: skip
def test_where_a_master_may_push(address: str, near: bool, anywhere: bool) -> None:
    assert Egress().may(address) == near
    assert Egress("*").may(address) == anywhere
    assert not Egress("203.0.113.0/24, 2001:db9::/32").may(address)
    assert not Egress("").may(address)


def test_link_local_stays_barred_though_it_is_listed() -> None:
    assert not Egress("169.254.169.254,169.254.0.0/16,fe80::/10").may("169.254.169.254")


@pytest.mark.parametrize(
    ("options", "may"),
    [
        ({}, True), ({"host": "localhost"}, True), ({"host": "::1"}, True),
        ({"host": "0.0.0.0"}, False), ({"host": "10.0.0.1"}, False), ({"host": "::"}, False),
        ({"host": "0.0.0.0", "push_to": Egress("10.0.0.0/8")}, True),
        ({"push_to": Egress("192.168.0.0/16")}, False),
    ],
)  # fmt: skip
def test_a_master_on_the_network_pushes_where_it_is_told(options: dict[str, Any], may: bool) -> None:
    assert ServeOptions(**options).egress().may("10.9.8.7") == may


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{port}", "http://localhost:{port}", "http://[::ffff:127.0.0.1]:{port}"]
)
async def test_nobody_is_connected_to_who_may_not_be(engine: Engine, url: str) -> None:
    async with counting() as (port, connections), dispatching(engine, egress=Egress("10.0.0.0/8")) as sends:
        await engine.register("inside", "*", url=url.format(port=port))
        job = await enqueue(engine, max_retry=0)
        await eventually(lambda: came_to(sends, *REFUSED))
        await until(engine, job, "queued")
        events = (await engine.history(job))["events"]
    assert connections() == 0
    assert any("--push-to" in event.get("message", "") for event in events)


async def test_a_name_that_leads_elsewhere_from_now_on_is_caught(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name service says something else the second time, as that of an attacker does."""
    address = "127.0.0.1"

    async def resolve(_host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    async with (
        listening(ACCEPTED) as stub,
        counting("127.0.0.2") as (port, connections),
        dispatching(engine, egress=Egress("127.0.0.1/32")) as sends,
    ):
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
        await engine.register("before", "mail", url=f"http://turns.example:{stub.url.rpartition(':')[2]}")
        await enqueue(engine)
        await stub.delivered()
        address = "127.0.0.2"
        await engine.register("after", "late", url=f"http://turns.example:{port}")
        await enqueue(engine, "late", max_retry=0)
        await eventually(lambda: came_to(sends, *REFUSED))
    assert connections() == 0


@asynccontextmanager
async def counting(host: str = "127.0.0.1") -> AsyncIterator[tuple[int, Callable[[], int]]]:
    """A server that counts who connects, whatever they want."""
    count = 0

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        writer.close()

    server = await asyncio.start_server(serve, host, 0)
    async with server:
        yield server.sockets[0].getsockname()[1], lambda: count
