"""At most two mails at a time for each customer, however many one of them has. Needs a master, but no worker.

python limits.py [URL of the master]

The limit is set, and taken away at the end: its id and the jobs' name are those of this example alone.
"""

import asyncio
import sys
from collections import Counter

from jqmaster import JQ
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
    jq = JQ(url)
    stop = asyncio.Event()
    options = WorkOptions({MAIL: mail}, masters=[url], name="mailer", concurrency=16)
    worker = asyncio.create_task(work(options, stop))
    await jq.aconstrain(LIMIT, {"name": MAIL}, by="argument.customer", concurrency=2)

    # Acme's mail server is down for a minute. Its mails wait, and nobody else's wait for them.
    await jq.aoperations.hold(LIMIT, 60, by="acme")
    acme = await jq.aenqueue_many(jq.new_job(MAIL, {"customer": "acme"}) for _ in range(20))
    bob = await jq.aenqueue(MAIL, {"customer": "bob"})
    print("bob:", await bob.ajoin())
    for held in (await acme[-1].aexplain())["constraints"]:
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


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400"))
