"""The same through arq."""

import asyncio
import json
import sys
import time

import uvloop
from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker

done, began = 0, 0.0


async def noop(ctx: object) -> None:
    global done, began
    began = began or time.perf_counter()
    done += 1
    if done == jobs:
        print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)


async def main(path: str, concurrency: int) -> None:
    settings = RedisSettings(unix_socket_path=path)
    pool = await create_pool(settings)
    for first in range(0, jobs, 200):
        await asyncio.gather(*(pool.enqueue_job("noop") for _ in range(min(200, jobs - first))))
    worker = Worker([noop], redis_settings=settings, max_jobs=concurrency, burst=True, keep_result=0,
                    handle_signals=False, poll_delay=0.01)  # fmt: skip
    await worker.async_run()
    await worker.close()


jobs = int(sys.argv[2])
uvloop.run(main(sys.argv[1], int(sys.argv[3])))
