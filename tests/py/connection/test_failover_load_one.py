"""As ``test_failover_load.py``, without a cluster: Sentinels, roles that are swapped, pauses, links that are cut."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from faults import folder  # noqa: F401
from loaded import LIMIT_S, ROUNDS, change, swap, under_load
from parts import eventually
from topologies import Proxy, Sentinels, nodes, until

pytestmark = pytest.mark.faults


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
