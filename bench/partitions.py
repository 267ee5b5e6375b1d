"""What workers of a system cost Redis, and how evenly its nodes share that.

bench/partitions.py                        three nodes, 6 partitions, workers with 8 slots
bench/partitions.py --slots 1 --jobs 3000
bench/partitions.py --slots 1 --jobs 1500 --rounds 1 --instructions      counted by callgrind

Four ways in turn, in each round on new namespaces: one namespace; three that know nothing of each other, one on each
node, each with workers of its own; a system whose workers stay where they are as long as there are jobs; a system whose
workers look at another with each report, as they do. Told are medians over rounds: CPU of Redis per job, of all nodes
and of the busiest one. What a node can do follows from the latter.

Nodes that share a core take its caches from each other and are woken for each call, which busy nodes with a core each
are not. So CPU is to be held against that of the namespaces apart; instructions do not know of it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "py" / "support"))

import servers
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.system import calls
from jqmaster.system.engine import SystemEngine
from jqmaster.system.picking import Places
from jqmaster.worker.run import WorkOptions, work
from topologies import Cluster, cluster

BATCH = 20
NODES = 3
WAYS = ("one namespace", "apart", "stays", "looks")


async def stay(_places: Any, _home: Any) -> Any:
    """In place of looking at another partition."""
    return None, None


def cpu_us(nodes: Cluster) -> list[float]:
    """Of each node so far."""
    told = [node.client().info("cpu") for node in nodes.primaries]
    return [1e6 * (one["used_cpu_user"] + one["used_cpu_sys"]) for one in told]


class Counted:
    """Servers under callgrind."""

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory)
        script = self.directory / "server"
        counting = f"valgrind -q --tool=callgrind --callgrind-out-file={directory}/cg.%p {servers.SERVER}"
        script.write_text(f'#!/bin/sh\nexec {counting} "$@"\n')
        script.chmod(0o700)
        servers.SERVER = str(script)

    def thousands(self, nodes: Cluster) -> list[float]:
        """Instructions of each node so far, in thousands."""
        found = []
        for node in nodes.primaries:
            assert node.process is not None
            subprocess.run(["callgrind_control", "-d", str(node.process.pid)], check=True, capture_output=True)
            texts = [dump.read_text() for dump in self.directory.glob(f"cg.{node.process.pid}.*")]
            found.append(sum(int(one) for text in texts for one in re.findall(r"(?m)^totals: (\d+)", text)) / 1000)
        return found


@contextlib.contextmanager
def measured(*, counts: bool) -> Iterator[tuple[Cluster, Callable[[Cluster], list[float]]]]:
    """A cluster, and what tells how much each node has spent so far."""
    if not counts:
        with cluster(primaries=NODES) as nodes:
            yield nodes, cpu_us
        return
    with tempfile.TemporaryDirectory() as directory:
        meter = Counted(directory)
        with cluster(NODES, 0, 60_000) as nodes:  # they are slow, and do not give each other up
            yield nodes, meter.thousands


async def fill(engine: Engine | SystemEngine, jobs: int) -> None:
    for _ in range(jobs // BATCH):
        await engine.enqueue([({"name": "a"}, msgpack.packb(None))] * BATCH)


async def empty(url: str, jobs: int, workers: int, slots: int, **where: str) -> None:
    """Have workers do all jobs of a namespace or of a system."""
    left, stop = jobs // BATCH * BATCH, asyncio.Event()

    async def function(_: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            stop.set()

    given = WorkOptions({"a": function}, redis_url=url, concurrency=slots, **where)
    await asyncio.gather(*(work(given, stop) for _ in range(workers)))


async def run(
    nodes: Cluster, spent: Callable[[Cluster], list[float]], way: str, name: str, options: argparse.Namespace
) -> list[float]:
    """What each node spent per job."""
    is_system = way in ("stays", "looks")
    engines: list[Engine | SystemEngine]
    if way == "one namespace":
        client = connect(nodes.url)
        await load(client, name)
        engines = [Engine(client, name)]
    elif way == "apart":
        laid = await calls.create(nodes.url, name, NODES)
        engines = [Engine(connect(nodes.url), one.namespace) for one in laid.partitions]
    else:
        await calls.create(nodes.url, name, options.partitions)
        engines = [SystemEngine(nodes.url, name)]
    jobs = options.jobs // len(engines)
    await asyncio.gather(*(fill(engine, jobs) for engine in engines))
    before = spent(nodes)
    names = [{"system": name}] if is_system else [{"namespace": one.namespace} for one in engines]
    workers = options.workers * (NODES if is_system else 1)  # equally many for each node
    await asyncio.gather(*(empty(nodes.url, jobs, workers, options.slots, **where) for where in names))
    done = jobs // BATCH * BATCH * len(engines)
    found = [(after - then) / done for then, after in zip(before, spent(nodes), strict=True)]
    for engine in engines:
        await (engine.close() if isinstance(engine, SystemEngine) else engine.redis.aclose())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=6000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--instructions", action="store_true", help="count these, in place of CPU; needs valgrind")
    options = parser.parse_args()
    looks: Callable[..., Any] = Places.another
    found: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    with measured(counts=options.instructions) as (nodes, spent):
        for number in range(options.rounds):
            for way in WAYS:
                Places.another = stay if way == "stays" else looks  # type: ignore[method-assign]
                found[way].append(asyncio.run(run(nodes, spent, way, f"{{{way[0]}{number}}}", options)))
    unit = "thousand instructions" if options.instructions else "Redis µs"
    print(f"| way | {unit} per job | busiest node |\n| --- | --- | --- |")
    whole = {way: statistics.median(map(sum, rounds)) for way, rounds in found.items()}
    busiest = {way: statistics.median(map(max, rounds)) for way, rounds in found.items()}
    for way in WAYS:
        print(f"| {way} | {whole[way]:.0f} | {busiest[way]:.0f} |")
    print(f"\nlooks over stays: {whole['looks'] / whole['stays']:.2f} x; "
          f"three nodes over one: {whole['apart'] / busiest['looks']:.2f} x, "
          f"as measured {busiest['one namespace'] / busiest['looks']:.2f} x")  # fmt: skip


if __name__ == "__main__":
    main()
