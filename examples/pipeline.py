"""One job through several steps: a function returns where its job goes next. Needs a master, but no worker.

python pipeline.py [URL of the master]
"""

import asyncio
import sys
from typing import Any

from jqmaster import JQ, FollowUp, Move
from jqmaster.worker.run import WorkOptions, work


def download(argument: dict[str, Any]) -> Move[str]:
    # What `Move` is given becomes the job's argument. Retries are counted anew in each step.
    return Move("convert", {"file": argument["url"].rsplit("/")[-1]})


def convert(argument: dict[str, Any]) -> FollowUp[str]:
    # The next step, and a job besides: both are there once this one is over, or neither.
    thumbnail = {"name": "thumbnail", "argument": argument, "keep_result": True}
    return FollowUp(Move("store", {"file": argument["file"] + ".mp4"}), [thumbnail])


def store(argument: dict[str, Any]) -> str:
    return f"stored {argument['file']}"


def thumbnail(argument: dict[str, Any]) -> str:
    return f"thumbnail of {argument['file']}"


FUNCTIONS = {"download": download, "convert": convert, "store": store, "thumbnail": thumbnail}


async def main(url: str) -> None:
    jq = JQ(url)
    stop = asyncio.Event()
    worker = asyncio.create_task(work(WorkOptions(FUNCTIONS, masters=[url]), stop))
    job = await jq.aenqueue("download", {"url": "http://example.org/film"})
    print(await job)
    async for small in jq.ajobs(name="thumbnail"):
        print(await jq.handle(small["id"]))
    events = await job.ahistory()
    print("its attempts:", *(event["event"] for event in events if event["event"] in ("moved", "done")))
    stop.set()
    await worker


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400"))
