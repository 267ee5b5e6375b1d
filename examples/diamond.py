"""A diamond of dependencies: one job, two that need it, one that needs both. Needs a master, but no worker.

python diamond.py [URL of the master]
"""

import asyncio
import sys
from typing import Any

from jqmaster.client import AsyncClient
from jqmaster.worker.worker import current_job
from jqmaster.worker.run import WorkOptions, work


async def main(url: str) -> None:
    jq = AsyncClient(url)

    async def results() -> list[Any]:
        """The results of the jobs that the running one waited for."""
        return [await jq.result(job) for job in current_job.get().depends]

    async def fetch(argument: int) -> list[int]:
        return list(range(argument))

    async def total(argument: Any) -> int:
        [numbers] = await results()
        return sum(numbers)

    async def largest(argument: Any) -> int:
        [numbers] = await results()
        return max(numbers)

    async def report(argument: str) -> str:
        return argument.format(*await results())

    stop = asyncio.Event()
    functions = {"fetch": fetch, "total": total, "largest": largest, "report": report}
    worker = asyncio.create_task(work(WorkOptions(functions, masters=[url]), stop))
    async with jq:
        # All or none. Numbers in `depends` are places in this list; ids of other jobs will do as well.
        *_, last = await jq.enqueue_many(
            [
                {"name": "fetch", "argument": 10, "keep_result": True},
                {"name": "total", "depends": [0], "keep_result": True},
                {"name": "largest", "depends": [0], "keep_result": True},
                {
                    "name": "report",
                    "depends": [1, 2],
                    "keep_result": True,
                    "argument": "total {}, largest {}",
                },
            ]
        )
        await jq.wait(last)
        print(await jq.result(last))

        # One of them fails for good: who waits for it fails, too (or runs, or goes on waiting: `if_failed`).
        failing, waiting = await jq.enqueue_many(
            [
                {"name": "fetch", "argument": "ten", "max_retry": 0},
                {"name": "report", "depends": [0], "if_failed": "fail"},
            ]
        )
        print("report:", (await jq.wait(waiting))["reason"], "after", (await jq.get(failing))["group"])
        stop.set()
        await worker


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400"))
