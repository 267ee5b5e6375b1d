"""A long job says how far it is, and goes on where it was after a failure. Needs a master, but no worker.

python progress.py [URL of the master]
"""

import asyncio
import sys

from jqmaster import JQ, checkpoint, current_job, progress

PAGES = 6
jq = JQ(sys.argv[1] if len(sys.argv) > 1 else None)


@jq.job(retry_base=0.01)
async def print_book(page: int) -> str:
    attempt = current_job.get().attempt
    for number in range(page, PAGES):
        await asyncio.sleep(0.01)
        if number == 3 and attempt == 1:
            raise OSError("out of paper")
        print(f"attempt {attempt} prints page {number}")
        # Both go with the next heartbeat, at once.
        progress((number + 1) / PAGES, f"{number + 1} of {PAGES} pages")
        checkpoint({"page": number + 1})  # another attempt would get this as its argument
    return "printed"


async def main() -> None:
    stop = asyncio.Event()
    worker = asyncio.create_task(jq.worker().serve(stop))
    job = await print_book.aenqueue(0)
    print("ended as", await job.ajoin())
    document = await job.adocument()
    print(f"{document['progress']:.0%}, {document['progress_message']}")
    stop.set()
    await worker


asyncio.run(main())
