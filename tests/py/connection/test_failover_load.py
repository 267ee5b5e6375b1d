"""Masters, pushers and workers of every kind go on through what befalls a Redis Cluster, or a Redis with Sentinels,
under load: nothing is lost but what was promised to be, nobody is restarted, no server crashes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.crc import key_slot

from faults import NAMESPACE, folder  # noqa: F401
from loaded import LIMIT_S, ROUNDS, change, under_load
from parts import eventually
from topologies import Cluster, Node, Sentinels, cluster, nodes, until

pytestmark = pytest.mark.faults


@pytest.fixture
def whole() -> Iterator[Cluster]:
    with cluster(3, replicas=1) as servers:
        yield servers


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
async def test_sentinels(folder: Path) -> None:
    with nodes(2) as (primary, replica):
        replica.follow(primary)
        await asyncio.to_thread(until, replica.has_caught_up)
        with Sentinels(primary) as sentinels:
            async with under_load(folder, sentinels.url, [primary, replica]) as load:

                def kill() -> None:
                    with load.losing():
                        primary.kill()
                        # One that comes back empty while it is still named would be pushed to.
                        until(lambda: replica.is_primary() and sentinels.all_name(replica))
                    primary.start()
                    until(primary.has_caught_up)

                await eventually(lambda: load.confirmed)
                await change(kill)
