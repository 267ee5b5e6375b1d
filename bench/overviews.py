"""What open overviews cost: CPU of a master and of Redis, with and without them, while jobs run.

    .venv/bin/python bench/overviews.py --tabs 20 --rate 50 --seconds 60

Each tab follows the overview and asks for what its charts show as often as the page does. Figures are shares of a core.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import aiohttp

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/py/support"), str(ROOT / "python")]

from jqmaster.engine.engine import Engine, connect  # noqa: E402
from processes import MasterProcess  # noqa: E402
from servers import RedisServer  # noqa: E402

NIL = b"\xc0"
QUEUES = [f"queue-{number}" for number in range(12)]
TRENDS_EVERY_S, MARKS_EVERY_S = 10, 30


async def work(url: str, rate: float) -> None:
    """So many jobs a second, each enqueued, picked and finished."""
    engine, number = Engine(connect(url), "{jq}"), 0
    while True:
        began, queue, count = time.monotonic(), QUEUES[number % len(QUEUES)], max(1, round(rate / 10))
        number += 1
        await engine.enqueue([({"name": queue}, NIL)] * count)
        jobs = (await engine.pick("w", queue, count)).jobs
        await engine.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, NIL) for job in jobs])
        await asyncio.sleep(max(0.0, count / rate - (time.monotonic() - began)))


async def tab(url: str, heard: list[int]) -> None:
    async with aiohttp.ClientSession(headers={"accept": "application/json"}) as session:

        async def ask(path: str, every_s: float) -> None:
            while True:
                from_ms = int(time.time() * 1000) // 60_000 * 60_000 - 3_600_000
                async with session.get(f"{url}{path}from_ms={from_ms}") as answer:
                    answer.raise_for_status()
                    await answer.read()
                await asyncio.sleep(every_s)

        async def follow() -> None:
            timeout = aiohttp.ClientTimeout(total=None)
            async with session.get(f"{url}/overview/events", timeout=timeout) as answer:
                answer.raise_for_status()
                async for line in answer.content:
                    heard[0] += line.startswith(b"data:")

        async with asyncio.TaskGroup() as group:
            group.create_task(follow())
            group.create_task(ask("/trends?split=queue&top=7&", TRENDS_EVERY_S))
            group.create_task(ask("/marks?", MARKS_EVERY_S))


async def measure(pids: dict[str, int], seconds: float) -> dict[str, float]:
    def used() -> dict[str, float]:
        fields = {name: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for name, pid in pids.items()}
        return {name: (int(of[11]) + int(of[12])) / os.sysconf("SC_CLK_TCK") for name, of in fields.items()}

    before, began = used(), time.monotonic()
    await asyncio.sleep(seconds)
    after, took = used(), time.monotonic() - began
    return {name: (after[name] - before[name]) / took for name in pids}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tabs", type=int, default=20)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    server = RedisServer().start()
    try:
        with MasterProcess("--redis", server.url, "--namespace", "{jq}") as master:
            assert server.process is not None
            pids = {"master": master.pid, "redis": server.process.pid}
            working = asyncio.create_task(work(server.url, options.rate))
            await asyncio.sleep(5)
            without = await measure(pids, options.seconds)
            heard = [0]
            tabs = [asyncio.create_task(tab(master.url, heard)) for _ in range(options.tabs)]
            await asyncio.sleep(10)
            with_tabs = await measure(pids, options.seconds)
            gone = sum(task.done() for task in (working, *tabs))
            for task in (working, *tabs):
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task
    finally:
        server.close()
    print(f"{heard[0]} documents came; {gone} of {options.tabs + 1} tasks ended before their time")
    for name in pids:
        more = with_tabs[name] - without[name]
        print(f"{name:8} {without[name]:6.1%} without, {with_tabs[name]:6.1%} with {options.tabs} tabs: {more:+.1%}")


if __name__ == "__main__":
    asyncio.run(main())
