"""JQ's library straight on Redis, in coroutines."""

import asyncio

from common import PATH, SLOTS, drive, job, ran, work

from jqmaster import JQ, load
from jqmaster.engine.engine import connect

jq = JQ(f"unix://{PATH}")


@jq.job
async def noop(at: int, text: str) -> None:
    ran(at)


async def enqueue(at: int, text: str) -> None:
    await noop.aenqueue(at, text)


async def enqueue_many(count: int) -> None:
    await jq.aenqueue_many(noop.job(*job()) for _ in range(count))


async def serve() -> None:
    stop = asyncio.Event()
    work.stop = stop.set
    await jq.worker(concurrency=SLOTS).serve(stop)


async def prepare() -> None:
    async with connect(jq.url) as redis:
        await load(redis, jq.namespace)


if __name__ == "__main__":
    drive(enqueue, serve, enqueue_many, prepare)
