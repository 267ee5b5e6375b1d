"""The same through SAQ."""

import asyncio
import json
import sys
import time

import uvloop
from redis.asyncio import Redis
from saq import Worker
from saq.queue.redis import RedisQueue

done, began = 0, 0.0
finished = asyncio.Event()


async def noop(ctx: object) -> None:
    global done, began
    began = began or time.perf_counter()
    done += 1
    if done == jobs:
        print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
        finished.set()


async def main(path: str, concurrency: int) -> None:
    queue = RedisQueue(Redis.from_url(f"unix://{path}"))
    await queue.connect()
    for first in range(0, jobs, 200):
        await asyncio.gather(*(queue.enqueue("noop") for _ in range(min(200, jobs - first))))
    worker = Worker(queue, functions=[("noop", noop)], concurrency=concurrency)
    task = asyncio.create_task(worker.start())
    await finished.wait()
    await worker.stop()
    task.cancel()


jobs = int(sys.argv[2])
uvloop.run(main(sys.argv[1], int(sys.argv[3])))
