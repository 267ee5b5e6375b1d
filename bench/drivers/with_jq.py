"""JQ's library in coroutines, straight on Redis or by a server."""

import asyncio
import sys

from common import PATH, SLOTS, drive, job, ran, work

from jqmaster import JQ

if len(sys.argv) > 3:  # a cluster
    jq = JQ(PATH, namespace=sys.argv[3])
else:
    jq = JQ(PATH if "://" in PATH else f"unix://{PATH}")


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
    if jq.url.startswith("http"):
        return  # the server has loaded the scripts
    from jqmaster.cluster.cluster import open_engine

    engine = open_engine(jq.url, jq.namespace)
    await engine.load()
    await engine.close()


if __name__ == "__main__":
    drive(enqueue, serve, enqueue_many, prepare)
