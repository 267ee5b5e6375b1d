"""Slots that move, and failovers of a Redis Cluster."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from failovers import LONG_S, NAMESPACE, Client, move
from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from parts import enqueue, eventually
from test_redis_options import certificates
from topologies import Cluster, cluster, free_ports

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[Cluster]:
    with cluster(2) as servers:
        yield servers


@pytest.mark.parametrize("pause_s", [0, 0.3])
async def test_a_slot_that_moves_away_is_followed(two_nodes: Cluster, pause_s: float) -> None:
    async with Client(two_nodes.url) as client:
        for server in two_nodes.servers:
            server.do("FUNCTION", "FLUSH")
        assert client.engine.form_in_use == "functions"
        await client.goes_on(lambda: move(two_nodes, pause_s), 2)
        # Functions do not move with a slot.
        assert client.engine.form_in_use == "functions"
        assert two_nodes.owner(NAMESPACE).do("FUNCTION", "LIST")


async def test_a_slot_that_comes_back_is_heard_again(two_nodes: Cluster) -> None:
    """Redis cancels shard subscriptions when a slot goes, and does not renew them when it returns."""

    async def there_and_back() -> None:
        await move(two_nodes)
        await move(two_nodes)

    async with Client(two_nodes.url) as client:
        await client.goes_on(there_and_back, 2)


async def test_the_documented_user_in_a_cluster(two_nodes: Cluster) -> None:
    async with connect(two_nodes.url) as redis:
        await load(redis, NAMESPACE)
    page = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()
    [rules] = re.findall(r"```\nACL SETUSER jq on >secret (.*?)```", page, re.DOTALL)
    for server in two_nodes.servers:
        server.do("ACL", "SETUSER", "jq", "reset", "on", ">secret", *rules.split())
    async with connect(two_nodes.url.replace("//", "//jq:secret@")) as redis:
        engine, ended = Engine(redis, NAMESPACE), Ended(Engine(redis, NAMESPACE))
        job = await enqueue(engine)
        await move(two_nodes)
        [held] = (await engine.pick("w", "mail")).jobs
        wait = asyncio.create_task(ended.wait(job.encode(), LONG_S))
        await eventually(lambda: ended.is_subscribed)
        await engine.finish("w", [({"id": held.id, "token": held.token, "type": "success"}, b"\xc0")])
        assert await asyncio.wait_for(wait, 2) == "done"
        await ended.stop()


async def test_a_cluster_with_tls(tmp_path: Path) -> None:
    certificates(tmp_path)
    files = {name: str(tmp_path / name) for name in ("ca.crt", "own.crt", "own.key")}
    [port] = free_ports(1)
    with cluster(
        1, 0, 1500, "--tls-ca-cert-file", files["ca.crt"], "--tls-cert-file", files["own.crt"],
        "--tls-key-file", files["own.key"], "--tls-cluster", "yes", "--tls-port", str(port),
    ):  # fmt: skip
        options = f"ssl_ca_certs={files['ca.crt']}&ssl_certfile={files['own.crt']}&ssl_keyfile={files['own.key']}"
        async with Client(f"rediss+cluster://127.0.0.1:{port}?{options}") as client:
            job = await enqueue(client.engine)
            assert await client.ended.wait(job.encode(), 0.1) == "queued"


@pytest.fixture
def whole_cluster() -> Iterator[Cluster]:
    with cluster(3, replicas=1) as servers:
        yield servers


@pytest.mark.parametrize("how", ["kill", "freeze"])
async def test_a_cluster_is_followed_when_a_primary_is_gone(whole_cluster: Cluster, how: str) -> None:
    owner = whole_cluster.owner(NAMESPACE)
    replica = whole_cluster.replica_of(owner)
    async with Client(whole_cluster.url) as client:

        async def lose() -> None:
            assert owner.process is not None
            owner.process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGSTOP)
            await eventually(replica.is_primary, 30)

        await client.goes_on(lose, 3)


async def test_slow_nodes_are_waited_for() -> None:
    """Where nobody answers as quickly as usual, the first to answer is believed."""
    with cluster(1, 0, 15_000) as servers:
        processes = [server.process for server in servers.servers if server.process is not None]
        for process in processes:
            process.send_signal(signal.SIGSTOP)

        async def wake() -> None:
            await asyncio.sleep(1.5)
            for process in processes:
                process.send_signal(signal.SIGCONT)

        async with connect(servers.url) as redis:
            waking = asyncio.create_task(wake())
            assert (await Engine(redis, NAMESPACE).queues()).documents == []
            await waking
