"""Masters and workers of every kind go on through failovers under load: nothing is lost, nobody restarted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from jqmaster.demo import journal
from jqmaster.engine.engine import Engine, connect
from parts import eventually
from test_faults import JOBS, NAMESPACE, Site, _ended, check, folder, push
from topologies import Cluster, Sentinels, cluster, nodes, until

__all__ = ["folder"]  # a fixture

Fault = Callable[[Cluster], None]


def fail_over(servers: Cluster) -> None:
    """As planned."""
    replica = servers.replica_of(servers.owner(NAMESPACE))
    until(lambda: replica.do("CLUSTER", "FAILOVER"))
    until(replica.is_primary)


def move(servers: Cluster) -> None:
    """The slot goes to another primary, slowly, while it is in use."""
    owner = servers.owner(NAMESPACE)
    target = next(one for one in servers.servers if one.is_primary() and one is not owner)
    servers.move(NAMESPACE, target, 0.02)


def pause(servers: Cluster) -> None:
    """Redis holds all writes back, several times."""
    owner = servers.owner(NAMESPACE)
    for _ in range(10):
        owner.do("CLIENT", "PAUSE", 150, "WRITE")
        time.sleep(0.2)


@pytest.mark.timeout(180)
async def test_planned_changes_of_a_cluster_lose_nothing(folder: Path) -> None:
    with ExitStack() as stack:
        servers = stack.enter_context(cluster(3, replicas=1))
        site = await asyncio.to_thread(Site, folder, stack, 1, servers.url)
        sent: list[str] = []
        pushing = asyncio.create_task(push(site, sent))
        for fault in (fail_over, move, pause, move, fail_over):
            await asyncio.sleep(0.3)
            await asyncio.to_thread(fault, servers)
        await all_is_done(site, pushing, sent)


@pytest.mark.timeout(180)
async def test_planned_failovers_by_sentinels_lose_nothing(folder: Path) -> None:
    with ExitStack() as stack:
        primary, replica = stack.enter_context(nodes(2))
        replica.follow(primary)
        await asyncio.to_thread(until, replica.has_caught_up)
        sentinels = stack.enter_context(Sentinels(primary))
        site = await asyncio.to_thread(Site, folder, stack, 2, sentinels.url)
        sent: list[str] = []
        pushing = asyncio.create_task(push(site, sent))
        await asyncio.sleep(0.3)
        # Sentinels let the old primary go on for some seconds. What it took then would be lost.
        await asyncio.to_thread(primary.do, "CLIENT", "PAUSE", 30_000, "WRITE")
        await asyncio.to_thread(until, lambda: primary.offset() == replica.offset())
        await asyncio.to_thread(sentinels.failover)
        await asyncio.to_thread(until, replica.is_primary)
        await all_is_done(site, pushing, sent)


async def all_is_done(site: Site, pushing: asyncio.Task[None], sent: list[str]) -> None:
    async with asyncio.timeout(60):
        await pushing
    async with connect(site.url) as redis:
        engine = Engine(redis, NAMESPACE)
        await eventually(lambda: _ended(engine), 60)
        documents = await engine.get(*sent)
        assert await engine.audit_all() == []
    assert len(set(sent)) == JOBS
    for process in (*site.masters, *site.workers.values()):
        assert process._process.poll() is None, process.text
    for worker in site.workers.values():
        worker.signal()
    for worker in site.workers.values():
        assert await asyncio.to_thread(worker.ends) == 0, worker.text
    entries = [entry for path in site.journals for entry in journal.read(path, journal.Entry)]
    check(documents, entries, site)
