"""What workers of a system cost Redis, and how evenly its nodes share that.

bench/partitions.py                        three nodes, 6 partitions, workers with 8 slots
bench/partitions.py --slots 1 --jobs 3000

Three ways in turn, in each round on new namespaces: one namespace; a system whose workers stay where they are as long
as there are jobs; a system whose workers look at another with each report, as they do. Told are medians over rounds:
CPU of Redis per job, of all nodes and of the busiest one. What a node can do follows from the latter.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "py" / "support"))

from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.system import calls
from jqmaster.system.engine import SystemEngine
from jqmaster.worker import system_source
from jqmaster.worker.run import WorkOptions, work
from topologies import Cluster, cluster

BATCH = 20


async def stay(_source: Any, _home: Any) -> Any:
    """In place of looking at another partition."""
    return None, None


def cpu_us(nodes: Cluster) -> list[float]:
    """Of each node so far."""
    told = [node.client().info("cpu") for node in nodes.primaries]
    return [1e6 * (one["used_cpu_user"] + one["used_cpu_sys"]) for one in told]


async def run(nodes: Cluster, name: str, system: bool, options: argparse.Namespace) -> list[float]:
    """CPU of each node per job, in microseconds."""
    if system:
        await calls.create(nodes.url, name, options.partitions)
        engine: Any = SystemEngine(nodes.url, name)
    else:
        client = connect(nodes.url)
        await load(client, name)
        engine = Engine(client, name)
    for _ in range(options.jobs // BATCH):
        await engine.enqueue([({"name": "a"}, msgpack.packb(None))] * BATCH)
    done, stop = 0, asyncio.Event()

    async def function(_: Any) -> None:
        nonlocal done
        done += 1
        if done >= options.jobs // BATCH * BATCH:
            stop.set()

    where = {"system": name} if system else {"namespace": name}
    before = cpu_us(nodes)
    given = {"redis_url": nodes.url, "concurrency": options.slots, **where}
    await asyncio.gather(*(work(WorkOptions({"a": function}, **given), stop) for _ in range(options.workers)))
    spent = [(after - then) / done for then, after in zip(before, cpu_us(nodes), strict=True)]
    await (engine.close() if system else engine.redis.aclose())
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=6000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    looks: Callable[..., Any] = system_source.SystemSource._another
    ways = {"one namespace": (False, looks), "stays": (True, stay), "looks": (True, looks)}
    found: dict[str, list[list[float]]] = {way: [] for way in ways}
    with cluster(primaries=3) as nodes:
        for number in range(options.rounds):
            for way, (system, another) in ways.items():
                system_source.SystemSource._another = another  # type: ignore[method-assign]
                found[way].append(asyncio.run(run(nodes, f"{{{way[0]}{number}}}", system, options)))
    print("| way | Redis µs per job | busiest node |\n| --- | --- | --- |")
    whole = {way: statistics.median(map(sum, rounds)) for way, rounds in found.items()}
    busiest = {way: statistics.median(map(max, rounds)) for way, rounds in found.items()}
    for way in ways:
        print(f"| {way} | {whole[way]:.0f} | {busiest[way]:.0f} |")
    print(f"\nlooks over stays: {whole['looks'] / whole['stays']:.2f} x; "
          f"one namespace over the busiest of three: {busiest['one namespace'] / busiest['looks']:.2f} x")  # fmt: skip


if __name__ == "__main__":
    main()
