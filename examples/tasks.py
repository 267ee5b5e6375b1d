"""A worker's functions. Each takes a job's argument and returns its result.

jqmaster work tasks:FUNCTIONS --url http://127.0.0.1:8400          # pulls
jqmaster work tasks:FUNCTIONS --url http://127.0.0.1:8400 --push   # is pushed to
jqmaster work tasks:FUNCTIONS --redis redis://127.0.0.1:6379       # needs no master
"""

import asyncio
import time
from typing import Any

from jqmaster import JobFailed, current_job


async def add(argument: list[float]) -> float:
    """A coroutine runs on the worker's event loop."""
    return sum(argument)


def resize(argument: dict[str, Any]) -> dict[str, Any]:
    """A plain function runs in a thread."""
    time.sleep(0.01)
    return {"width": argument["width"], "height": argument["width"] * 3 // 4}


async def call_partner(argument: dict[str, Any]) -> str:
    """Raising fails the attempt; the engine decides when the next one is."""
    job = current_job.get()
    if job.attempt <= argument.get("down_for", 0):
        raise ConnectionError("the partner does not answer")
    if argument.get("closed"):
        raise JobFailed("the account is closed", retry=False)
    await asyncio.sleep(0.01)
    return f"answered at attempt {job.attempt}"


async def render(argument: dict[str, Any]) -> str:
    return f"the page as of edit {argument['edit']}"


FUNCTIONS = {"add": add, "resize": resize, "call-partner": call_partner, "render": render}
