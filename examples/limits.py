"""At most two mails at a time for each customer, however many one of them has. Needs a master, but no worker.

python limits.py [URL of the master]

The limit is set, and taken away at the end: its id and the jobs' name are those of this example alone.
"""

import asyncio
import sys
from collections import Counter

from jqmaster import JQ

MAIL = "example-mail"
LIMIT = "example-mail-per-customer"
jq = JQ(sys.argv[1] if len(sys.argv) > 1 else None)

running: Counter[str] = Counter()
most: Counter[str] = Counter()


@jq.job(name=MAIL)
async def mail(customer: str) -> None:
    running[customer] += 1
    most[customer] = max(most[customer], running[customer])
    # A worker that is told "too many" says: raise JobReleased("429", hold={LIMIT: 30}).
    await asyncio.sleep(0.02)
    running[customer] -= 1


async def main() -> None:
    stop = asyncio.Event()
    worker = asyncio.create_task(jq.worker(name="mailer", concurrency=16).serve(stop))
    await jq.aoperations.constrain(LIMIT, {"name": MAIL}, by="argument.customer", concurrency=2)

    # Acme's mail server is down for a minute. Its mails wait, and nobody else's wait for them.
    await jq.aoperations.hold(LIMIT, 60, by="acme")
    acme = await mail.amap(["acme"] * 20)
    bob = await mail.aenqueue("bob")
    print("bob:", await bob.ajoin())
    for held in (await jq.aoperations.explain(acme[-1].id))["constraints"]:
        print("acme: held by", held["id"], "of", held["by"])
    async for key in jq.aeach("usage", LIMIT):
        if key["held"]:
            print(f"{key['by']}: {key['running']} running, {key['held']} held")

    # It is back.
    await jq.aoperations.hold(LIMIT, 0, by="acme")
    for job in acme:
        await job.ajoin()
    print("most at a time:", most["acme"], "of acme,", most["bob"], "of bob")
    await jq.aoperations.unconstrain(LIMIT)
    stop.set()
    await worker


asyncio.run(main())
