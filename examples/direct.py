"""Redis alone, no master: enqueue, pick and finish through the scripts.

python direct.py [URL of Redis]
"""

import asyncio
import sys

import msgpack

from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load


async def main(url: str) -> None:
    async with connect(url) as redis:
        await load(redis, "{example}")
        jq = Engine(redis, "{example}")

        [job] = await jq.enqueue([({"name": "greet", "keep_result": True}, msgpack.packb("world"))])
        picked = await jq.pick("my-worker", "greet")
        for one in picked.jobs:
            greeting = f"hello, {msgpack.unpackb(one.argument)}"
            outcome = {"id": one.id, "token": one.token, "type": "success"}
            await jq.finish("my-worker", [(outcome, msgpack.packb(greeting))])

        state, result = await jq.result(job.id)
        print(state, msgpack.unpackb(result or b"\xc0"))


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "redis://127.0.0.1:6379"))
