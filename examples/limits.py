"""At most two mails at a time for each customer, however many one of them has. Needs a master, but no worker.

python limits.py [URL of the master]

The limit is set, and taken away at the end: its id and the jobs' name are those of this example alone.
"""

import asyncio
import sys
from collections import Counter

from jqmaster.client import AsyncClient
from jqmaster.worker.run import WorkOptions, work

MAIL = "example-mail"
LIMIT = "example-mail-per-customer"

running: Counter[str] = Counter()
most: Counter[str] = Counter()


async def mail(argument: dict[str, str]) -> None:
    customer = argument["customer"]
    running[customer] += 1
    most[customer] = max(most[customer], running[customer])
    # A worker that is told "too many" says: raise JobReleased("429", hold={LIMIT: 30}).
    await asyncio.sleep(0.02)
    running[customer] -= 1


async def main(url: str) -> None:
    stop = asyncio.Event()
    options = WorkOptions({MAIL: mail}, masters=[url], name="mailer", concurrency=16)
    worker = asyncio.create_task(work(options, stop))
    async with AsyncClient(url) as jq:
        await jq.constrain(LIMIT, {"name": MAIL}, by="argument.customer", concurrency=2)

        # Acme's mail server is down for a minute. Its mails wait, and nobody else's wait for them.
        await jq.hold(LIMIT, 60, by="acme")
        acme = await jq.enqueue_many({"name": MAIL, "argument": {"customer": "acme"}} for _ in range(20))
        bob = await jq.enqueue(MAIL, {"customer": "bob"})
        print("bob:", (await jq.wait(bob))["status"])
        for held in (await jq.explain(acme[-1]))["constraints"]:
            print("acme: held by", held["id"], "of", held["by"])
        for key in await jq.usage(LIMIT):
            if key["held"]:
                print(f"{key['by']}: {key['running']} running, {key['held']} held")

        # It is back.
        await jq.hold(LIMIT, 0, by="acme")
        for job in acme:
            await jq.wait(job)
        print("most at a time:", most["acme"], "of acme,", most["bob"], "of bob")
        await jq.unconstrain(LIMIT)
    stop.set()
    await worker


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400"))
