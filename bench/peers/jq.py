"""No-op jobs through one JQ worker process, straight on Redis: `jq.py <socket> <jobs> <concurrency>`."""

import asyncio
import json
import sys
import time

import uvloop

from jqmaster import load
from jqmaster.engine import Engine, connect, pack
from jqmaster.worker import Worker
from jqmaster.worker_sources import RedisSource


async def main(path: str, jobs: int, concurrency: int) -> None:
    url, namespace = f"unix://{path}", "{bench}"
    redis = connect(url)
    await load(redis, namespace)
    engine = Engine(redis, namespace)
    spec, argument = pack({"name": "noop"}), pack(None)
    for first in range(0, jobs, 1000):
        await engine.call("enqueue", *[spec, argument] * min(1000, jobs - first))

    done, began, stop = 0, 0.0, asyncio.Event()

    async def noop(argument: object) -> None:
        nonlocal done, began
        began = began or time.perf_counter()
        done += 1
        if done == jobs:
            print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
            stop.set()

    source = RedisSource.from_url(url, namespace, ["noop"])
    await Worker({"noop": noop}, source, concurrency=concurrency).run(stop)
    await source.stop()
    await redis.aclose()


uvloop.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
