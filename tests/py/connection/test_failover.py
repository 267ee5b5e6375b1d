"""Redis fails over, pauses, moves or falls silent: all find their way back, and nobody is restarted."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from jqmaster import JQ
from jqmaster.connection.subscriptions import Subscriptions
from jqmaster.connection.wake import Channel
from jqmaster.engine import replies
from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.engine.waiting import Waiting
from jqmaster.errors import Unavailable
from jqmaster.master.events import EventFeed
from parts import enqueue, eventually
from servers import RedisServer
from topologies import Cluster, Node, Proxy, Sentinels, cluster, free_ports, nodes, until

NAMESPACE = "{jq}"
LONG_S = 60.0
BUSY = 5  # times as long as it may take where other processes are busy
SOON_S = 20.0


@pytest.fixture
async def redis(fresh_server: RedisServer) -> AsyncIterator[Redis]:
    async with connect(fresh_server.url) as redis:
        yield redis


class Client:
    """All that keeps a connection, on one URL: calls, a worker's long poll, a wait for an end, events."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.redis = connect(url)
        self.engine = Engine(self.redis, NAMESPACE)
        self.waiting = Waiting(self.engine, self.redis)
        self.ended = Ended(self.engine, self.redis)
        self.events = EventFeed(self.engine, self.redis)
        self.seen: list[bytes] = []
        self._following: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Client:
        await load(self.redis, NAMESPACE)
        await self.engine.config({"events_max": 1000})
        self._following = asyncio.create_task(self._follow(await self.events.last_id()))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._following is not None
        self._following.cancel()
        await asyncio.gather(self.waiting.stop(), self.ended.stop(), self.events.stop())
        await self.redis.aclose()

    async def _follow(self, last: str) -> None:
        while True:
            with contextlib.suppress(Unavailable):
                async for page in self.events.after(last, 60):
                    if page:
                        last = page[-1][0]
                        self.seen += [event for _, event in page]

    async def until_answered(self, ask: Callable[[], Awaitable[object]], timeout_s: float) -> object:
        """What a caller does who repeats what is safe to repeat."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                return await ask()
            except Unavailable:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)

    async def is_replicated(self) -> None:
        """All that was done so far is on the replicas: what is lost otherwise is not the matter here."""
        replicas = int((await self.redis.info("replication"))["connected_slaves"])
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.set(f"behind{NAMESPACE}", 1)
            pipe.execute_command("WAIT", replicas, 10_000)
            assert (await pipe.execute())[1] == replicas

    async def goes_on(self, fault: Callable[[], Awaitable[object]], within_s: float) -> float:
        """What waits already when `fault` comes, and what comes later, is served soon; nothing false is said.
        `fault` returns when there is a server that could serve. Gives the seconds from then to the first start.
        `within_s` is for a machine that has nothing else to do."""
        within_s *= BUSY
        first = await enqueue(self.engine, "first")
        [held] = (await self.engine.pick("w", "first")).jobs
        end = asyncio.create_task(self.ended.wait(first.encode(), LONG_S))
        poll = asyncio.create_task(self.waiting.pick({"worker": "w", "queues": "mail"}, LONG_S))
        await eventually(lambda: self.ended.is_subscribed and self.waiting._channels)
        await asyncio.sleep(0.3)
        await self.is_replicated()
        before = len(self.seen)
        await fault()
        began = time.monotonic()

        async def late() -> float:
            """The start of a job that comes now, by another client."""
            reply = await poll
            assert [job.id for job in replies.picked(reply).jobs] == [second]
            return time.monotonic() - began

        async with other_client(self) as engine:
            await self.until_answered(lambda: engine.get(first), within_s)
            second = await enqueue(engine)
            started = asyncio.create_task(late())
            await engine.finish("w", [({"id": held.id, "token": held.token, "type": "success"}, b"\xc0")])
            # Who asks now with little time is told the truth, or that it cannot be known.
            with contextlib.suppress(Unavailable):
                assert await self.ended.wait(first.encode(), 0.5) == "done"
            assert await asyncio.wait_for(end, within_s + 5) == "done"
            took_s = await asyncio.wait_for(started, within_s + 5)
            await self.until_answered(lambda: self.engine.get(first), within_s)
            await eventually(lambda: len(self.seen) >= before + 3, within_s)
            third = await enqueue(self.engine, "third")
            [job] = (await self.engine.pick("w", "third")).jobs
            later = asyncio.create_task(self.ended.wait(third.encode(), LONG_S))
            await eventually(lambda: self.ended.is_subscribed, 5)
            await engine.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, b"\xc0")])
            assert await asyncio.wait_for(later, 3) == "done"  # it was told: nobody looks so soon
            assert await engine.audit_all() == []
        return took_s


@contextlib.asynccontextmanager
async def other_client(client: Client) -> AsyncIterator[Engine]:
    """One that was started after the fault, at the same URL."""
    async with connect(client.url) as redis:
        yield Engine(redis, NAMESPACE)


async def test_sleepers_that_leave_during_a_pause_do_not_crash_redis(fresh_server: RedisServer, redis: Redis) -> None:
    """Redis 7.0 panics at CLIENT UNBLOCK of a command that CLIENT PAUSE or FAILOVER holds back."""
    channels = [Channel(redis, f"{{t}}:wake:{number}") for number in range(4)]
    for _ in range(12):
        await redis.execute_command("CLIENT", "PAUSE", 250, "WRITE")
        # Their BZPOPMIN is held back, and the sleepers leave it.
        await asyncio.gather(*(channel.sleep(0.02) for channel in channels))
        await asyncio.sleep(0.15)
        await redis.execute_command("CLIENT", "UNPAUSE")
    leaving = Channel(redis, "{t}:wake:leaving")
    sleeping = asyncio.create_task(leaving.sleep(SOON_S))
    await redis.execute_command("CLIENT", "PAUSE", 3000, "WRITE")
    await asyncio.sleep(0.05)
    await leaving.stop()
    await sleeping
    for channel in channels:
        await channel.stop()
    with contextlib.closing(fresh_server.client()) as client:
        assert client.ping()
    assert fresh_server.process is not None and fresh_server.process.poll() is None


@pytest.fixture
def pair() -> Iterator[list[Node]]:
    """A primary and its replica."""
    with nodes(2) as (primary, replica):
        replica.follow(primary)
        until(replica.has_caught_up)
        yield [primary, replica]


async def test_a_primary_that_became_a_replica_is_left(pair: list[Node]) -> None:
    """Behind an address that goes to the new primary, with all connections to the old one kept open."""
    async with Proxy(pair[0]) as proxy, Client(proxy.url) as client:

        async def swap() -> None:
            await asyncio.to_thread(pair[1].follow, None)
            proxy.target = pair[1]
            await asyncio.to_thread(pair[0].follow, pair[1])
            await asyncio.to_thread(until, pair[0].has_caught_up)

        await client.goes_on(swap, 1.5)


@pytest.mark.parametrize("silent_s", [1, 6])
async def test_links_that_fell_silent_are_found_out(fresh_server: RedisServer, silent_s: float) -> None:
    async with Proxy(fresh_server) as proxy, Client(proxy.url) as client:

        async def cut() -> None:
            proxy.silence()
            await asyncio.sleep(silent_s)
            proxy.heal()

        await client.goes_on(cut, 5)


async def test_a_slow_upload_is_no_dead_link(fresh_server: RedisServer) -> None:
    async with Proxy(fresh_server) as proxy:
        redis = connect(proxy.url)
        proxy.bytes_per_s = 1_000_000
        # Far longer than a reply may take: others ask meanwhile, and are answered.
        upload = asyncio.create_task(redis.set("long", b"x" * 4_000_000))
        while not upload.done():
            await redis.get("short")
            await asyncio.sleep(0.2)
        assert await upload
        await redis.aclose()


async def test_a_dead_link_is_found_out_though_somebody_sends_on_it(fresh_server: RedisServer) -> None:
    async with Proxy(fresh_server) as proxy:
        redis = connect(proxy.url)
        subscriptions = Subscriptions(redis)
        async with subscriptions.listen(f"{NAMESPACE}:job:a") as messages:
            assert await messages.get() is None
            proxy.silence()
            proxy.heal()
            heard = asyncio.create_task(messages.get())  # the gap: there is a new line
            for number in range(200):
                async with subscriptions.listen(f"{NAMESPACE}:job:b{number}"):
                    await asyncio.sleep(0.1)
                if heard.done():
                    break
            assert heard.done() and heard.result() is None
        await subscriptions.stop()
        await redis.aclose()


async def test_no_end_is_denied_while_redis_cannot_be_heard(fresh_server: RedisServer) -> None:
    async with Proxy(fresh_server) as proxy, Client(proxy.url) as client:
        job = await enqueue(client.engine)
        handle = JQ(proxy.url, namespace=NAMESPACE).handle(job)
        with pytest.raises(TimeoutError):
            await handle.ajoin(0.05)
        wait = asyncio.create_task(client.ended.wait(job.encode(), 1))
        await asyncio.sleep(0.3)
        proxy.silence()
        with pytest.raises(Unavailable):
            await asyncio.wait_for(wait, 10)
        with pytest.raises(Unavailable):  # and no TimeoutError, which says that it goes on
            await asyncio.wait_for(handle.ajoin(0.2), 10)


async def test_a_slow_redis_is_not_taken_for_a_dead_link(fresh_server: RedisServer) -> None:
    async with Client(fresh_server.url) as client:
        job = await enqueue(client.engine)
        await asyncio.sleep(0.3)
        ids = {line.split()[0] for line in await connections(fresh_server)}
        with fresh_server.client() as pausing:
            pausing.execute_command("CLIENT", "PAUSE", 4000, "ALL")
        assert (await client.engine.get(job))[0] is not None  # no Unavailable in between
        await asyncio.sleep(0.5)
        assert ids <= {line.split()[0] for line in await connections(fresh_server)}


async def connections(server: RedisServer) -> list[bytes]:
    """Those of clients that have called scripts or wait for something."""

    def ask() -> list[bytes]:
        with server.client() as client:
            client.set_response_callback("CLIENT LIST", lambda reply, **_: reply)
            lines = bytes(client.execute_command("CLIENT LIST")).splitlines()
        return [line for line in lines if b"cmd=client" not in line]

    return await asyncio.to_thread(ask)


@pytest.fixture
def sentinels(pair: list[Node]) -> Iterator[Sentinels]:
    with Sentinels(pair[0]) as sentinels:
        yield sentinels


async def test_sentinels_are_followed_to_the_next_primary(sentinels: Sentinels, pair: list[Node]) -> None:
    async with Client(sentinels.url) as client:

        async def fail_over() -> None:
            await asyncio.to_thread(sentinels.failover)
            await eventually(pair[1].is_primary)

        await client.goes_on(fail_over, 3)


async def test_sentinels_are_followed_after_a_kill(sentinels: Sentinels, pair: list[Node]) -> None:
    async with Client(sentinels.url) as client:

        async def kill() -> None:
            pair[0].kill()
            await eventually(pair[1].is_primary, 30)

        await client.goes_on(kill, 3)


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[Cluster]:
    with cluster(2) as servers:
        yield servers


@pytest.mark.parametrize("pause_s", [0, 0.3])
async def test_a_slot_that_moves_away_is_followed(two_nodes: Cluster, pause_s: float) -> None:
    async with Client(two_nodes.url) as client:
        for server in two_nodes.servers:
            server.do("FUNCTION", "FLUSH")
        assert await client.engine.form_in_use() == "functions"
        await client.goes_on(lambda: move(two_nodes, pause_s), 2)
        # Functions do not move with a slot.
        assert await client.engine.form_in_use() == "functions"
        assert two_nodes.owner(NAMESPACE).do("FUNCTION", "LIST")


async def test_a_slot_that_comes_back_is_heard_again(two_nodes: Cluster) -> None:
    """Redis cancels shard subscriptions when a slot goes, and does not renew them when it returns."""

    async def there_and_back() -> None:
        await move(two_nodes)
        await move(two_nodes)

    async with Client(two_nodes.url) as client:
        await client.goes_on(there_and_back, 2)


async def move(servers: Cluster, pause_s: float = 0) -> None:
    owner = await asyncio.to_thread(servers.owner, NAMESPACE)
    [target] = [server for server in servers.servers if server is not owner]
    await asyncio.to_thread(servers.move, NAMESPACE, target, pause_s)


async def test_the_documented_user_in_a_cluster(two_nodes: Cluster) -> None:
    async with connect(two_nodes.url) as redis:
        await load(redis, NAMESPACE)
    page = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()
    [rules] = re.findall(r"```\nACL SETUSER jq on >secret (.*?)```", page, re.DOTALL)
    for server in two_nodes.servers:
        server.do("ACL", "SETUSER", "jq", "reset", "on", ">secret", *rules.split(), "+cluster|slots")
    async with connect(two_nodes.url.replace("//", "//jq:secret@")) as redis:
        engine, ended = Engine(redis, NAMESPACE), Ended(Engine(redis, NAMESPACE), redis)
        job = await enqueue(engine)
        await move(two_nodes)
        [held] = (await engine.pick("w", "mail")).jobs
        wait = asyncio.create_task(ended.wait(job.encode(), LONG_S))
        await eventually(lambda: ended.is_subscribed)
        await engine.finish("w", [({"id": held.id, "token": held.token, "type": "success"}, b"\xc0")])
        assert await asyncio.wait_for(wait, 2) == "done"
        await ended.stop()


def certificates(folder: Path) -> None:
    """An authority, and a certificate of this machine, for servers and clients alike."""
    for command in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=jq",
        "req -newkey rsa:2048 -nodes -keyout own.key -out own.csr -subj /CN=127.0.0.1",
        "x509 -req -in own.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out own.crt -days 2 -extfile names",
    ):
        (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)


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
            await eventually(lambda: client.seen)


@pytest.fixture
def whole_cluster() -> Iterator[Cluster]:
    with cluster(3, replicas=1) as servers:
        yield servers


async def test_a_cluster_is_followed_through_a_planned_failover(whole_cluster: Cluster) -> None:
    owner = whole_cluster.owner(NAMESPACE)
    replica = whole_cluster.replica_of(owner)
    async with Client(whole_cluster.url) as client:
        await client.goes_on(lambda: asyncio.to_thread(replica.take_over), 1.5)


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
