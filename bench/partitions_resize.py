"""For how long nothing starts while partitions are added to a system that works, buckets move, and one is drained.

bench/partitions_resize.py                       three nodes, 3 partitions, then 6
bench/partitions_resize.py --more 1 --seconds 20

One process enqueues all the time, one job per call, every other one with a unique key and all with a request token; a
worker runs what there is. Told are, for each phase, how long it took and the longest times between two starts and
between two enqueues that returned from its beginning on; and when the first job of a new partition started.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import msgpack

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "py" / "support"))

from jqmaster.system import calls
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import partition_of
from jqmaster.system.resizing import add, drain, rebalance
from jqmaster.worker.run import WorkOptions, work
from topologies import Cluster, cluster

NAME = "{bench}"
PAUSE_S = 0.002  # between enqueues, so that two cores are enough for all


def longest_ms(moments: list[float], since: float, until: float) -> float:
    """Between two of them."""
    within = [since, *(one for one in moments if since < one < until), until]
    return 1000 * max(later - earlier for earlier, later in pairwise(within))


async def run(nodes: Cluster, options: argparse.Namespace) -> None:
    await calls.create(nodes.url, NAME, options.partitions)
    engine = SystemEngine(nodes.url, NAME)
    starts: list[float] = []
    enqueued: list[tuple[float, str]] = []
    stop = asyncio.Event()

    async def function(_: Any) -> None:
        starts.append(time.monotonic())

    async def enqueue() -> None:
        for number in count():
            if stop.is_set():
                return
            spec: dict[str, Any] = {"name": "a", **({"unique": str(number)} if number % 2 else {})}
            [made] = await engine.enqueue([(spec, msgpack.packb(None))], request=str(number))
            enqueued.append((time.monotonic(), made.id))
            await asyncio.sleep(PAUSE_S)

    worker = asyncio.create_task(
        work(WorkOptions({"a": function}, redis_url=nodes.url, system=NAME, concurrency=8, drain_timeout_s=5.0), stop)
    )
    enqueuing = asyncio.create_task(enqueue())
    await asyncio.sleep(2)  # until they are at it
    phases = {
        "nothing": lambda: asyncio.sleep(0),
        "adding": lambda: add(nodes.url, NAME, options.more),
        "moving buckets": lambda: rebalance(nodes.url, NAME),
        "draining one": lambda: drain(nodes.url, NAME, 1),
    }
    told: dict[str, tuple[float, float, float]] = {}
    for what, phase in phases.items():
        began = time.monotonic()
        await phase()
        took = time.monotonic() - began
        await asyncio.sleep(options.seconds / len(phases))
        told[what] = began, took, time.monotonic()
    stop.set()
    await asyncio.gather(worker, enqueuing)
    new = [moment for moment, job in enqueued if partition_of(job) >= options.partitions]
    returned = [moment for moment, _ in enqueued]
    print(f"{options.partitions} partitions, {options.more} more; {len(starts)} jobs ran of {len(enqueued)}")
    print(f"first job of a new one {1000 * (new[0] - told['adding'][0]):.0f} ms after adding began")
    print(f"{'':16}{'took':>8}{'longest without starts':>26}{'without enqueues':>20}")
    for what, (began, took, ended) in told.items():
        gaps = (longest_ms(moments, began, ended) for moments in (starts, returned))
        print(f"{what:16}{1000 * took:5.0f} ms{next(gaps):23.0f} ms{next(gaps):17.0f} ms")
    await engine.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--more", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20)
    with cluster(replicas=False) as nodes:
        asyncio.run(run(nodes, parser.parse_args()))


if __name__ == "__main__":
    main()
