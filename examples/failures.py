"""What failed for good, by cause, and how it runs again when that is gone. Needs a master, but no worker.

python failures.py [URL of the master]
"""

import asyncio
import sys
from typing import Any

from jqmaster import JQ, JobFailed
from jqmaster.worker.run import WorkOptions, work

shop_is_down = True


class NoSuchCustomer(JobFailed):
    """An exception's class is the group in which a failure is listed."""


async def charge(argument: dict[str, Any]) -> str:
    if argument["customer"] == "nobody":
        raise NoSuchCustomer("nobody by this name", retry=False)
    if shop_is_down:
        raise ConnectionError("the shop does not answer")
    return "charged " + argument["customer"]


async def main(url: str) -> None:
    global shop_is_down
    jq = JQ(url)
    stop = asyncio.Event()
    worker = asyncio.create_task(work(WorkOptions({"charge": charge}, masters=[url]), stop))
    customers = ("ada", "bob", "nobody", "eve")
    jobs = await jq.aenqueue_many(
        jq.new_job("charge", {"customer": customer}, max_retry=1, retry_base=0.01) for customer in customers
    )
    for job in jobs:
        await job.ajoin()
    async for group in jq.aeach("failures"):
        name = group["group"].rpartition(".")[2]
        print(f"{name}: {group['count']}, the last: {group['message']}")

    # It is up again. What failed because of it runs again; what nothing can help is removed.
    shop_is_down = False
    print("retried:", await jq.aretry_where(queue="charge", group="ConnectionError"))
    print("removed:", await jq.adiscard_where(queue="charge", status="error"))
    for job in jobs[:2]:
        await job.ajoin()
        document = await job.adocument()
        print(document["argument"]["customer"], document["status"])
    print("ada:", *(event["event"] for event in await jobs[0].ahistory()))
    stop.set()
    await worker


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400"))
