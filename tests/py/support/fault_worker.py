"""A worker process for the fault tests: `python -m fault_worker push|pull|redis URLS NAMESPACE JOURNAL`.

It notes every start and every accepted outcome of a job in its journal.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from bare import app_worker
from journal import Journal
from jqmaster.worker.notes import current_job


async def flaky(argument: dict[str, int]) -> int:
    """Fails while it has failed less than it is told to."""
    await asyncio.sleep(argument["ms"] / 1000)
    if current_job.get().retry_count < argument["fails"]:
        raise ValueError("not yet")
    return argument["number"]


def main(how: str, urls: str, namespace: str, journal: str) -> int:
    """Work until SIGTERM."""
    told = {"drain_timeout_s": 2, "on_outcome": Journal(Path(journal)).note}
    return app_worker(how, (urls, urls), namespace, {"flaky": flaky}, **told).run()


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main(*sys.argv[1:]))
