"""Functions for jobs that other programs enqueue by name.

jqmaster work tasks:jq --url http://127.0.0.1:8400          # pulls
jqmaster work tasks:jq --url http://127.0.0.1:8400 --push   # is pushed to
jqmaster work tasks:jq --redis redis://127.0.0.1:6379       # needs no server
"""

import asyncio
import time

from jqmaster import JQ, JobFailed, current_job

jq = JQ()


@jq.job
async def add(*numbers: float) -> float:
    """A coroutine runs on the worker's event loop."""
    return sum(numbers)


@jq.job
def resize(width: int) -> dict[str, int]:
    """A plain function runs in a thread."""
    time.sleep(0.01)
    return {"width": width, "height": width * 3 // 4}


@jq.job(name="call-partner")
async def call_partner(partner: str = "", down_for: int = 0, closed: bool = False) -> str:
    """Raising fails the attempt; the engine decides when the next one is."""
    job = current_job.get()
    if job.attempt <= down_for:
        raise ConnectionError("the partner does not answer")
    if closed:
        raise JobFailed("the account is closed", retry=False)
    await asyncio.sleep(0.01)
    return f"answered at attempt {job.attempt}"


@jq.job
async def render(edit: int) -> str:
    return f"the page as of edit {edit}"
