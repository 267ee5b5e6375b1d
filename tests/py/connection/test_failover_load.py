"""Masters, pushers and workers of every kind go on through all that befalls Redis, under load: nothing is lost
but what was promised to be, nobody is restarted, no server crashes.

JQ_FAULT_ROUNDS=25 does everything so many times as often: 500 pauses and more, for an hour.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from redis.crc import key_slot
from redis.exceptions import RedisError

from jqmaster import JQ
from jqmaster.demo import journal
from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import Unavailable
from parts import eventually
from test_faults import BATCH, JOBS, NAMESPACE, Site, check, folder, push
from topologies import Cluster, Node, Proxy, Sentinels, cluster, nodes, until

__all__ = ["folder"]  # a fixture

ROUNDS = int(os.environ.get("JQ_FAULT_ROUNDS", "1"))
LIMIT_S = 180 * ROUNDS
PACE_S = 0.2
OPEN = ("queued", "scheduled", "retrying", "running", "blocked")


@dataclass
class Load:
    """A site at work, and what is known of its jobs."""

    site: Site
    servers: Sequence[Node]
    sent: list[str] = field(default_factory=list)  # acknowledged, in their order
    confirmed: int = 0  # so many of them are on a replica
    doubtful: set[int] = field(default_factory=set)  # those that a killed primary may have taken along
    denied: list[str] = field(default_factory=list)  # had ended, and were said to go on
    losses: int = 0

    async def confirm(self) -> None:
        """Have what was sent so far on a replica, again and again. One that was promoted says nothing of what
        the other had."""
        async with connect(self.site.url) as redis:
            Engine(redis, NAMESPACE)  # says whose slot it is
            while True:
                count, losses = len(self.sent), self.losses
                with contextlib.suppress(RedisError, OSError):
                    async with redis.pipeline(transaction=False) as pipe:
                        pipe.set(f"behind{NAMESPACE}", 1)
                        pipe.execute_command("WAIT", 1, 500)
                        if (await pipe.execute())[1] and losses == self.losses:
                            self.confirmed = count
                await asyncio.sleep(0.05)

    @contextlib.contextmanager
    def losing(self) -> Iterator[None]:
        """What is not confirmed may be lost when a primary dies."""
        first = self.confirmed
        self.losses += 1
        yield
        self.losses += 1
        self.doubtful |= set(range(first, len(self.sent) + BATCH))  # the answer to a batch may be on its way

    async def ask(self) -> None:
        """Ask one master after the other for jobs that have ended: none may say that they go on."""
        dice, ended = random.Random(1), dict[str, None]()
        while True:
            await asyncio.sleep(0.05)
            if not self.sent:
                continue
            job = dice.choice(list(ended) if len(ended) > 50 and dice.random() < 0.5 else self.sent)
            with contextlib.suppress(Unavailable):
                try:
                    await JQ(dice.choice(self.site.urls)).handle(job).ajoin(0.2)
                    ended[job] = None
                except TimeoutError:
                    if job in ended:
                        self.denied.append(job)

    async def is_over(self) -> bool:
        """Whether no job is open any more."""
        try:
            async with connect(self.site.url) as redis:
                [document] = (await Engine(redis, NAMESPACE).queues(["flaky"])).documents
        except Unavailable:
            return False
        return not any(document[state] for state in OPEN)

    async def is_well(self) -> None:
        """All is done that was acknowledged, and was not lost as promised."""
        await eventually(self.is_over, 90)
        async with connect(self.site.url) as redis:
            engine = Engine(redis, NAMESPACE)
            documents = [
                one for at in range(0, len(self.sent), 500) for one in await engine.get(*self.sent[at : at + 500])
            ]
            assert await engine.audit_all() == []
        assert all(server.process is not None and server.process.poll() is None for server in self.servers)
        for process in (*self.site.masters, *self.site.workers.values()):
            assert process._process.poll() is None, process.text
        for worker in self.site.workers.values():
            worker.signal()
        for worker in self.site.workers.values():
            assert await asyncio.to_thread(worker.ends) == 0, worker.text
        assert len(self.sent) >= JOBS
        if self.losses:
            assert {number for number, one in enumerate(documents) if one is None} <= self.doubtful
            assert {one["status"] for one in documents if one is not None} == {"done"}
        else:
            assert len(set(self.sent)) == len(self.sent) and self.denied == []
            entries = [entry for path in self.site.journals for entry in journal.read(path, journal.Entry)]
            check(documents, entries, self.site)


@asynccontextmanager
async def under_load(folder: Path, url: str, servers: Sequence[Node], pace_s: float = PACE_S) -> AsyncIterator[Load]:
    """Two masters and a worker of each kind, pushed to until this is left; then all must be well."""
    with ExitStack() as stack:
        load = Load(await asyncio.to_thread(Site, folder, stack, 1, url), servers)
        stop = asyncio.Event()
        pushing = asyncio.create_task(push(load.site, load.sent, stop, pace_s))
        others = [asyncio.create_task(load.confirm()), asyncio.create_task(load.ask())]
        try:
            await eventually(lambda: load.sent, 30)
            yield load
            stop.set()
            async with asyncio.timeout(60):
                await pushing
            await load.is_well()
        finally:
            for task in (pushing, *others):
                task.cancel()
            await asyncio.gather(pushing, *others, return_exceptions=True)


async def change(fault: Callable[[], object], pause_s: float = 0.5) -> None:
    """Work on for a moment, then this."""
    await asyncio.sleep(pause_s)
    await asyncio.to_thread(fault)


@pytest.fixture
def whole() -> Iterator[Cluster]:
    with cluster(3, replicas=1) as servers:
        yield servers


def fail_over(servers: Cluster) -> None:
    """As planned."""
    servers.replica_of(servers.owner(NAMESPACE)).take_over()


@pytest.mark.timeout(LIMIT_S)
async def test_planned_failovers_of_a_cluster(whole: Cluster, folder: Path) -> None:
    async with under_load(folder, whole.url, whole.servers):
        for _ in range(4 * ROUNDS):
            await change(lambda: fail_over(whole))


def other_primary(servers: Cluster) -> Node:
    owner = servers.owner(NAMESPACE)
    return next(one for one in servers.servers if one.is_primary() and one is not owner)


def give_up(servers: Cluster, has_begun: bool) -> None:
    """A move that ends before the first key has gone: the only moment at which it may."""
    slot = key_slot(NAMESPACE.encode())
    source, target = servers.owner(NAMESPACE), other_primary(servers)
    target.do("CLUSTER", "SETSLOT", slot, "IMPORTING", servers.id_of(source))
    if has_begun:
        source.do("CLUSTER", "SETSLOT", slot, "MIGRATING", servers.id_of(target))
    time.sleep(0.5)
    for server in (source, target):
        server.do("CLUSTER", "SETSLOT", slot, "STABLE")


@pytest.mark.timeout(LIMIT_S)
async def test_a_slot_that_moves(whole: Cluster, folder: Path) -> None:
    """Away and back, while it is in use; with a rest at each stage, so that everybody meets it."""
    async with under_load(folder, whole.url, whole.servers):
        for _ in range(ROUNDS):
            await change(lambda: give_up(whole, False))
            await change(lambda: give_up(whole, True))
            await change(lambda: whole.move(NAMESPACE, other_primary(whole), 0.02))
            await change(lambda: whole.move(NAMESPACE, other_primary(whole), 0.5))


@pytest.mark.timeout(LIMIT_S)
async def test_primaries_of_a_cluster_that_are_killed(whole: Cluster, folder: Path) -> None:
    async with under_load(folder, whole.url, whole.servers) as load:

        def kill() -> None:
            primary = whole.owner(NAMESPACE)
            replica = whole.replica_of(primary)
            with load.losing():
                primary.kill()
                until(replica.is_primary)
            primary.start()
            until(primary.has_caught_up)

        for _ in range(2 * ROUNDS):
            await eventually(lambda: load.confirmed)
            await change(kill)


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("how", ["planned", "killed"])
async def test_sentinels(how: str, folder: Path) -> None:
    with nodes(2) as (primary, replica):
        replica.follow(primary)
        await asyncio.to_thread(until, replica.has_caught_up)
        with Sentinels(primary) as sentinels:
            async with under_load(folder, sentinels.url, [primary, replica]) as load:

                def plan() -> None:
                    # Sentinels let the old primary go on for some seconds. What it took then would be lost.
                    primary.do("CLIENT", "PAUSE", 30_000, "WRITE")
                    until(lambda: primary.offset() == replica.offset())
                    sentinels.failover()
                    until(replica.is_primary)

                def kill() -> None:
                    with load.losing():
                        primary.kill()
                        # One that comes back empty while it is still named would be pushed to.
                        until(lambda: replica.is_primary() and sentinels.all_name(replica))
                    primary.start()
                    until(primary.has_caught_up)

                await eventually(lambda: load.confirmed)
                await change(plan if how == "planned" else kill)


async def swap(proxy: Proxy, roles: list[Node]) -> None:
    """`FAILOVER` behind an address that goes to the new primary; what was connected stays at the old one."""
    primary, replica = roles
    await asyncio.to_thread(until, replica.has_caught_up)
    await asyncio.to_thread(primary.do, "FAILOVER", "TO", "127.0.0.1", replica.port, "TIMEOUT", 20_000)
    await asyncio.to_thread(until, replica.is_primary)
    proxy.target = replica
    roles.reverse()


@pytest.mark.timeout(LIMIT_S)
async def test_swapped_roles_with_connections_kept(folder: Path) -> None:
    with nodes(2) as (primary, replica):
        replica.follow(primary)
        await asyncio.to_thread(until, replica.has_caught_up)
        async with Proxy(primary) as proxy, under_load(folder, proxy.url, [primary, replica]):
            roles = [primary, replica]
            for _ in range(5 * ROUNDS):
                await asyncio.sleep(0.5)
                await swap(proxy, roles)


@pytest.mark.timeout(LIMIT_S)
async def test_a_hundred_pauses(folder: Path) -> None:
    """Redis holds all writes back, for longer and shorter."""
    with nodes(1) as (server,):
        async with under_load(folder, f"redis://127.0.0.1:{server.port}", [server]):
            dice = random.Random(3)
            for _ in range(100 * ROUNDS):
                await change(
                    lambda: server.do("CLIENT", "PAUSE", dice.randint(20, 200), dice.choice(("WRITE", "ALL"))),
                    dice.uniform(0.01, 0.3),
                )


@pytest.mark.timeout(LIMIT_S)
async def test_links_that_are_cut_without_a_word(folder: Path) -> None:
    with nodes(1) as (server,):
        async with Proxy(server) as proxy, under_load(folder, proxy.url, [server]):

            async def cut() -> None:
                proxy.silence()
                await asyncio.sleep(1)
                proxy.heal()

            for _ in range(3 * ROUNDS):
                await asyncio.sleep(3)
                await cut()
