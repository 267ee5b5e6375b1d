"""A diamond of dependencies: one job, two that need it, one that needs both. Needs a master, but no worker.

python diamond.py [URL of the master]
"""

import asyncio
import sys
from typing import Any

from jqmaster import JQ, JobError, current_job
from jqmaster.worker.run import WorkOptions, work


async def main(url: str) -> None:
    jq = JQ(url)

    async def results() -> list[Any]:
        """The results of the jobs that the running one waited for."""
        return [await jq.handle(job) for job in current_job.get().depends]

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
    # All or none. `depends` takes calls of the same list; ids of other jobs will do as well.
    numbers = jq.new_job("fetch", 10)
    halves = [jq.new_job(name, depends=[numbers]) for name in ("total", "largest")]
    whole = jq.new_job("report", "total {}, largest {}", depends=halves)
    *_, last = await jq.aenqueue_many([numbers, *halves, whole])
    print(await last)

    # One of them fails for good: who waits for it fails, too (or runs, or goes on waiting: `if_failed`).
    numbers = jq.new_job("fetch", "ten", max_retry=0)
    failing, waiting = await jq.aenqueue_many([numbers, jq.new_job("report", depends=[numbers], if_failed="fail")])
    try:
        await waiting
    except JobError as error:
        print("report:", error.reason, "after", (await failing.adocument())["group"])
    stop.set()
    await worker


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400"))
