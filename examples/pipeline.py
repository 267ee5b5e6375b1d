"""One job through several steps: a function returns where its job goes next. Needs a master, but no worker.

python pipeline.py [URL of the master]
"""

import asyncio
import sys

from jqmaster import JQ, FollowUp, Move

jq = JQ(sys.argv[1] if len(sys.argv) > 1 else None)


@jq.job
def download(url: str) -> Move[str]:
    # What `Move` is given becomes the job's argument. Retries are counted anew in each step.
    return Move("convert", {"file": url.rsplit("/")[-1]})


@jq.job
def convert(file: str) -> FollowUp[str]:
    # The next step, and a job besides: both are there once this one is over, or neither.
    return FollowUp(Move("store", {"file": file + ".mp4"}), [thumbnail.job(file)])


@jq.job
def store(file: str) -> str:
    return f"stored {file}"


@jq.job
def thumbnail(file: str) -> str:
    return f"thumbnail of {file}"


async def main() -> None:
    stop = asyncio.Event()
    worker = asyncio.create_task(jq.worker().serve(stop))
    job = await download.aenqueue("http://example.org/film")
    print(await job)
    async for small in jq.ajobs(name="thumbnail"):
        print(await jq.handle(small["id"]))
    events = (await jq.aoperations.history(job.id))["events"]
    print("its attempts:", *(event["event"] for event in events if event["event"] in ("moved", "done")))
    stop.set()
    await worker


asyncio.run(main())
