"""A cluster of JQ over three nodes of Redis: what an idle worker calls, and what partitions cost and bring."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kit.tables import Options, Table

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "py" / "support"))

NIL = b"\xc0"
NODES, PARTITIONS = 3, 16
BATCH = 100
IDLE_S = 60


def tables(options: Options, stack: ExitStack) -> Iterator[Table]:
    from topologies import cluster

    jobs = options.count(6_000, 600)
    nodes = stack.enter_context(cluster(NODES))
    many = f"{PARTITIONS} partitions"
    names = {"one namespace": "{bench}", "1 partition": "{bench:*/1}", many: f"{{bench:*/{PARTITIONS}}}"}
    sides = {what: lambda name=name: asyncio.run(_life(nodes, name, jobs)) for what, name in names.items()}
    note = f"In batches of {BATCH}, by one process, on {NODES} nodes that share this machine with it. {jobs} jobs."
    yield Table("A job's life through the library", note, sides, "one namespace")
    idle = {many: lambda: asyncio.run(_idle(nodes, options.count(IDLE_S, 10)))}
    yield Table("Calls of an idle worker", "For each minute and node; the most of any node.", idle, "")


async def _life(nodes: Any, name: str, jobs: int) -> dict[str, float]:
    """Jobs enqueued, then run, a second; and the CPU of all nodes for each."""
    from jqmaster.cluster.opening import Opened

    place = Opened(nodes.url, name)
    await place.load()
    engine = place.engine
    await engine.enqueue([({"name": "a"}, NIL)])
    before, began = _cpu_s(nodes), time.perf_counter()
    await asyncio.gather(*(engine.enqueue([({"name": "a"}, NIL)] * BATCH) for _ in range(jobs // BATCH)))

    async def work(worker: str) -> int:
        outcomes: list[Any] = []
        done = 0
        while True:
            finished = await engine.finish(worker, outcomes, pick={"queues": "a", "count": BATCH})
            done += len(outcomes)
            picked = finished.picked.jobs if finished.picked else []
            if not picked:
                return done
            outcomes = [({"id": job.id, "token": job.token, "type": "success"}, NIL) for job in picked]

    done = sum(await asyncio.gather(*(work(f"w{number}") for number in range(8))))
    took_s, cpu_s = time.perf_counter() - began, _cpu_s(nodes) - before
    await place.close()
    return {"jobs/s": done / took_s, "Redis CPU, µs": cpu_s / done * 1e6}


async def _idle(nodes: Any, for_s: int) -> dict[str, float]:
    from jqmaster.worker.sources import RedisSource
    from jqmaster.worker.worker import Worker

    source, stop = RedisSource(nodes.url, f"{{idle:*/{PARTITIONS}}}", ["a"]), asyncio.Event()
    running = asyncio.create_task(Worker({"a": None}, source).run(stop))
    await asyncio.sleep(5)
    before = [_calls(node) for node in nodes.primaries]
    await asyncio.sleep(for_s)
    most = max(_calls(node) - count for node, count in zip(nodes.primaries, before, strict=True))
    stop.set()
    await running
    await source.stop()
    return {"calls": most * 60 / for_s}


def _calls(node: Any) -> int:
    """By clients, as far as scripts do not make the same themselves. A probe goes with each BZPOPMIN."""
    with node.client() as client:
        stats: Any = client.info("commandstats")
    counted = {"fcall": 1, "evalsha": 1, "bzpopmin": 2, "ping": 1}
    return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) * each for name, each in counted.items())


def _cpu_s(nodes: Any) -> float:
    total = 0.0
    for node in nodes.primaries:
        with node.client() as client:
            cpu = client.info("cpu")
        total += cpu["used_cpu_user"] + cpu["used_cpu_sys"]
    return total
