"""What failed for good, by cause, and how it runs again when that is gone. Needs a master, but no worker.

python failures.py [URL of the master]
"""

import asyncio
import sys

from jqmaster import JQ, JobFailed

jq = JQ(sys.argv[1] if len(sys.argv) > 1 else None)
shop_is_down = True


class NoSuchCustomer(JobFailed):
    """An exception's class is the group in which a failure is listed."""


@jq.job(max_retry=1, retry_base=0.01)
async def charge(customer: str) -> str:
    if customer == "nobody":
        raise NoSuchCustomer("nobody by this name", retry=False)
    if shop_is_down:
        raise ConnectionError("the shop does not answer")
    return f"charged {customer}"


async def main() -> None:
    global shop_is_down
    stop = asyncio.Event()
    worker = asyncio.create_task(jq.worker().serve(stop))
    jobs = await charge.amap(["ada", "bob", "nobody", "eve"])
    for job in jobs:
        await job.ajoin()
    async for group in jq.aeach("failures"):
        name = group["group"].rpartition(".")[2]
        print(f"{name}: {group['count']}, the last: {group['message']}")

    # It is up again. What failed because of it runs again; what nothing can help is removed.
    shop_is_down = False
    again = await jq.aoperations.retry(where={"queue": "charge", "group": "ConnectionError"})
    print("retried:", again.changed)
    gone = await jq.aoperations.discard(where={"queue": "charge", "status": "error"})
    print("removed:", gone.changed)
    for job in jobs[:2]:
        await job.ajoin()
        document = await job.adocument()
        print(document["argument"]["customer"], document["status"])
    history = await jq.aoperations.history(jobs[0].id)
    print("ada:", *(event["event"] for event in history["events"]))
    stop.set()
    await worker


asyncio.run(main())
