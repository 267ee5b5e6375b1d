"""A long job says how far it is, and goes on where it was after a failure. Needs a master, but no worker.

python progress.py [URL of the master]
"""

import asyncio
import sys

from jqmaster import JQ, checkpoint, current_job, progress
from jqmaster.worker.run import WorkOptions, work

PAGES = 6


async def print_book(argument: dict[str, int]) -> str:
    attempt = current_job.get().attempt
    for page in range(argument["page"], PAGES):
        await asyncio.sleep(0.01)
        if page == 3 and attempt == 1:
            raise OSError("out of paper")
        print(f"attempt {attempt} prints page {page}")
        # Both go with the next heartbeat, at once.
        progress((page + 1) / PAGES, f"{page + 1} of {PAGES} pages")
        checkpoint({"page": page + 1})  # another attempt would get this as its argument
    return "printed"


async def main(url: str) -> None:
    jq = JQ(url)
    stop = asyncio.Event()
    worker = asyncio.create_task(work(WorkOptions({"print-book": print_book}, masters=[url]), stop))
    job = await jq.aenqueue("print-book", {"page": 0}, retry_base=0.01)
    async for state in job:  # how it stands now, and each change until the end
        last = state
    print("ended as", last.status)
    document = await job.adocument()
    print(f"{document['progress']:.0%}, {document['progress_message']}")
    stop.set()
    await worker


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400"))
