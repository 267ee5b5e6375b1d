"""The same through streaq."""

import json
import os
import sys
import time

import anyio
from streaq import Worker

path, jobs, concurrency = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
worker = Worker(redis_url=f"unix://{path}", concurrency=concurrency)
done, began = 0, 0.0


@worker.task
async def noop() -> None:
    global done, began
    began = began or time.perf_counter()
    done += 1
    if done == jobs:
        print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
        os._exit(0)


async def main() -> None:
    async with worker:
        for first in range(0, jobs, 1000):
            await worker.enqueue_many([noop.enqueue() for _ in range(min(1000, jobs - first))])
    await worker.run_async()


anyio.run(main, backend="asyncio", backend_options={"use_uvloop": True})
