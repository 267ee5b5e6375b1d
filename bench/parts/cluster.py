"""What more nodes of a Redis Cluster bring: jobs for each second of CPU that the busiest node spends."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from kit.programs import ROOT, Driver, driver
from kit.tables import Figures, Options, Table

sys.path.append(str(ROOT / "tests" / "py" / "support"))

from topologies import Cluster, Node, cluster

PARTITIONS = 48  # three nodes have 15 to 17
NOTE = (
    "By the library: jobs enqueued one at a time, and run by one worker. Jobs for each second of CPU of the node that "
    "spends the most: so many a second it can do at most, where each node has a core and clients are enough. "
    f"{PARTITIONS} partitions."
)


def cpu_s(servers: Cluster) -> list[float]:
    found = []
    for node in servers.servers:
        with node.client() as client:
            info = client.info("cpu")
            found.append(info["used_cpu_user"] + info["used_cpu_sys"])
    return found


def measure(servers: Cluster, jq: Driver, jobs: int) -> Figures:
    found = {}
    for step in ("enqueue", "work"):
        before = cpu_s(servers)
        jq.step(step, jobs)
        spent = [after - was for after, was in zip(cpu_s(servers), before, strict=True)]
        found[f"{step}, jobs/s"] = jobs / max(spent)
    found["life, jobs/s"] = 1 / sum(1 / rate for rate in found.values())
    return found


def calls(node: Node) -> int:
    """By clients, but what scripts call as well. A probe goes with each BZPOPMIN."""
    with node.client() as client:
        stats: Any = client.info("commandstats")
    counted = {"fcall": 1, "evalsha": 1, "bzpopmin": 2, "ping": 1}
    return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) * each for name, each in counted.items())


async def idle(servers: Cluster, for_s: int) -> Figures:
    """What a worker calls that has nothing to do."""
    from jqmaster import JQ

    jq, stop = JQ(servers.url, namespace="{idle:*/16}"), asyncio.Event()
    jq.job(name="a")(lambda: None)
    running = asyncio.create_task(jq.worker().serve(stop))
    await asyncio.sleep(5)
    before = [calls(node) for node in servers.primaries]
    await asyncio.sleep(for_s)
    most = max(calls(node) - count for node, count in zip(servers.primaries, before, strict=True))
    stop.set()
    await running
    return {"calls": most * 60 / for_s}


def tables(options: Options, stack: ExitStack) -> Iterator[Table]:
    jobs = options.count(10_000, 500)
    sides = {}
    for count in (1, 3):
        servers = stack.enter_context(cluster(count))
        jq = stack.enter_context(driver("with_jq.py", servers.url, f"{{bench:*/{PARTITIONS}}}"))
        measure(servers, jq, 200)
        sides[f"{count} of its nodes"] = partial(measure, servers, jq, jobs)
    yield Table("Nodes of a cluster", NOTE, sides, "1 of its nodes")
    sleeps = {"16 partitions, 3 nodes": lambda: asyncio.run(idle(servers, options.count(60, 10)))}
    yield Table("An idle worker", "Calls a minute, of the node that gets the most.", sleeps, rounds=1)
