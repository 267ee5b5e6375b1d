"""How long it takes from the end of a job until one that depends on it is ready in another partition.

bench/partitions_mail.py                four partitions on one Redis, then three on a cluster of three
bench/partitions_mail.py --rounds 2000

A courier runs in a process of its own, and has nothing else to do. What waits is looked at in a loop, so up to half a
millisecond is the measurement's own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Before this directory, which has `parts` of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "py" / "support"))

import msgpack
from kit.server import end_on_termination

from jqmaster.engine.engine import Engine
from jqmaster.system import calls
from jqmaster.system.courier import Courier
from jqmaster.system.engine import SystemEngine
from servers import RedisServer
from topologies import cluster

ROOT = "{bench}"
NIL = msgpack.packb(None)
TARGET_MS = 20.0


@contextmanager
def courier(url: str) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, __file__, "--courier", url])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


async def carry(url: str) -> None:
    engine = SystemEngine(url, ROOT)
    await Courier(engine).run()


async def until(fact: Callable[[], Awaitable[object]]) -> None:
    while True:
        if await fact():
            return
        await asyncio.sleep(0.0003)


async def is_followed(engine: Engine, job_id: str) -> bool:
    return "status" in (await engine.explain(job_id))["elsewhere"][0]


async def measure(url: str, count: int, rounds: int) -> list[float]:
    await calls.create(url, ROOT, count)
    engine = SystemEngine(url, ROOT)
    partitions = await engine.partitions()
    took = []
    with courier(url):
        for at in range(rounds):
            here, there = partitions[at % count], partitions[(at + 1) % count]
            [parent] = await here.enqueue([({"name": "a"}, NIL)])
            [child] = await there.enqueue([({"name": "b", "depends": [parent.id]}, NIL)])
            await until(lambda there=there, child=child: is_followed(there, child.id))
            await asyncio.sleep(0.005)  # the courier sleeps again
            [job] = (await here.pick("w", "a")).jobs
            key = f"{there.namespace}:q:b"
            began = time.perf_counter()
            await here.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, NIL)])
            await until(lambda there=there, key=key: there.redis.exists(key))
            took.append(1000 * (time.perf_counter() - began))
            [job] = (await there.pick("w", "b")).jobs
            await there.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, NIL)])
    await engine.close()
    return sorted(took)


def show(name: str, took: list[float]) -> None:
    p99 = took[int(len(took) * 0.99)]
    verdict = "met" if p99 <= TARGET_MS else "MISSED"
    print(
        f"{name:28} median {took[len(took) // 2]:.2f} ms, p99 {p99:.2f} ms, most {took[-1]:.2f} ms; "
        f"target of p99 {TARGET_MS:g} ms: {verdict} (load {os.getloadavg()[0]:.1f})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--courier", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.courier:
        asyncio.run(carry(options.courier))
        return
    end_on_termination()
    with RedisServer() as server:
        show("4 partitions, one Redis", asyncio.run(measure(server.url, 4, options.rounds)))
    with cluster(3) as nodes:
        show("3 partitions, 3 nodes", asyncio.run(measure(nodes.url, 3, options.rounds)))


if __name__ == "__main__":
    main()
