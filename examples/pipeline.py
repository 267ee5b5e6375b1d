"""One job through several steps: a function returns where its job goes next. Needs a master, but no worker.

python pipeline.py [URL of the master]
"""

import asyncio
import sys
from typing import Any

from jqmaster.client import AsyncClient
from jqmaster.worker.worker import FollowUp, Move
from jqmaster.worker.run import WorkOptions, work


def download(argument: dict[str, Any]) -> Move:
    # What `Move` is given becomes the job's argument. Retries are counted anew in each step.
    return Move("convert", {"file": argument["url"].rsplit("/")[-1]})


def convert(argument: dict[str, Any]) -> FollowUp:
    # The next step, and a job besides: both are there once this one is over, or neither.
    thumbnail = {"name": "thumbnail", "argument": argument, "keep_result": True}
    return FollowUp(Move("store", {"file": argument["file"] + ".mp4"}), [thumbnail])


def store(argument: dict[str, Any]) -> str:
    return f"stored {argument['file']}"


def thumbnail(argument: dict[str, Any]) -> str:
    return f"thumbnail of {argument['file']}"


FUNCTIONS = {"download": download, "convert": convert, "store": store, "thumbnail": thumbnail}


async def main(url: str) -> None:
    stop = asyncio.Event()
    worker = asyncio.create_task(work(WorkOptions(FUNCTIONS, masters=[url]), stop))
    async with AsyncClient(url) as jq:
        job = await jq.enqueue("download", {"url": "http://example.org/film"}, keep_result=True)
        await jq.wait(job)
        print(await jq.result(job))
        async for small in jq.jobs(name="thumbnail"):
            await jq.wait(small["id"])
            print(await jq.result(small["id"]))
        events = (await jq.history(job))["events"]
        print("its attempts:", *(event["event"] for event in events if event["event"] in ("moved", "done")))
    stop.set()
    await worker


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400"))
