"""No-op jobs through one JQ worker process, straight on Redis: `jq.py <socket> <jobs> <concurrency>`."""

import asyncio
import json
import sys
import time

import uvloop

from jqmaster import JQ, load
from jqmaster.engine.engine import connect

jobs, concurrency = map(int, sys.argv[2:])
jq = JQ(f"unix://{sys.argv[1]}")
done, began, stop = 0, 0.0, asyncio.Event()


@jq.job
async def noop() -> None:
    global done, began
    began = began or time.perf_counter()
    done += 1
    if done == jobs:
        print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
        stop.set()


async def main() -> None:
    async with connect(jq.url) as redis:
        await load(redis, jq.namespace)
    await jq.aenqueue_many(noop.job() for _ in range(jobs))
    await jq.worker(concurrency=concurrency).serve(stop)


uvloop.run(main())
