"""How much of a limit that partitions share is used, and what it costs to share it out.

bench/partitions_limits.py                                   a limit of 100 over 16 partitions, uneven, changing demand
bench/partitions_limits.py --partitions 4 --limit 10 --even

All partitions are on one server; whoever works in one takes what it may. Jobs last half a second on average. Demand is
more than the limit throughout: in four partitions, others every two seconds; with --even in all.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

# Before this directory, which has `parts` of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "py" / "support"))

from kit.server import Server, end_on_termination

from jqmaster.engine.engine import connect
from jqmaster.system.balance import Balancer
from sharing import Shop

CHANGES_S = 2.0
LOOKS_S = 0.01
MEAN_S = 0.5


async def measure(url: str, options: argparse.Namespace) -> None:
    calls: Counter[str] = Counter()
    chance = random.Random(options.seed)
    async with connect(url, max_connections=200) as redis:
        shop = Shop(redis, "{bench}", options.partitions)
        await shop.open(options.limit)
        for engine in shop.engines:
            engine.observe = lambda operation, code, took_s: calls.update([operation])
        balancer = asyncio.create_task(Balancer(shop.engines).run())
        await asyncio.sleep(1)
        calls.clear()
        busy = set(range(options.partitions))
        works = [asyncio.create_task(work(shop, index, chance)) for index in busy]
        uses: list[float] = []
        ends = time.monotonic() + options.seconds
        changes = 0.0
        while (now := time.monotonic()) < ends:
            if now >= changes and not options.even:
                busy, changes = set(chance.sample(range(options.partitions), 4)), now + CHANGES_S
            for index in busy:
                if (waiting := options.limit - (await queued(shop, index))) > 0:
                    await shop.put(index, waiting)
            running, _ = await shop.look()
            uses.append(running / options.limit)
            await asyncio.sleep(LOOKS_S)
        took = dict(calls)
        for task in (balancer, *works):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        warm = uses[len(uses) // 10 :]
        told = (took.get("share", 0) + took.get("balance", 0)) / options.seconds
        print(f"{options.partitions} partitions, limit {options.limit}, {'even' if options.even else 'uneven'} demand:")
        print(f"used {100 * sum(warm) / len(warm):.1f} %, never more than {100 * max(uses):.0f} %")
        print(f"{told:.0f} calls a second share it out, beside {took['finish'] / options.seconds:.0f} jobs a second")
        await idle(shop, calls)


async def queued(shop: Shop, index: int) -> int:
    [document] = (await shop.engines[index].queues(["a"])).documents or [{"queued": 0}]
    return int(document["queued"])


async def work(shop: Shop, index: int, chance: random.Random) -> None:
    """Takes all that may start in a partition, as soon as it may."""
    running: set[asyncio.Task[None]] = set()

    async def run(job: object) -> None:
        await asyncio.sleep(chance.uniform(0, 2 * MEAN_S))
        await shop.end(index, [job])

    while True:
        for job in await shop.take(index, 100):
            running.add(task := asyncio.create_task(run(job)))
            task.add_done_callback(running.discard)
        await asyncio.sleep(LOOKS_S)


async def idle(shop: Shop, calls: Counter[str]) -> None:
    """What sharing costs while nothing happens: with the constraint, and without any."""
    for engine in shop.engines:
        for status in ("queued", "running"):
            while found := (await engine.jobs({"status": [status]}, count=1000)).documents:
                await engine.cancel([job["id"] for job in found], force=True)
    for what in ("idle", "without shared constraints"):
        balancer = asyncio.create_task(Balancer(shop.engines).run())
        await asyncio.sleep(6)
        calls.clear()
        await asyncio.sleep(10)
        print(f"{what}: {(calls['share'] + calls['balance']) / 10:.1f} calls a second")
        balancer.cancel()
        with suppress(asyncio.CancelledError):
            await balancer
        for engine in shop.engines:
            with suppress(Exception):
                await engine.unconstrain("c")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--even", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    end_on_termination()
    server = Server()
    try:
        asyncio.run(measure(f"unix://{server.path}", options))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
