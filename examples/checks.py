"""What tests/protocol/worker.py asks of a worker, by the Python library.

python tests/protocol/worker.py jqmaster work checks:jq --concurrency 10          # in this folder
"""

import asyncio
import os
from typing import Any

from jqmaster import JQ, JobFailed

jq = JQ(os.environ["JQ_URL"], namespace=os.environ["JQ_NAMESPACE"], queue="checks")


@jq.job
async def echo(value: Any) -> Any:
    return value


@jq.job
async def nap(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


@jq.job
async def fail(text: str) -> None:
    raise JobFailed(text)


@jq.job
async def garble() -> None:
    raise JobFailed("a lone surrogate: \ud800")
