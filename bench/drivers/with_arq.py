"""arq, which looks for jobs twice a second."""

import asyncio
from typing import Any

from arq import create_pool
from arq.connections import ArqRedis, RedisSettings
from arq.worker import Worker
from common import PATH, SLOTS, drive, ran, work

SETTINGS = RedisSettings(unix_socket_path=PATH)
pool: ArqRedis


async def noop(context: dict[str, Any], at: int, text: str) -> None:
    ran(at)


async def enqueue(at: int, text: str) -> None:
    await pool.enqueue_job("noop", at, text)


async def prepare() -> None:
    global pool
    pool = await create_pool(SETTINGS)


async def serve() -> None:
    stop = asyncio.Event()
    work.stop = stop.set
    worker = Worker([noop], redis_settings=SETTINGS, max_jobs=SLOTS, keep_result=0, handle_signals=False)
    running = asyncio.create_task(worker.async_run())
    await stop.wait()
    await asyncio.sleep(0.05)  # the last job's end is written
    running.cancel()
    await asyncio.wait([running])
    await worker.close()


drive(enqueue, serve, prepare=prepare)
