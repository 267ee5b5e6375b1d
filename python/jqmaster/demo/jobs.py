"""The demo's jobs, which stand in for what job queues are used for: `jqmaster work jqmaster.demo.jobs:jq`."""

from __future__ import annotations

import asyncio
import hashlib

from jqmaster.client.app import JQ
from jqmaster.worker.failure import JobFailed
from jqmaster.worker.notes import current_job

jq = JQ(timeout=10, retry_base=0.2, retry_cap=2)  # what a killed worker held is back soon


@jq.job
async def thumbnail(width: int) -> None:
    """Quick, and nobody asks for a result."""


@jq.job
async def invoice(number: int, prices: list[int]) -> str:
    """Gives a result that is kept."""
    return hashlib.sha256(f"{number}:{sum(prices)}".encode()).hexdigest()


@jq.job
async def sync_account(fails: int) -> None:
    """The other side is flaky: it fails until it has failed so often."""
    if current_job.get().retry_count < fails:
        raise ConnectionError("the account does not answer")


@jq.job(max_retry=2)
async def charge_card(refused: bool) -> None:
    """Fails for good: at once when the card is refused, else after the last retry."""
    if refused:
        raise JobFailed("the card is refused", retry=False)
    raise TimeoutError("the bank does not answer")


@jq.job
async def reminder() -> None:
    """Comes later, or is cancelled before."""


@jq.job(priority=-30)
async def report(customer: str, pages: int) -> None:
    """Takes its time, and no customer may have many running at once."""
    await asyncio.sleep(pages * 0.01)
