"""JQ's library straight on Redis, from plain code and with plain functions."""

import asyncio

from common import SLOTS, drive, job, ran, work
from with_jq import jq, prepare


@jq.job
def plain(at: int, text: str) -> None:
    ran(at)


def enqueue_many(count: int) -> None:
    jq.enqueue_many(plain.job(*job()) for _ in range(count))


async def serve() -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    work.stop = lambda: loop.call_soon_threadsafe(stop.set)
    await jq.worker(concurrency=SLOTS).serve(stop)


drive(plain.enqueue, serve, enqueue_many, prepare)
